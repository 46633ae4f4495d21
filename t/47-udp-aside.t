#!/usr/bin/env perl
# A datagram whose request waits, for a token or for its turn, does not hold up those of other
# sources behind it in the same socket; those of its own source keep their order behind it.
use MCTest ':ours';

my ($server, $s);

sub begin {
    $server = serve('-t', '1', '-U', '-1', @_);
    $s = $server->control;
}

sub qos { return mem_stats($s, 'qos')->{$_[0]}; }

# The server has read them: the kernel's buffer is short.
sub post_surely($sock, $first, $last, $request) {
    my $before = qos('udp_received');
    udp_request($sock, $request, $_) for $first .. $last;
    my $count = $last - $first + 1;
    soon { qos('udp_received') == $before + $count } "$first to $last are read";
}

# id and payload of the next datagram, or nothing.
sub hear($sock) {
    my ($payload, $id) = udp_reply($sock) or return 'nothing';
    return "$id $payload";
}

my $many = 'get' . ' x' x 17 . "\r\n";

# A bulk request without a token: it would take minutes.
{
    begin('--qps-limit=bulk=1,burst=1');
    my ($slow, $other) = ($server->udp, $server->udp);
    udp_request($slow, $many, 1);
    is(hear($slow), "1 END\r\n", 'the only token');
    post_surely($slow, 2, 61, $many);
    for my $id (1 .. 3) {
        udp_request($other, "get a\r\n", $id);
        is(hear($other), "$id END\r\n", "another source does not wait: $id");
    }
    udp_request($slow, "get a\r\n", 62);
    cmp_ok(qos('udp_aside'), '>=', 1, 'udp_aside counts who waits');
    is(qos('udp_overflowed'), 0, 'nothing was lost');
    exchange($s, "qos qps_limit bulk off\r\n", "OK\r\n");
    my @ids = map { (split ' ', hear($slow))[0] } 2 .. 62;
    is_deeply(\@ids, [2 .. 62], 'its own are answered in order');

    # what a source may have waiting is bounded, and it alone loses
    exchange($s, "qos qps_limit bulk 1 1\r\n", "OK\r\n");
    post_surely($slow, 100 * $_, 100 * $_ + 99, $many) for 1 .. 4;
    cmp_ok(qos('udp_overflowed'), '>=', 100, 'too many: lost');
    udp_request($other, "get a\r\n", 4);
    is(hear($other), "4 END\r\n", 'the other source does not notice');

    # large ones by their bytes
    my $large = $server->udp;
    my $before = qos('udp_overflowed');
    my $set = "set a 0 0 20000\r\n" . 'v' x 20000 . "\r\n";
    post_surely($large, $_, $_, $set) for 1 .. 20;
    cmp_ok(qos('udp_overflowed'), '>', $before, 'too large together: lost');
    udp_request($other, "get b\r\n", 5);
    is(hear($other), "5 END\r\n", 'nor does it now');
    exchange($s, "qos qps_limit bulk off\r\n", "OK\r\n");
    is(hear($large), "1 STORED\r\n", 'what waited is served');
    $server->stop;
}

# More sources than may wait: the rest hold up the socket, and nothing is lost.
{
    begin('--qps-limit=bulk=1,burst=1');
    my @sources = map { $server->udp } 1 .. 200;
    udp_request($_, $many, 7) for @sources;
    my $alone = $server->udp;
    udp_request($alone, "get a\r\n", 8);
    soon { qos('udp_aside') >= 128 } '128 wait aside';
    exchange($s, "qos qps_limit bulk off\r\n", "OK\r\n");
    is_deeply([grep { hear($_) ne "7 END\r\n" } @sources], [], 'each is answered');
    is(hear($alone), "8 END\r\n", 'and who came last');
    $server->stop;
}

# The end: what has arrived is answered, aside, behind that, and in the socket.
{
    begin('--qps-limit=bulk=1,burst=1');
    my @sources = map { $server->udp } 1 .. 150;
    udp_request($_, $many, 7) for @sources;
    udp_request($sources[0], "get a\r\n", 8);
    soon { qos('udp_aside') >= 128 } '128 wait aside';
    $server->stop;
    is_deeply([grep { hear($_) ne "7 END\r\n" } @sources], [], 'a server that ends answers each');
    is(hear($sources[0]), "8 END\r\n", '... in order');
}

