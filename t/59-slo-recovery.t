#!/usr/bin/env perl
# After an overload that --slo has answered with refusals: once it is over nobody is refused, neither
# those who stay nor classes that were refused for the sake of those who have gone. Those who ask in
# the meantime wait for a CPU as well, so they are looked at where it is free (scripts/ci quiet);
# t/unit/check_slo.c has the decisions, doc/benchmarks.md how long it takes.
use MCTest ':ours';
use Time::HiRes qw(sleep time);

my $BUSY = "SERVER_ERROR 307 busy\r\n";
my $server;

sub qos { return mem_stats($server->control, 'qos'); }

# Requests that wait for longer than the target, because the server is stopped while they arrive,
# until so many have been refused. How many were.
sub overload($least) {
    my @conns = map { $server->connect } 1 .. 4;
    my $before = qos()->{slo_shed};
    my $q;
    wait_until(sub {
        kill 'STOP', $server->pid;
        wait_until(sub { is_stopped($server) });
        put($_, "get a\r\n" x 5) for @conns;
        sleep 0.12;
        kill 'CONT', $server->pid;
        read_line($_) for map { ($_) x 5 } @conns;
        $q = qos();
        return $q->{slo_shed} - $before >= $least && $q->{slo_level_pct} < 100 && $q->{slo_serving_us} > 0;
    }, 60);
    return $q->{slo_shed} - $before;
}

# A request now and then, as many as that in a row without a refusal. How long it took to get there;
# undef: it did not.
sub calm($conn, $request, $many) {
    my $begin = time;
    my ($served, $since) = (0, $begin);
    my $is_calm = wait_until(sub {
        put($conn, $request);
        my $line = read_line($conn);
        die "a wrong reply: $line" if $line !~ /\A(?:END\r\n|\Q$BUSY\E)\z/;
        $served++;
        ($served, $since) = (0, time) if $line eq $BUSY;
        sleep 0.005;
        return $served >= $many;
    }, 60);
    return $is_calm ? $since - $begin : undef;
}

# ---- all are of one class -------------------------------------------------------------------------

# A target that little load keeps on a busy machine as well.
$server = serve('-t', '1', '--slo=p95:80ms');
cmp_ok(overload(100), '>=', 100, 'an overload: some are refused');
my $q = qos();
has($q, 'small ones may wait for a quarter of the target at least', slo_patience_us => ['>=', 20_000],
    slo_patience_us => ['<=', 60_000], slo_serving_us => ['>', 0], slo_serving_us => ['<=', 80_000]);
soon { qos()->{slo_level_pct} == 100 } 'nobody asks: it is over';

if (is_quiet()) {
    cmp_ok(overload(100), '>=', 100, 'another one');
    my $took = calm($server->connect, "get a\r\n", 100);
    ok(defined $took, 'little load: nobody is refused any more');
    note(sprintf 'after %.3f s', $took // 0);
    soon { qos()->{slo_level_pct} == 100 } 'the level says so';
}
exchange($server->control, "qos slo p95:1s\r\n", "OK\r\n");
is(qos()->{slo_patience_us}, '750000.0', 'another target, other patience');
exchange($server->control, "qos slo off\r\n", "OK\r\n");
$q = qos();
is("$q->{slo_patience_us} $q->{slo_serving_us}", '0.0 0.0', 'no target, none');
$server->stop;

# ---- classes below those who have gone ------------------------------------------------------------

# No request waits for less than half a nanosecond: writes are late whatever happens, and all that is
# below them is refused for their sake.
$server = serve('-t', '1', '--slo=write=p50:1ns', {env => slowed(5)});
my %below = map { $_ => $server->connect } qw(bulk background);
exchange($below{$_}, "qos class $_\r\n", "OK\r\n", "a connection is $_") for sort keys %below;
my $writes = $server->connect;
soon {
    put($writes, "delete a\r\n" x 20);
    read_line($writes) for 1 .. 20;
    put($_, "get a\r\n" x 20) for values %below;
    return 0 == grep { read_line($_) ne $BUSY } map { ($_) x 20 } values %below;
} 'all below writes is refused';
ok(defined calm($below{$_}, "get a\r\n", 50), "writes have gone: $_ is served") for sort keys %below;
is(qos()->{slo_level_pct}, '100.0', 'and the level says so');

done_testing();
