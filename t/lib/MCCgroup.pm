# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 the memcached-qos authors
#
# Groups of cgroup v1, which end with the test.
package MCCgroup;

use MCTest;
use Exporter 'import';

our @EXPORT = qw(try_write make_group inside);

my @made;

# False when the kernel does not take it.
sub try_write($path, $text) {
    open my $fh, '>', $path or return 0;
    return (print {$fh} $text) && close $fh;
}

# A new group of a controller, or in another group, with these files; undef: there can be none.
sub make_group($in, %files) {
    my $top = $in =~ m{^/} ? $in : "/sys/fs/cgroup/$in";
    my $dir = "$top/mctest.$$";
    return undef if !-e "$top/tasks" || !mkdir $dir;
    unshift @made, $dir;
    for my $file (sort keys %files) {
        return undef if !try_write("$dir/$file", $files{$file});
    }
    return $dir;
}

# What a server in it is wrapped in, and in what else.
sub inside($dir, @more) {
    return ['/bin/sh', '-c', "echo \$\$ >$dir/cgroup.procs && exec \"\$@\"", 'sh', @more];
}

END {
    my $status = $?;
    for my $dir (@made) {
        # The kernel lets go of the last member a moment after its end.
        for (1 .. 100) {
            last if !-d $dir || rmdir $dir;
            select undef, undef, undef, 0.05;
        }
    }
    $? = $status;
}

1;
