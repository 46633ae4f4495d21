#!/usr/bin/env perl
# Requests fall into classes by what they are, by rules, and by what their connection
# declares; contradictions are refused at the start; no class starves.
use MCTest ':ours';

my @CLASSES = qw(control small write bulk background);

sub classes($server) {
    return mem_stats($server->control, 'classes');
}

# Sends it and takes the reply, no more.
sub ask($sock, $send, $expect) {
    put($sock, $send);
    my $got = read_bytes($sock, length $expect);
    is($got, $expect, 'reply') if $got ne $expect;
}

# What was served in which class by sending this: "small=1 bulk=2". The question itself is a
# control command.
sub served($server, $sock, $send, $expect) {
    my $before = classes($server);
    ask($sock, $send, $expect);
    my $after = classes($server);
    my @deltas;
    for my $class (@CLASSES) {
        my $delta = $after->{"class_${class}_served"} - $before->{"class_${class}_served"};
        $delta -= 1 if $class eq 'control'; # the question itself
        push @deltas, "$class=$delta" if $delta;
    }
    return "@deltas";
}

my $long = 'v' x 9000;

each_profile(sub ($profile) {
    my ($server, $s) = serve($profile, '-t', '1');
    my $get = "VALUE a 0 1\r\n1\r\nEND\r\n";
    for my $case (
        ["set a 0 0 1\r\n1\r\n", "STORED\r\n", 'write=1'],
        ["get a\r\n", $get, 'small=1'],
        ["get a\r\n" x 3, $get x 3, 'small=3'],
        ["get" . " x" x 16 . "\r\n", "END\r\n", 'small=1'],
        ["get" . " x" x 17 . "\r\n", "END\r\n", 'bulk=1'],
        ["gets" . " x" x 100 . "\r\n", "END\r\n", 'bulk=1'],
        ["set big 0 0 9000\r\n$long\r\n", "STORED\r\n", 'bulk=1'],
        ["get big\r\n", "VALUE big 0 9000\r\n$long\r\nEND\r\n", 'bulk=1'],
        ["incr a 1\r\n", "2\r\n", 'small=1'],
        ["touch a 0\r\n", "TOUCHED\r\n", 'small=1'],
        ["append a 0 0 1\r\n1\r\n", "STORED\r\n", 'write=1'],
        ["delete a\r\n", "DELETED\r\n", 'write=1'],
        ["delete a noreply\r\nget a\r\n", "END\r\n", 'small=1 write=1'],
        ["flush_all\r\n", "OK\r\n", 'small=1'],
        ["version\r\n", VERSION_REPLY($profile), 'control=1'],
        ["bogus\r\n", "ERROR\r\n", 'small=1'],
    ) {
        my ($send, $expect, $want) = @$case;
        is(served($server, $s, $send, $expect), $want, 'class of ' . show(substr $send, 0, 30));
    }
    if ($profile eq '1.6') {
        is(served($server, $s, "ms m 1\r\n1\r\n", "HD\r\n"), 'write=1', 'class of ms');
        is(served($server, $s, "mg m v\r\n", "VA 1\r\n1\r\n"), 'small=1', 'class of mg');
        is(served($server, $s, "md m\r\n", "HD\r\n"), 'write=1', 'class of md');
    }

    # a connection declares its class, and takes it back
    exchange($s, "set a 0 0 1\r\n1\r\n", "STORED\r\n");
    for my $class (qw(background bulk write small)) {
        exchange($s, "qos class $class\r\n", "OK\r\n");
        is(served($server, $s, "get a\r\n", $get), "$class=1", "declared $class");
        is(served($server, $s, "get" . " x" x 100 . "\r\n", "END\r\n"), "$class=1", 'and a long get too');
        is(served($server, $s, "version\r\n", VERSION_REPLY($profile)), 'control=1',
            'control commands stay what they are');
    }
    exchange($s, "qos class auto\r\n", "OK\r\n");
    is(served($server, $s, "get" . " x" x 100 . "\r\n", "END\r\n"), 'bulk=1', 'back to what the request tells');
    exchange($s, "qos class $_\r\n", "CLIENT_ERROR usage: qos class <small|write|bulk|background|auto>\r\n")
        for 'control', 'none', 'small bulk', '';

    my $q = mem_stats($s, 'qos');
    is($q->{classes}, 'on', 'classes are on by default');
    is("$q->{bulk_keys} $q->{bulk_bytes} $q->{class_max_wait_us}", '16 8192 5000', 'with these bounds');
    is(join(' ', map { $q->{"class_${_}_share_pct"} } qw(write bulk background)), '10.0 5.0 1.0', 'and shares');
});

