# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 the memcached-qos authors
#
# Servers of known behaviour (t/server/mctestd.c), and what they say they did.
package MCTestd;

use MCTest;
use Exporter 'import';
use IO::Handle;

our @EXPORT = qw(start_testd stop_testd);

my $main_pid = $$;
my $started = 0;
my %running;

# Starts one with these options: {port, pid, log}.
sub start_testd(@args) {
    my $binary = $ENV{MCTESTD} || ($ENV{TOP_BUILDDIR} || '.') . '/t/server/mctestd';
    my $log = scratch_dir() . "/testd.$$." . ++$started;
    pipe my $out, my $in or die "pipe: $!";
    my $pid = fork;
    die "fork: $!" if !defined $pid;
    if (!$pid) {
        close $out;
        open STDOUT, '>&', $in or die "dup: $!";
        { no warnings; exec { $binary } $binary, "--log=$log", @args; }
        print STDERR "exec $binary: $!\n";
        POSIX::_exit(127);
    }
    close $in;
    my $line = <$out> // '';
    my ($port) = $line =~ /^port (\d+)$/ or die "$binary @args did not start\n";
    my $server = {pid => $pid, port => $port, log => $log, out => $out};
    $running{$pid} = $server;
    return $server;
}

# Ends it: {rows => [{conn, received, sent, verb, fault}, ...] as they were answered, faults =>
# {name => count}}. Times are nanoseconds, `sent` 0 when there was no reply.
sub stop_testd($server) {
    kill 'TERM', $server->{pid};
    waitpid $server->{pid}, 0;
    delete $running{$server->{pid}};
    my %did = (status => $?, rows => [], faults => {});
    open my $log, '<', $server->{log} or die "$server->{log}: $!";
    while (my $line = <$log>) {
        my ($what, @words) = split ' ', $line;
        if ($what eq 'R') {
            my %row;
            @row{qw(conn received sent verb fault)} = @words;
            push @{$did{rows}}, \%row;
        } else {
            $did{faults}{$words[0]} = $words[1];
        }
    }
    return \%did;
}

END {
    if ($$ == $main_pid) {
        my $status = $?;
        for my $pid (keys %running) {
            kill 'KILL', $pid;
            waitpid $pid, 0;
        }
        $? = $status;
    }
}

1;
