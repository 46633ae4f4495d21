#!/usr/bin/env perl
# 10,000 connections opened and dropped leave nothing behind; hundreds at once are served.
use strict;
use warnings;
use FindBin;
use lib "$FindBin::Bin/lib";
use Test::More;
use MCTest;

sub open_files {
    my ($pid) = @_;
    opendir my $dir, "/proc/$pid/fd" or return 0;
    return scalar grep { !/^\./ } readdir $dir;
}

for my $profile (profiles()) {
    my $server = start_server(profile => $profile);
    my $s = $server->control;
    my $before = mem_stats($s);
    for my $i (1 .. 500) {
        $server->connect;
    }
    ok(all_have_left($s, $before, 500), "[$profile] 500 connections warm up");
    my $rss = proc_status($server->pid, 'VmRSS');
    my $files = open_files($server->pid);
    my $bad = 0;
    for my $i (1 .. 10_000) {
        my $c = $server->connect;
        next if $i % 3 == 0;
        put($c, "version\r\n");
        next if $i % 3 == 1;
        $bad++ if read_line($c) ne VERSION_REPLY($profile);
    }
    is($bad, 0, "[$profile] 10,000 connections opened and dropped");
    ok(all_have_left($s, $before, 10_500), "[$profile] none is left");
    is(mem_stats($s)->{total_connections} - $before->{total_connections}, 10_500,
        "[$profile] all are counted");
    is(open_files($server->pid), $files, "[$profile] no descriptor leaks") if is_ours();
    cmp_ok(proc_status($server->pid, 'VmRSS') - $rss, '<',
        $ENV{ASAN_OPTIONS} ? 60_000 : 20_000, "[$profile] nor memory");

    my @many = map { $server->connect } 1 .. 500;
    put($many[$_], "set k$_ 0 0 3\r\nabc\r\n") for 0 .. $#many;
    $bad = grep { read_line($_) ne "STORED\r\n" } @many;
    is($bad, 0, "[$profile] 500 connections at once");
    put($many[$_], 'get k' . (($_ + 7) % 500) . "\r\n") for 0 .. $#many;
    for my $i (0 .. $#many) {
        my $want = 'VALUE k' . (($i + 7) % 500) . " 0 3\r\nabc\r\nEND\r\n";
        $bad++ if read_bytes($many[$i], length $want) ne $want;
    }
    is($bad, 0, "[$profile] each gets its own reply");
    @many = ();
    $server->stop;
}

done_testing();
