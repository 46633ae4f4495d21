#!/usr/bin/env perl
# What happens above a limit: errors, misses, long waits that become errors, and dry runs, in
# every protocol; limits of a class and of an address; keys as the unit; all of it changed
# while the server runs.
use MCTest ':ours';
use MCBinary;

my $BUSY = "SERVER_ERROR 307 busy\r\n";
my ($s, $server);

sub qos { return mem_stats($server->control, 'qos'); }

# No token comes for a thousand seconds: a multiget has taken them, counted by keys.
sub empty(@limit) {
    my $c = $server->connect;
    exchange($c, "qos $_\r\n", "OK\r\n") for 'action delay', 'unit key', "@limit 1 1";
    exchange($c, 'get' . ' d' x 1000 . "\r\n", "END\r\n", 'a get of a thousand keys');
    exchange($c, "qos unit cmd\r\n", "OK\r\n");
}

# What the binary client $b hears, all of it: the text protocol's "version" would end it.
sub exchange_binary {
    my ($b, $send, $expect, $name) = @_;
    put($b, $send);
    is(read_bytes($b, length $expect), $expect, $name);
}

sub test_error($profile) {
    exchange($s, "qos action error\r\n", "OK\r\n");
    my $rejected = qos()->{qps_rejected};
    exchanges($s, ["get a\r\n", $BUSY], ["get a b c\r\n", $BUSY, 'a multiget']);
    exchange($s, "gat 0 a\r\n", $BUSY, 'gat') if $profile eq '1.6';
    exchanges($s, ["set a 0 0 5\r\nhello\r\nget a\r\n", $BUSY x 2, 'the value is swallowed'],
        ["set a 0 0 50000\r\n" . 'x' x 50000 . "\r\nversion\r\n", $BUSY . VERSION_REPLY($profile),
            'a long one as well'],
        ["set a 0 0 5 noreply\r\nhello\r\nincr a 1 noreply\r\nversion\r\n", VERSION_REPLY($profile),
            'who wants no reply gets none'], ["incr a 1\r\ndelete a\r\ntouch a 1\r\n", $BUSY x 3],
        ["mg a v q\r\nms a 2\r\nhi\r\nmd a\r\nma a\r\n", $BUSY x 4, 'meta'],
        ["ms a 2 q\r\nhi\r\nmd a q\r\nmn\r\n", "MN\r\n", 'quiet writes'],
        ['get ' . join(' ', map { "key$_" } 1 .. 9000) . "\r\nversion\r\n", $BUSY . VERSION_REPLY($profile),
            'a line longer than the buffer']);
    my $b = $server->connect;
    exchange_binary($b, @$_) for [request(0x00, 'a'), error_bytes(0x00, 0x85, 'busy'), 'binary get'],
        [request(0x09, 'a'), error_bytes(0x09, 0x85, 'busy'), 'a quiet read is told'],
        [request(0x01, 'a', "\0" x 8, 'val'), error_bytes(0x01, 0x85, 'busy'), 'binary set'],
        [request(0x11, 'a', "\0" x 8, 'val') . request(0x0a), error_bytes(0x0a, 0, ''), 'a quiet write is not'];
    cmp_ok(qos()->{qps_rejected} - $rejected, '>=', 20, 'all are counted');
    is(mem_stats($server->control)->{cmd_set}, 1, 'nothing was stored');
}

sub test_miss($profile) {
    exchanges($s, ["qos action miss\r\n", "OK\r\n"], ["get a b\r\n", "END\r\n"],
        ["set a 0 0 5\r\nhello\r\nadd a 0 0 1\r\n1\r\n", "NOT_STORED\r\n" x 2],
        ["cas a 0 0 1 5\r\n1\r\nincr a 1\r\ndelete a\r\ntouch a 1\r\n", "NOT_FOUND\r\n" x 4],
        ["mg a v k O7\r\nmg a q\r\nms a 2 k\r\nhi\r\nmd a O1\r\nma a\r\nme a\r\n",
            "EN ka O7\r\nNS ka\r\nNF O1\r\nNF\r\nEN\r\n", 'meta'],
        ["flush_all\r\n", $BUSY, 'what has no miss']);
    my $b = $server->connect;
    exchange_binary($b, @$_) for [request(0x00, 'a'), error_bytes(0x00, 1, 'Not found'), 'binary get'],
        [request(0x09, 'a') . request(0x0a), error_bytes(0x0a, 0, ''), 'a quiet get misses in silence'],
        [request(0x01, 'a', "\0" x 8, 'val'), error_bytes(0x01, 5, 'Not stored.'), 'binary set'];
}