# what a connection has been asking for puts its next request in its place before it is read
{
    my ($server, $s) = serve('-t', '1');
    my $send = "get" . " x" x 17 . "\r\n";
    ask($s, $send, "END\r\n") for 1 .. 16;
    my $before = classes($server)->{class_bulk_queued};
    ask($s, "get x\r\n", "END\r\n");
    is(classes($server)->{class_bulk_queued} - $before, 1,
        'after 16 bulk requests even a small one waits among the bulk');
    ask($s, "get x\r\n", "END\r\n");
    is(classes($server)->{class_bulk_queued} - $before, 1, 'the next one does not');

    my $queued = classes($server)->{class_small_queued};
    ask($s, "get x\r\n" x 8, "END\r\n" x 8);
    is(classes($server)->{class_small_queued} - $queued, 0, 'a burst runs where it is read');
    ask($s, "get x\r\n", "END\r\n");
    is(classes($server)->{class_small_queued} - $queued, 1, 'what comes after it waits');
    ask($s, "get x\r\n", "END\r\n");
    is(classes($server)->{class_small_queued} - $queued, 1, 'once');
    ask($s, "get x\r\n" x 64, "END\r\n" x 64);
    my $turns = classes($server)->{class_small_queued} - $queued; # time ends some, too
    cmp_ok($turns, '>=', 4, '64 in a row take four turns at least');
    ask($s, "get x\r\n", "END\r\n");
    is(classes($server)->{class_small_queued} - $queued, $turns + 1, 'and make it wait');
}

# listeners, and what goes before what: connection, client, listener, key, request
{
    my $server = serve('-t', '1', '-p', '-1', '-l', '127.0.0.1;class=background,127.0.0.1', '-l',
        '127.0.0.1:0;class=small', '--class-rule=key:batch:=background', '--class-rule=key:batch:now:=small',
        '--class-rule=key:w=write', {listen => 0});
    my @ports = map { $_->[1] } @{$server->{ports}};
    is(scalar(@ports), 3, 'three listeners');
    my ($background, $plain, $small) = map {
        local $server->{port} = $_;
        $server->connect;
    } @ports;
    $server->{port} = $ports[1];
    my $long_get = 'get' . ' x' x 100 . "\r\n";
    my $miss = "END\r\n";
    is(served($server, $background, "get a\r\n", $miss), 'background=1', 'class of a listener');
    is(served($server, $background, "get batch:now:1\r\n", $miss), 'background=1',
        'it goes before that of a key');
    is(served($server, $small, $long_get, $miss), 'small=1', 'and before what a request is');
    is(served($server, $plain, "get a\r\n", $miss), 'small=1', 'a listener without');
    is(served($server, $plain, "get batch:1\r\n", $miss), 'background=1', 'class of a key');
    is(served($server, $plain, "$_\r\n", "EN\r\n"), 'background=1', "... in a meta command: $_")
        for 'mg batch:1 v', 'mg YmF0Y2g6MQ== v b'; # the same key
    is(served($server, $plain, "ms YmF0Y2g6OQ== 1 b\r\nx\r\n", "HD\r\n"), 'background=1', '... which stores');
    is(served($server, $plain, "get batch:now:1\r\n", $miss), 'small=1', 'the longest prefix');
    is(served($server, $plain, "get batch:now:" . ' x' x 99 . "\r\n", $miss), 'small=1',
        'the first key tells, whatever follows');
    is(served($server, $plain, "get w" . ' x' x 99 . "\r\n", $miss), 'write=1', 'any class');
    is(served($server, $plain, "set batch:now:1 0 0 1\r\n1\r\n", "STORED\r\n"), 'small=1',
        'of a store as well');
    is(served($server, $plain, "get \r\nget batch:1\r\n", "CLIENT_ERROR bad command line format\r\n$miss"),
        'small=1 background=1', 'a bad line has no key');
    exchange($background, "qos class bulk\r\n", "OK\r\n");
    is(served($server, $background, "get a\r\n", $miss), 'bulk=1',
        'what a connection says goes before its listener');
    $server->stop;

    $server = serve('-t', '1', '-p', '-1', '-l',
        '127.0.0.1;class=bulk', '--class-rule=peer:127.0.0.0/8=background',
        '--class-rule=peer:127.0.0.1=write', '--class-rule=peer:10.0.0.0/8=small', {listen => 0});
    my $s = $server->connect;
    is(served($server, $s, "get a\r\n", $miss), 'write=1',
        'a client goes before its listener, and the smallest network counts');
    exchange($s, "qos class small\r\n", "OK\r\n");
    is(served($server, $s, "get a\r\n", $miss), 'small=1', 'the connection before both');
    $server->stop;

    my $path = scratch_dir() . '/classes.sock';
    ($server, $s) = serve('-t', '1', '-s', "$path;class=background", {path => $path});
    is(served($server, $s, "get a\r\n", $miss), 'background=1', 'class of a UNIX socket');
}

