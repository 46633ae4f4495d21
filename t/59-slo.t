#!/usr/bin/env perl
# --slo refuses requests while others wait for longer than the target, --cpu-limit sets a
# rate by the CPU time that requests cost; both change while the server runs, and stats qos
# tells of them and of the room that there is.
use MCTest ':ours';

my ($s, $server);

sub qos { return mem_stats($server->control, 'qos'); }

# Sends gets, some at a time, until the answer to one of them is what is wanted.
sub gets_until($wanted) {
    my $n = 0;
    return wait_until(sub {
        put($s, "get a\r\n" x 10);
        my $found = 0;
        for (1 .. 10) {
            my $line = read_line($s);
            $found ||= $line =~ $wanted;
            $n++ if $line !~ /\A(END|SERVER_ERROR 307 busy)\r\n\z/;
        }
        return $found || $n;
    }) && !$n;
}

sub test_slo($profile) {
    my $q = qos();
    has($q, 'the target shows, bulk has none', slo => 'p50:10000000us', slo_bulk => 'off');
    is("$q->{slo_level_pct} $q->{slo_shed}", '100.0 0', 'nobody was refused');
    exchange($s, "get a\r\n" x 100, "END\r\n" x 100, 'gets below the target');

    # No request can wait for less than half a nanosecond: a queue stands, whatever happens.
    my $writer = $server->connect;
    exchange($s, "qos slo bulk p99.9:20ms\r\nqos slo total p50:1ns\r\n", "OK\r\n" x 2);
    ok(gets_until(qr/^SERVER_ERROR/), 'above it some are refused');
    exchange($s, "version\r\n" x 100, VERSION_REPLY($profile) x 100, 'control commands are not');
    ok(gets_until(qr/^END/), 'and some are served');
    soon {
        exchange($s, "set b 0 0 3 noreply\r\nabc\r\nversion\r\n" x 20, VERSION_REPLY($profile) x 20,
            'a refused value is swallowed');
        return qos()->{slo_shed_write} > 0;
    } 'as writes are late, too';
    soon {
        put($s, "get a\r\n" x 10);
        read_line($s) for 1 .. 10;
        $q = qos();
        return $q->{slo_level_pct} < 100; # as long as somebody asks
    } 'the level';
    has($q, 'the target of a class', slo_bulk => 'p99.9:20000us', slo_level_pct => ['>=', 9.9],
        slo_shed => ['>=', 1], slo_shed => $q->{slo_shed_small} + $q->{slo_shed_write});
    exchange($s, "qos slo off\r\nqos slo bulk off\r\ndelete a noreply\r\n" . "get a\r\n" x 200,
        "OK\r\n" x 2 . "END\r\n" x 200, 'off: all are served');
    is(qos()->{slo_level_pct}, '100.0', 'and the level says so');
}

sub test_cpu_limit($profile) {
    is(qos()->{cpu_limit}, 'off', 'no cpu limit');
    exchange($s, "qos cpu_limit 150%\r\n", "OK\r\n");
    my $q = qos();
    has($q, 'it shows, beside the other limit', cpu_limit => '150%', qps_limit => 'off');
    soon {
        exchange($s, "get a\r\n" x 50, "END\r\n" x 50, 'requests are measured');
        return qos()->{cpu_limit_rate} > 0;
    } 'a rate is found';
    exchange($s, "qos cpu_limit off\r\n", "OK\r\n");
    is(qos()->{cpu_limit_rate}, 0, 'off');
}

sub test_headroom($profile) {
    soon {
        exchange($s, "get a\r\n" x 20, "END\r\n" x 20, 'load for the gauge');
        return qos()->{qos_capacity_now} > 0;
    } 'a capacity is known';
    my $q = qos();
    has($q, 'headroom', qos_headroom_pct => ['<=', 100], qos_headroom_pct => ['>=', 0]);
    ok(exists $q->{"qos_worker_${_}_capacity"}, "worker $_") for 0, 1;
    ok(exists $q->{$_}, "$_") for qw(qos_rate qos_utilisation_pct qos_predicted_p95_us);
}

each_profile(sub ($profile) {
    ($server, $s) = serve($profile, '-t', '2', '--slo=p50:10s');
    test_slo($profile);
    test_cpu_limit($profile);
    test_headroom($profile);
    exchange($s, "qos $_\r\n", qr/\ACLIENT_ERROR [^\r\n]+\r\n\z/, "'qos $_' is refused") for 'slo p95',
        'slo p95:1', 'slo control p95:1ms', 'slo small bulk off', 'cpu_limit 0', 'cpu_limit x%',
        'cpu_limit 10 20';
    $server = serve($profile, '--cpu-limit=40%', '--slo=small=p95:500us,bulk=p99:20ms');
    my $q = qos();
    is("$q->{cpu_limit} $q->{slo} $q->{slo_small} $q->{slo_bulk}", '40% off p95:500us p99:20000us',
        'options show');
});

done_testing();
