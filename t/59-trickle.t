#!/usr/bin/env perl
# Reads that complete no request are counted; the connection that makes too many of them waits behind
# the others, until it sends whole requests again. Its replies stay the same.
use MCTest ':ours';

my $PATIENCE = 8;   # HABIT_PATIENCE
my $DEBT_MOST = 64; # HABIT_DEBT_MOST
my $GET = "get a\r\n";
my $VALUE = "VALUE a 0 1\r\n1\r\nEND\r\n";
my $NOOP = "\x80\x0a" . "\0" x 22;

sub counts($server) {
    my $q = mem_stats($server->control, 'qos');
    return ($q->{trickled_reads}, $q->{trickle_waits});
}

# Sends the bytes, each when the server has read the one before, but for the last.
sub trickle($server, $s, $bytes) {
    my ($reads) = counts($server);
    for my $byte (split //, substr $bytes, 0, -1) {
        put($s, $byte);
        wait_until(sub { (counts($server))[0] > $reads }) or return 0;
        ($reads) = counts($server);
    }
    put($s, substr $bytes, -1);
    return 1;
}

for my $case (['1.4'], ['1.6'], ['1.6', '--slo=p95:100s'], ['1.6', '--classes=off']) {
    my ($profile, @more) = @{$case};
    my $what = join ' ', "[$profile]", @more;
    my $queues = "@more" ne '--classes=off';
    my ($server, $honest) = serve($profile, '-t', '1', @more);
    exchange($honest, "set a 0 0 1\r\n1\r\n", "STORED\r\n");
    my ($reads, $waits) = counts($server);

    my $s = $server->connect;
    for my $n (1 .. 3) {
        ok(trickle($server, $s, $GET), "$what: each byte of get $n is read and counted");
        expect_bytes($s, $VALUE, '... and the reply comes');
    }
    my ($now, $waited) = counts($server);
    is($now - $reads, 3 * (length($GET) - 1), '... once each, not the reads that completed one');
    $queues ? cmp_ok($waited, '>', $waits, '... until it waits for the others')
            : is($waited, $waits, '... and nothing is queued');

    exchange($honest, $GET, $VALUE) for 1 .. 20;
    is_deeply([counts($server)], [$now, $waited], "$what: whole requests are not");

    ok(trickle($server, $s, "set a 0 0 9\r\n"), "$what: the line of a set");
    soon { grep { /conn_nread/ } stat_lines($server->control, 'conns') } "... is read";
    ok(trickle($server, $s, "234567891\r\n"), '... and its value likewise');
    expect_bytes($s, "STORED\r\n", '... is stored');
    exchange($s, $GET, "VALUE a 0 9\r\n234567891\r\nEND\r\n") for 1 .. $DEBT_MOST;
    my @paid = counts($server);
    exchange($s, $GET, "VALUE a 0 9\r\n234567891\r\nEND\r\n") for 1 .. 10;
    is_deeply([counts($server)], \@paid, "$what: who has paid back is served like the others");

    # another connection of that address has less patience
    my $next = $server->connect;
    my @before = counts($server);
    if ($profile eq '1.6') {
        for (1 .. 2) {
            ok(trickle($server, $next, $NOOP), "$what: binary likewise");
            expect_bytes($next, "\x81\x0a" . "\0" x 22, '... and the reply comes');
        }
        cmp_ok((counts($server))[1], '>', $before[1], '... it waits') if $queues;
    }
    my $long = 'v' x 100_000;
    @before = counts($server);
    exchange($server->connect, "set long 0 0 100000\r\n$long\r\n", "STORED\r\n");
    is((counts($server))[0], $before[0], "$what: a value in many reads is not charged") if !$ENV{MCTEST_TLS};
}

done_testing();
