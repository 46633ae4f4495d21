#!/usr/bin/env perl
# SIGTERM under load: what was begun is finished, no reply is cut off, the server exits 0
# soon, also beside clients that do not read or do not finish their requests.
use MCTest;
use Time::HiRes qw(time);

my $has_been_stuck = 0;
each_profile(sub ($profile) {
    my $is_ref = $profile eq 'ref';
    for my $signal (qw(TERM INT)) {
        my ($server, $s) = serve($profile, '-t', '2');
        my $value = 'v' x 5000;
        exchange($s, "set k 0 0 5000\r\n$value\r\n", "STORED\r\n");
        my $one = "VALUE k 0 5000\r\n$value\r\nEND\r\n";
        my @children;
        for my $i (1 .. 6) {
            pipe my $out, my $in;
            my $pid = fork;
            if (!$pid) {
                close $out;
                my $c = $server->connect;
                my $whole = 0;
                my $state = 'ok';
                while (1) {
                    my $batch = $i % 2 ? 20 : 1;
                    put($c, "get k\r\n" x $batch);
                    my $got = read_bytes($c, $batch * length $one);
                    $whole += int(length($got) / length $one);
                    if (length($got) < $batch * length $one) {
                        $state = 'cut' if length($got) % length $one;
                        $state = 'wrong' if $got ne substr $one x $batch, 0, length $got;
                        last;
                    }
                    syswrite $in, 'r' if $whole == $batch;
                }
                syswrite $in, "$state $whole\n";
                POSIX::_exit(0);
            }
            close $in;
            push @children, [$pid, $out];
        }
        sysread $_->[1], my $ready, 1 for @children;
        # They are waited for, 4 s: whichever the profile and the signal, so that once is enough.
        my @stuck = $has_been_stuck++ ? () : map { $server->connect } 1 .. 3;
        if (@stuck) {
            put($stuck[0], "get k\r\n" x 20000, 1);
            put($stuck[1], "set half 0 0 100\r\nabc");
            put($stuck[2], "get ");
            soon { grep { /conn_nread/ } stat_lines($s, 'conns') } 'stuck in the middle of a value';
        }
        my $begin = time;
        $server->stop($signal, "SIG$signal under load: exit 0");
        cmp_ok(time - $begin, '<', 6, 'soon') if is_quiet();
        my $served = 0;
        for my $child (@children) {
            my ($pid, $out) = @$child;
            my $text = '';
            while (sysread $out, my $chunk, 100) {
                $text .= $chunk;
            }
            waitpid $pid, 0;
            my ($state, $whole) = $text =~ /^(\w+) (\d+)$/;
            $served += $whole;
            is($state, 'ok', 'no reply is cut off') if !$is_ref;
        }
        cmp_ok($served, '>', 0, "$served replies were served");
    }
});

done_testing();