# off: order of arrival, one class, nothing waits
{
    my ($server, $s) = serve('-t', '1', '--classes=off', '--class-rule=peer:127.0.0.0/8=background');
    exchange($s, "set big 0 0 9000\r\n$long\r\n", "STORED\r\n");
    is(served($server, $s, "get big" . ' x' x 100 . "\r\n" . "get x\r\n" x 8,
            "VALUE big 0 9000\r\n$long\r\nEND\r\n" . "END\r\n" x 8), 'small=9', 'off: one class');
    is(mem_stats($s, 'classes')->{class_small_queued}, 0, 'off: nothing is deferred');
    roundtrip($s, "get x\r\n" x 64, "END\r\n" x 64);
    cmp_ok(mem_stats($s, 'classes')->{class_small_queued}, '>=', 3, 'off: -R holds');
    exchange($s, "qos $_\r\n", "CLIENT_ERROR classes are off: start the server with --classes=on\r\n")
        for 'class bulk', 'qps_limit write 100', 'slo bulk p99:20ms';
    exchange($s, "qos $_\r\n", "OK\r\n") for 'qps_limit small 1m', 'qps_limit write off', 'slo small p99:9s', 'slo bulk off';
    is(mem_stats($s, 'qos')->{classes}, 'off', 'off: said so');
}

# thresholds
{
    my ($server, $s) = serve('-t', '1', '--bulk-keys=2', '--bulk-bytes=10');
    is(served($server, $s, "get a b\r\n", "END\r\n"), 'small=1', 'at --bulk-keys');
    is(served($server, $s, "get a b c\r\n", "END\r\n"), 'bulk=1', 'above --bulk-keys');
    is(served($server, $s, "set a 0 0 10\r\n0123456789\r\n", "STORED\r\n"), 'write=1', 'at --bulk-bytes');
    is(served($server, $s, "set a 0 0 11\r\n01234567890\r\n", "STORED\r\n"), 'bulk=1', 'above --bulk-bytes');
    is(served($server, $s, "get a\r\n", "VALUE a 0 11\r\n01234567890\r\nEND\r\n"), 'bulk=1',
        'and what is found');
}