sub test_waits($profile) {
    exchange($s, "qos action delay:10s+error\r\n", "OK\r\n");
    exchange($s, "get a\r\n", $BUSY, 'who would wait for too long hears so at once');
    is(qos()->{qps_action}, 'delay:10000ms+error', 'shown');
    my $before = qos();
    exchange($s, "qos dry_run on\r\n", "OK\r\n");
    exchange($s, "get a\r\n" x 5, "VALUE a 0 1\r\n1\r\nEND\r\n" x 5, 'a dry run lets pass');
    my $after = qos();
    is($after->{qps_would_limit} - $before->{qps_would_limit}, 5, 'and counts');
    is($after->{qps_admitted_small} - $before->{qps_admitted_small}, 5, 'by class');
    is($after->{qps_dry_run}, 'on', 'shown');
    exchange($s, "qos dry_run off\r\n", "OK\r\n");
    my $waiting = $server->connect;
    exchange($s, "qos action delay\r\n", "OK\r\n");
    put($waiting, "get a\r\n");
    soon { grep { /waiting/ } stat_lines($server->control, 'conns') } 'one waits';
    exchange($s, "qos dry_run on\r\n", "OK\r\n");
    is(read_bytes($waiting, 19), "VALUE a 0 1\r\n1\r\nEND", 'a dry run ends its wait');
    exchange($s, "qos dry_run off\r\n", "OK\r\n");
}

sub test_classes($profile) {
    exchange($s, "qos qps_limit off\r\n", "OK\r\n");
    empty('qps_limit bulk');
    exchange($s, "qos action error\r\n", "OK\r\n");
    my $before = qos();
    my $bulk = 'get' . ' a' x 100 . "\r\n";
    exchange($s, "$bulk${bulk}get b\r\n", $BUSY x 2 . "END\r\n", 'bulk has its own limit');
    my $after = qos();
    has($after, 'its limit, not that of all', qps_limit_bulk => 1, qps_limit => 'off');
    is($after->{qps_rejected_bulk} - $before->{qps_rejected_bulk}, 2, 'what it rejects');
    is($after->{qps_rejected_small}, $before->{qps_rejected_small}, 'not of others');
    exchange($s, "qos qps_limit bulk off\r\n", "OK\r\n");
    empty('peer');
    exchange($s, "qos action error\r\n", "OK\r\n");
    exchange($server->connect, "get a\r\n", $BUSY, 'the address is known on other connections');
    my $other = IO::Socket::INET->new(PeerAddr => '127.0.0.1', PeerPort => $server->port,
        LocalAddr => '127.0.0.2');
    SKIP: {
        skip 'cannot bind 127.0.0.2', 1 if !$other;
        print $other "get b\r\n";
        is(scalar(<$other>), "END\r\n", 'another address is not limited');
    }
    exchanges($s, ["qos peer off\r\n", "OK\r\n"], ["get b\r\n", "END\r\n"]);
}

sub test_udp($profile) {
    my $u = $server->udp;
    for my $case (['error', "get a\r\n", $BUSY], ['miss', "set a 0 0 1\r\n1\r\n", "NOT_STORED\r\n"],
        ['error', "set a 0 0 1\r\n1\r\n", $BUSY])
    {
        my ($action, $send, $expect) = @$case;
        exchange($s, "qos action $action\r\n", "OK\r\n");
        udp_request($u, $send, 77);
        is(join(' ', udp_reply($u)), "$expect 77", "UDP, action $action");
    }
}

each_profile(sub ($profile) {
    ($server, $s) = serve($profile, '-t', '2', '-U', '-1');
    exchange($s, "set a 0 0 1\r\n1\r\n", "STORED\r\n");
    empty('qps_limit');
    test_error($profile);
    test_miss($profile);
    test_waits($profile);
    test_udp($profile);
    test_classes($profile);
    exchange($s, "qos $_\r\n", qr/\ACLIENT_ERROR [^\r\n]+\r\n\z/, "'qos $_' is refused") for 'qps_limit 0',
        'qps_limit 1001m', 'qps_limit control 5', 'qps_limit bulk', 'peer 11m', 'peer x', 'action drop',
        'action delay:5+error', 'unit keys', 'dry_run maybe', 'qps_limit bulk 5 0';
    $server->stop;
    $server = serve($profile, '--qps-limit=total=10m,burst=50,bulk=2k', '--qps-limit-peer=10m',
        '--qps-limit-action=delay:50ms+error', '--qps-limit-unit=key', '--qps-limit-dry-run');
    my $q = qos();
    is(join(' ', map { "$_=$q->{$_}" } qw(qps_limit qps_burst qps_limit_bulk qps_limit_small
            qps_limit_peer qps_action qps_unit qps_dry_run)),
        'qps_limit=10000000 qps_burst=50 qps_limit_bulk=2000 qps_limit_small=off '
        . 'qps_limit_peer=10000000 qps_action=delay:50ms+error qps_unit=key qps_dry_run=on',
        'options show');
    $server->stop;
});

done_testing();
