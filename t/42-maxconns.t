#!/usr/bin/env perl
# Beyond -c the server either waits with accepting or answers with an error and closes, and
# serves again when connections are given back.
use MCTest;
use Time::HiRes qw(sleep);

sub cpu_ticks($pid) {
    open my $fh, '<', "/proc/$pid/stat" or return 0;
    my $line = <$fh>;
    $line =~ s/^.*\) //;
    my @field = split ' ', $line;
    return $field[11] + $field[12];
}

each_profile(sub ($profile) {
    # waiting
    my $server = serve($profile, '-c', '60', '-t', '2', $profile eq '1.6' ? ('-o', 'no_maxconns_fast') : ());
    my $s = $server->control;
    exchange($s, "version\r\n", VERSION_REPLY($profile));
    my @many = map { $server->connect(no_wait => 1) } 1 .. 100;
    my $st;
    soon { $st = mem_stats($s); !$st->{accepting_conns} } 'accepting_conns goes to 0';
    cmp_ok($st->{listen_disabled_num}, '>=', 1, 'listen_disabled_num');
    # each of the two workers has five descriptors of the 60
    cmp_ok($st->{curr_connections}, '<=', $profile eq 'ref' ? 60 : 49, 'not more than -c leaves are open');
    cmp_ok($st->{curr_connections}, '>=', 11, 'but at least eleven');
    my $ticks = cpu_ticks($server->pid);
    sleep 0.6;
    cmp_ok(cpu_ticks($server->pid) - $ticks, '<', 30, 'the wait does not spin');
    my $answered = 0;
    if ($profile eq 'ref') {
        # Debian's lets the kernel drop what waits: that takes the client's time-outs.
        close $_ for splice @many;
        $answered = 100;
    }
    for my $c (@many) {
        put($c, "version\r\n");
        my $got = read_bytes($c, length VERSION_REPLY($profile));
        $answered++ if $got eq VERSION_REPLY($profile);
        close $c;
    }
    is($answered, 100, 'as some leave, all 100 are served in the end');
    @many = ();
    soon { mem_stats($s)->{accepting_conns} } 'accepting again';
    cmp_ok(mem_stats($s)->{time_in_listen_disabled_us}, '>', 0, 'time_in_listen_disabled_us');
    exchange($server->connect, "version\r\n", VERSION_REPLY($profile), 'a new one is served');

    # error and close
    $server = serve($profile, '-c', '60', '-t', '2', '-o', 'maxconns_fast');
    $s = $server->control;
    exchange($s, "version\r\n", VERSION_REPLY($profile));
    my (@kept, $refused);
    for my $i (1 .. 200) {
        my $c = $server->connect;
        put($c, "version\r\n");
        my $line = read_line($c);
        if ($line eq VERSION_REPLY($profile)) {
            push @kept, $c;
            next;
        }
        $refused = $line;
        my ($rest, $closed) = read_until_eof($c);
        ok($closed, 'the refused connection is closed');
        is($rest, '', 'after one line');
        last;
    }
    is($refused, "ERROR Too many open connections\r\n", 'the refusal');
    $st = mem_stats($s);
    cmp_ok(scalar(@kept), '>=', 10, 'eleven connections work');
    is($st->{curr_connections}, 49, "what -c leaves beside the workers' own") if $profile ne 'ref';
    cmp_ok(scalar(@kept), '<=', 60, 'not more than -c');
    for (1 .. 50) {
        my $c = $server->connect;
        read_until_eof($c);
    }
    $st = mem_stats($s);
    has($st, 'rejected_connections', rejected_connections => ['>=', 51], accepting_conns => 1);
    exchange($kept[0], "version\r\n", VERSION_REPLY($profile), 'those inside are served');
    my $inside = $st->{curr_connections};
    close $_ for splice @kept, 0, 5;
    soon { mem_stats($s)->{curr_connections} <= $inside - 5 } 'five leave';
    exchange($server->connect, "version\r\n", VERSION_REPLY($profile), 'a new one is served');
});

done_testing();