# what is wrong is said in one line
for my $case (
    ['--classes=maybe', 'on or off'],
    [['--classes=off', '--qps-limit=write=100'], 'needs --classes=on'],
    [['--classes=off', '--slo=bulk=p99:20ms'], 'needs --classes=on'],
    ['--bulk-keys=0', 'bulk-keys'],
    ['--bulk-bytes=0', 'bulk-bytes'],
    ['--class-rule=peer:10.0.0.0/99=bulk', 'not a network'],
    ['--class-rule=key:a=huge', 'class must be'],
    ['--class-rule=key:a=control', 'class must be'],
    ['--class-rule=nonsense', 'must be peer:NETWORK=CLASS'],
    [['--class-rule=key:a=bulk', '--class-rule=key:a=small'], 'another rule'],
    [['--class-rule=peer:10.0.0.0/8=bulk', '--class-rule=peer:10.1.0.0/8=small'], 'another rule'],
    ['--class-shares=write:50,bulk:50', 'more than 90 percent'],
    ['--class-shares=small:10', 'class-shares must be'],
    ['--class-max-wait=5', 'class-max-wait must be'],
    ['--class-max-wait=1us', 'from 100us to 10s'],
    [['-s', scratch_dir() . '/x;class=huge'], 'Invalid class of a listener: "huge"'],
    [['-p', '-1', '-l', '127.0.0.1;class=control'], 'Invalid class of a listener: "control"'],
    [['-p', '-1', '-l', '127.0.0.1;class='], 'Invalid class of a listener: ""'],
) {
    my ($args, $want) = @$case;
    my @args = ref $args ? @$args : ($args);
    my $run = run_program(@args, @AS_ROOT);
    isnt($run->{status}, 0, "@args: refused");
    like($run->{err}, qr/\Q$want\E/, "@args: the reason");
    is(($run->{err} =~ tr/\n//), 1, "@args: in one line") or diag($run->{err});
}

# more small requests than the worker can serve, and each class gets on
{
    my ($server, $s) = serve('-t', '1', '--class-max-wait=1ms');
    exchange($s, "set a 0 0 1\r\n1\r\n", "STORED\r\n");
    my @flood;
    for (1 .. 2) {
        push @flood, in_child(sub {
            my @socks = map { $server->connect } 1 .. 8;
            my $burst = "get a\r\n" x 64;
            while (1) {
                put($_, $burst) for @socks;
                read_bytes($_, length("VALUE a 0 1\r\n1\r\nEND\r\n") * 64) for @socks;
            }
        });
    }
    my $before = classes($server);
    wait_until(sub { classes($server)->{class_small_served} > $before->{class_small_served} + 1000 });
    for my $class (qw(write bulk background)) {
        my $c = $server->connect;
        exchange($c, "qos class $class\r\n", "OK\r\n");
        my $start = classes($server);
        my ($end, $asked) = (undef, 0);
        # Until the flood had a CPU meanwhile, too.
        soon {
            for (1 .. 50) {
                roundtrip($c, "get a\r\n", "VALUE a 0 1\r\n1\r\nEND\r\n") eq "VALUE a 0 1\r\n1\r\nEND\r\n" or last;
                $asked++;
            }
            $end = classes($server);
            $end->{class_small_served} > $start->{class_small_served};
        } "$class: the flood goes on meanwhile";
        is($end->{"class_${class}_served"} - $start->{"class_${class}_served"}, $asked,
            "$class gets on beside a flood of small requests");
        cmp_ok($end->{"class_${class}_turns"} - $start->{"class_${class}_turns"}, '>=', $asked, "$class had its turns");
        is($asked % 50, 0, '... each time');
        is($end->{"class_${class}_waiting"}, 0, '... and none waits now');
    }
    kill 'KILL', @flood;
    waitpid $_, 0 for @flood;
    my $c = classes($server);
    for my $class (qw(small write bulk background)) {
        for my $what (qw(wait service)) {
            ok((grep { defined $c->{"class_${class}_${what}_${_}_us"} } qw(p50 p95 p99 max)) == 4,
                "$class: quantiles of $what");
        }
    }
}

done_testing();
