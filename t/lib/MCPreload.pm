# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 the memcached-qos authors
#
# Libraries of t/preload in front of all others, and the numbers in a file that tell them what to do.
package MCPreload;

use MCTest;
use Exporter 'import';

our @EXPORT = qw(preloaded control_put control_of);

# The environment of a program with these libraries. Without them the test is skipped.
sub preloaded(@names) {
    my @libraries = map { ($ENV{TOP_BUILDDIR} // '.') . "/t/preload/$_.so" } @names;
    plan skip_all => 'no library to preload' if grep { !-e } @libraries;
    return (LD_PRELOAD => join(':', @libraries),
        ASAN_OPTIONS => join ':', grep { defined && $_ ne '' } $ENV{ASAN_OPTIONS}, 'verify_asan_link_order=0');
}

# The file keeps its length: a program may have mapped it.
sub control_put($path, @numbers) {
    open my $fh, -e $path ? '+<:raw' : '>:raw', $path or die "$path: $!";
    syswrite $fh, pack 'q*', @numbers;
}

sub control_of($path) { return unpack 'q*', read_file($path); }

1;