# What they wait for then was wanted: it is not what --slo looks at. The last ones wait for two seconds,
# far longer than any has to wait for a CPU.
{
    begin('--qps-limit=small=200,burst=1', '--slo=p95:250ms');
    my @sources = map { $server->udp } 1 .. 400;
    my $read = qos('udp_received');
    for my $i (0 .. $#sources) {
        udp_request($sources[$i], "get a\r\n", 7);
        # So many fit into the kernel's buffer, whenever the server reads it.
        wait_until(sub { qos('udp_received') == $read + $i + 1 }) if $i % 50 == 49;
    }
    is_deeply([grep { hear($_) ne "7 END\r\n" } @sources], [], 'more than may wait aside: none is refused');
    is(qos('slo_shed'), 0, 'nor counted');
    $server->stop;
}

# For a turn: whatever the class, one source's order is kept. A second of the server is long: there is one
# token in it.
{
    begin({env => slowed(200)});
    my @sources = map { $server->udp } 1 .. 20;
    my $long = 'v' x 3000;
    for my $round (1 .. 5) {
        my $i = 0;
        for my $source (@sources) {
            my $key = 'k' . ++$i;
            udp_request($source, "set $key 0 0 3000\r\n$long\r\n", 1);
            udp_request($source, "get $key\r\n", 2);
            udp_request($source, "delete $key\r\nget $key\r\n", 3);
        }
        my @bad = grep {
            my $source = $_;
            my @heard = map { hear($source) } 1 .. 6;
            $heard[0] ne "1 STORED\r\n" || $heard[1] !~ /^2 VALUE k\d+ 0 3000\r\n/
                || $heard[4] ne "3 DELETED\r\n" || $heard[5] ne "3 END\r\n";
        } @sources;
        is(scalar(@bad), 0, "round $round: in order");
    }
    # refused ones, too
    exchanges($s, ["qos action error\r\n", "OK\r\n"], ["qos qps_limit write 1 1\r\n", "OK\r\n"]);
    my $u = $sources[0];
    udp_request($u, "set a 0 0 1\r\n1\r\n", 1);
    is(hear($u), "1 STORED\r\n", 'a token');
    udp_request($u, "set a 0 0 1\r\n2\r\n", 2);
    udp_request($u, "get a\r\n", 3);
    is(hear($u), "2 SERVER_ERROR 307 busy\r\n", 'a refused one');
    is(hear($u), "3 VALUE a 0 1\r\n1\r\nEND\r\n", 'and the next');
    $server->stop;
}

# Replies that are collected at the same time have the room of one together.
{
    begin();
    exchange($s, "set a 0 0 2000\r\n" . 'v' x 2000 . "\r\n", "STORED\r\n");
    my $before = proc_status($server->pid, 'VmHWM');
    my @sources = map { $server->udp } 1 .. 8;
    kill 'STOP', $server->pid; # until all are there
    wait_until(sub { is_stopped($server) });
    udp_request($_, 'get' . ' a' x 29_000 . "\r\n", 1) for @sources;
    kill 'CONT', $server->pid;
    soon { qos('udp_refused') > 0 } 'what does not fit is refused';
    my $other = $server->udp; # whose own buffer is not full
    udp_request($other, "get a\r\n", 2);
    like(hear($other), qr/^2 VALUE a 0 2000\r\n/, 'and the socket is served as ever');
    # A sanitizer's own notes of each byte are several bytes.
    my $factor = $ENV{TSAN_OPTIONS} ? 5 : 1;
    cmp_ok(proc_status($server->pid, 'VmHWM') - $before, '<', $factor * 200_000, 'kB more than before');
    $server->stop;
}

# The end, while somebody waits.
{
    begin('--qps-limit=bulk=1,burst=1');
    my @sources = map { $server->udp } 1 .. 10;
    for my $source (@sources) {
        udp_request($source, $many, $_) for 1 .. 10;
    }
    soon { qos('udp_received') == 100 } 'all are read';
    $server->stop;
}

done_testing();
