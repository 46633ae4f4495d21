#!/usr/bin/env perl
# --admin: an HTTP server that reads and never writes. Pages, refusals, bounds, health.
use MCTest ':ours';

my $dir = scratch_dir();
my $serial = 0;

# A server with the HTTP server on a UNIX socket, and a function that makes connections to that. It
# serves: before, pages are 503.
sub admin_server(@args) {
    my %more = @args && ref $args[-1] ? %{pop @args} : ();
    my $path = "$dir/admin." . ++$serial;
    my $server = serve("--admin=unix:$path", @args, {%more});
    mem_stats($server->control);
    return ($server, sub { my $s = IO::Socket::UNIX->new(Peer => $path) or die "connect: $!"; $s->blocking(0); $s });
}

# The whole answer to these bytes: (status line, {header => value}, content).
sub answer($socket, $bytes) {
    put($socket, $bytes);
    my ($all, $is_closed) = read_until_eof($socket);
    ok($is_closed, show(substr $bytes, 0, 40) . ': the connection is closed');
    my ($head, $content) = split /\r\n\r\n/, $all, 2;
    my ($status, @headers) = split /\r\n/, $head // '';
    return ($status // '', {map { /^([^:]+): (.*)$/ ? (lc $1, $2) : () } @headers}, $content // '');
}

sub get($connect, $path, @headers) {
    return answer($connect->(), join('', "GET $path HTTP/1.1\r\nHost: x\r\n", map({ "$_\r\n" } @headers), "\r\n"));
}

subtest pages => sub {
    my ($server, $connect) = admin_server('-t', '2');
    serves($server);
    my ($status, $head, $content) = get($connect, '/health');
    is($status, 'HTTP/1.1 200 OK', '/health');
    is($content, "ok\n", 'one line');
    has($head, '/health', 'content-type' => 'text/plain; charset=utf-8', 'content-length' => 3,
        'connection' => 'close', 'cache-control' => 'no-store', 'x-content-type-options' => 'nosniff');
    is((get($connect, $_))[0], 'HTTP/1.1 200 OK', $_) for '/health/live', '/health/ready', '/metrics?x=1', '/%6detric%73?';
    is((get($connect, $_))[0], 'HTTP/1.1 404 Not Found', $_) for '/health%00', '/health%', '/health%6', '/health%3F', '/%%6dmetrics';

    ($status, $head, $content) = answer($connect->(), "HEAD /metrics HTTP/1.1\r\nHost: x\r\n\r\n");
    is($status, 'HTTP/1.1 200 OK', 'HEAD');
    cmp_ok($head->{'content-length'}, '>', 5000, 'HEAD: the length of what a GET would bring');
    is($content, '', 'HEAD: no content');
    ($status, $head, $content) = answer($connect->(), "GET /health HTTP/1.0\r\n\r\n");
    like($status, qr{^HTTP/1\.\d 200 OK$}, 'HTTP/1.0');
    is($content, "ok\n", 'HTTP/1.0: content');

    ($status, $head, $content) = get($connect, '/nothing');
    is($status, 'HTTP/1.1 404 Not Found', 'an unknown path');
    like($content, qr{/health .*/metrics}, 'an unknown path: which there are');
    for my $method (qw(POST PUT DELETE OPTIONS PATCH)) {
        ($status, $head) = answer($connect->(), "$method /metrics HTTP/1.1\r\nHost: x\r\nContent-Length: 0\r\n\r\n");
        is($status, 'HTTP/1.1 405 Method Not Allowed', $method);
        is($head->{allow}, 'GET, HEAD', "$method: Allow");
    }
    is((answer($connect->(), "POST /health HTTP/1.1\r\nHost: x\r\nContent-Length: 3\r\n\r\nabc"))[0],
        'HTTP/1.1 405 Method Not Allowed', 'POST with a body');
    my $sock = $connect->();
    put($sock, $_) for "GE", "T /hea", "lth HTTP/1.1\r\nHo", "st: x\r\n";
    is((answer($sock, "\r\n"))[2], "ok\n", 'a request in pieces');
    is((answer($connect->(), "$_\r\n\r\n"))[0], 'HTTP/1.1 400 Bad Request', 'no HTTP: ' . show($_))
        for 'nonsense', 'GET /health', 'GET health HTTP/1.1', 'GET  /health HTTP/1.1', 'GET /health HTTP/2.0',
        "GET /health HTTP/1.1\r\nX: \0", 'GET http:// HTTP/1.1', 'GET http:///health HTTP/1.1', 'GET http://?x HTTP/1.1', '', "get a\r\n";
    is((answer($connect->(), "GET /health HTTP/1.1\r\nX: " . 'x' x 9000 . "\r\n\r\n"))[0],
        'HTTP/1.1 431 Request Header Fields Too Large', 'headers that are too long');
    is((answer($connect->(), "GET http://any/health HTTP/1.1\r\n\r\n"))[2], "ok\n", 'a target with its host');
    like((answer($connect->(), "GET $_ HTTP/1.1\r\n\r\n"))[2], qr/^<!DOCTYPE html>/i, "... and no path: $_")
        for '/', 'http://any', 'HTTP://any:80?x=1', 'http://any/?x=/';
    is((answer($connect->(), "GET /health HTTP/1.1\r\nHost: x\r\n\r\n" x 20))[2], "ok\n", 'one request a connection');
    is((answer($connect->(), "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 100000\r\n\r\n" . 'x' x 100_000))[0],
        'HTTP/1.1 405 Method Not Allowed', 'a long body');
    serves($server);
};

subtest bounds => sub {
    my ($server, $connect) = admin_server('-t', '2');
    my $silent = $connect->();
    my (undef, $is_closed) = read_until_eof($silent);
    ok($is_closed, 'a client that sends nothing is closed');
    my @many = map { $connect->() } 1 .. 20;
    put($_, "GET /hea") for @many;
    is((get($connect, '/health'))[2], "ok\n", 'behind many that send half a request');
    close $_ for splice @many;
    is((get($connect, '/health'))[2], "ok\n", 'when they have left');
};

# With no more descriptors than that takes: -c, and those of the HTTP server.
subtest 'when all connections of clients are used up' => sub {
    my @limited = ('sh', '-c', 'ulimit -n 100 && exec "$@"', 'sh');
    my ($server, $connect) = admin_server('-t', '2', '-c', '76', '-o', 'no_maxconns_fast', {wrap => \@limited});
    my @many = map { $server->connect(no_wait => 1) } 1 .. 90;
    my ($status, undef, $content);
    soon { ($status, undef, $content) = get($connect, '/health'); $status =~ /503/ } '/health is 503';
    like($content, qr/^all \d+ connections of clients are in use \(-c\)$/, 'and says why');
    is((get($connect, '/health/live'))[0], 'HTTP/1.1 200 OK', 'it is alive all the same');
    like((get($connect, '/metrics'))[2], qr/^memcached_accepting_connections 0$/m, 'metrics tell it, too');
    close $_ for splice @many;
    soon { (get($connect, '/health'))[0] =~ /200/ } 'it is ready when they have left';
};

subtest 'while a worker is stuck' => sub {
    my ($server, $connect) = admin_server('-t', '2');
    my $control = $server->connect;
    my $other = $server->connect;
    put($control, "debugitem lock key\r\n");
    is(read_line($control), "OK\r\n", 'a lock of the store is held');
    # Connections go to the workers in turn: the one after is the other worker's.
    put($other, "get key\r\n");
    my ($status, undef, $content);
    is((get($connect, '/metrics'))[0], 'HTTP/1.1 200 OK', 'metrics are there');
    get($connect, '/health'); # from here on the worker owes a pass
    put($control, "debugtime 60\r\n");
    is(read_line($control), "OK\r\n", 'a minute goes by');
    soon { ($status, undef, $content) = get($connect, '/health/live'); $content =~ /^worker \d+ has not responded for \d+ s$/ }
        'it is noticed';
    is($status, 'HTTP/1.1 503 Service Unavailable', 'with 503');
    put($control, "debugitem unlock key\r\n");
    is(read_line($control), "OK\r\n", 'the lock is given back');
    soon { (get($connect, '/health'))[2] eq "ok\n" } 'all is well again';
    expect_bytes($other, "END\r\n", 'the request is answered');
};

subtest listening => sub {
    my $server = serve('--admin=127.0.0.1:0', '-v');
    serves($server);
    log_says($server, qr/HTTP on tcp:127\.0\.0\.1:\d+$/m, 'a free port is told with -v');
    my ($port) = $server->err =~ /HTTP on tcp:127\.0\.0\.1:(\d+)$/m;
    my $tcp = sub { my $s = IO::Socket::INET->new(PeerAddr => '127.0.0.1', PeerPort => $port) or die $!; $s->blocking(0); $s };
    is((get($tcp, '/health'))[2], "ok\n", 'over TCP');
    unlike($server->err, qr/warning.*--admin/, 'no warning on loopback');
    my $run = run_program('-l', '127.0.0.1', '-p', '-1', @AS_ROOT, "--admin=127.0.0.1:$port");
    is($run->{status}, 71, 'a port in use ends the start');
    like($run->{err}, qr/^memcached: --admin: failed to listen on TCP port $port: 127\.0\.0\.1: Address already in use; /m,
        'and says which');
    $run = run_program('-l', '127.0.0.1', '-p', '-1', @AS_ROOT, "--admin=unix:$dir/nowhere/socket");
    is($run->{status}, 71, 'a path that cannot be');
    like($run->{err}, qr{--admin: failed to listen on UNIX socket: \Q$dir\E/nowhere/socket: No such file}, 'is told');
    for my $wrong ('', '127.0.0.1', 'unix:', '127.0.0.1:99999', '127.0.0.1:1,127.0.0.1:2', '127.0.0.1:1;control') {
        $run = run_program('-p', '-1', @AS_ROOT, "--admin=$wrong");
        is($run->{status}, 64, "--admin=$wrong: status");
        like($run->{err}, qr/admin/, "--admin=$wrong: message");
    }
    $run = run_program('-s', "$dir/one;control", "--admin=unix:$dir/one", @AS_ROOT);
    has($run, 'the path of -s, too', status => 64,
        err => "memcached: -s and --admin are on one UNIX socket, $dir/one: give --admin a path of its own\n");
    $run = run_program({command => ['sh', '-c', 'cd "$0" && exec "$@"', $dir, File::Spec->rel2abs(server_binary()), '-s', 'one',
        "--admin=unix:$dir/one", @AS_ROOT]});
    is($run->{status}, 64, '... in other words');
    $server = serve('--admin=0.0.0.0:0');
    is(() = $server->err =~ /^memcached: warning: --admin=.*anything that can reach it.*$/mg, 1,
        'elsewhere: one line of warning');
};

subtest life => sub {
    my ($server, $connect) = admin_server('-t', '2');
    is((get($connect, '/health'))[2], "ok\n", 'it serves');
    my $half = $connect->();
    put($half, 'GET ');
    my $path = "$dir/admin.$serial";
    ok(-S $path, 'the UNIX socket is there');
    is((stat $path)[2] & 0777, 0700, 'its mode is that of -a');
    $server->stop;
    ok(!-e $path, 'and gone at the end');
};

done_testing();
