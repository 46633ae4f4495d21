#!/usr/bin/env perl
# Where mcload sends to: ranges of ports, files of servers, UNIX sockets, TLS, and secrets that
# do not stand on its command line.
use MCTest;
use MCLoad;
use MCTestd;
use MCTLS;

my $dir = scratch_dir();

# A short run that stores its records first.
sub short_run { return mcload_json('-r', '50', '-t', 100, '--until=n:200', '-u', '0.1', @_); }

# It must find them all.
sub finds($name, @args) {
    return found_all($name, short_run(@args));
}

sub found_all($name, $run) {
    ended_ok($run, $name);
    my $json = $run->{json};
    cmp_ok($json->{'totals.gets'} // 0, '>', 0, "$name: gets");
    is($json->{'totals.hits'}, $json->{'totals.keys'}, "$name: all hits");
    is(join(' ', grep { /^errors\./ && $json->{$_} } sort keys %$json), '', "$name: no errors");
    return $run;
}

sub refuses($name, $status, $message, @args) {
    has(mcload('-r', '10', '-t', '0.1', @args), "$name: status $status, a line says so, no table",
        status => $status, err => qr/^mcload: [^\n]*$message[^\n]*\n\z/, out => '');
}

# ---- several servers ----------------------------------------------------------------------

{
    # Ports in a row are not to be had for sure: mcload is told of a range of one.
    my @testd = map { start_testd() } 1 .. 3;
    my ($a, $b, $c) = map { $_->{port} } @testd;
    my $comment = 'of any length 127.0.0.1:1 ' x 100;
    my $file = scratch_file('servers', "# three\n# $comment\n127.0.0.1:$a\n\n  tcp://127.0.0.1:$b \n");
    my $run = short_run('--servers-file', $file, '-s', "127.0.0.1:$c-$c", '-c', 2);
    my @did = map { stop_testd($_) } @testd;
    found_all('a file, a range and a name', $run);
    is($run->{json}{'totals.loaded'}, 150, 'each server got each record');
    for my $did (@did) {
        my %conns = map { $_->{conn} => 1 } grep { $_->{verb} eq 'get' } @{$did->{rows}};
        is(scalar keys %conns, 2, 'a server has two connections that read');
    }
    my @rows = map { scalar @{$_->{rows}} } @did;
    cmp_ok($_, '>', 50, 'and a share of the requests') for @rows;
}

# With a thread for each server, no server is shown requests that it never saw.
{
    my @testd = map { start_testd('--value=10') } 1 .. 2;
    my @at = map { "127.0.0.1:$_->{port}" } @testd;
    my $run = mcload_json((map { ('-s', $_) } @at), '-R', '-T', 2, '--noload', '-r', 50, '-q', 2000, '-t', 100,
        '--until=n:400');
    my %shown = ($run->{json}{servers} // '') =~ /"name": "([^"]+)", "requests": (\d+)/g;
    my @seen = map { scalar @{stop_testd($_)->{rows}} } @testd;
    cmp_ok($shown{$at[$_]} // -1, '<=', $seen[$_], "-R: requests of server $_, as far as it saw them") for 0, 1;
    is($shown{$at[0]} + $shown{$at[1]}, $run->{json}{'latency.issue.count'}, '-R: all of them are shown');
}

# As gengetopt's programs take what may be given several times.
{
    my @testd = map { start_testd() } 1 .. 2;
    my $list = join ',', map { "127.0.0.1:$_->{port}" } @testd;
    my $run = finds('a list with commas', "--server=$list");
    is($run->{json}{'totals.loaded'}, 100, 'each of its servers got each record');
    stop_testd($_) for @testd;
}

refuses('a range that is none', 1, 'FIRST-LAST', '-s', '127.0.0.1:20-10');
refuses('a port above all', 1, 'FIRST-LAST', '-s', '127.0.0.1:65530-65536');
refuses('another transport', 1, 'transports are tcp, unix, udp and tls', '-s', 'quic://localhost');
refuses('a protocol in its place', 1, '"redis://localhost:1": redis is no transport: write localhost:1 --protocol=redis',
    '-s', 'redis://localhost:1');
refuses('another transport for all', 1, 'transports are', '--transport=quic');
refuses("no address: $_", 1, 'is not host', '-s', $_) for '', ':1', 'a:', '[::1';
# getaddrinfo(3) would take them for 34463 and 1.
refuses("port $_", 1, 'a port is between 1 and 65535', '-s', "127.0.0.1:$_") for 0, 99999, 65537;
refuses('a port above all of an agent', 2, 'a port is between 1 and 65535', '-a', '127.0.0.1:99999');
refuses('a list with a hole', 1, 'is not host', '-s', '127.0.0.1:1,,127.0.0.1:2');
refuses('an empty file of servers', 1, 'no servers in it', '--servers-file',
    scratch_file('empty', "# none\n\n"));
refuses("a file that is no text", 1, 'not a text', '--servers-file', scratch_file('nul', "127.0.0.1:1\0\n"));
refuses('a file that is too long', 1, 'too long', '--servers-file', '/dev/zero');
refuses('numbers that are no text', 1, 'no text', '-i', 'gaps:/dev/zero');
refuses('no file of servers', 1, 'No such file', '--servers-file', "$dir/none");
refuses('a UNIX socket without a path', 1, 'needs --server=PATH', '--transport=unix');
refuses('a range into nothing', 2, 'cannot connect to 127\.0\.0\.1:1: ', '-s', '127.0.0.1:1-2');

# What a server says of a record that it does not take.
{
    my $server = serve('-I', '16k');
    refuses('values that are too large', 2, 'answered SERVER_ERROR object too large for cache instead',
        '-s', $server->at, '-V', 20000);
}

{
    my $server = serve('-s', "$dir/socket", {path => "$dir/socket"});
    finds($_->[0], @$_) for ['-s', "unix:$dir/socket"], ['-s', "unix://$dir/socket"], ['-s', "$dir/socket",
        '--transport=unix'];
}

# ---- servers that share the keys ----------------------------------------------------------

# What a real client finds where it looks: "FOUND of ASKED".
my $client = <<'PY';
import sys, pylibmc
behaviors = {'modulo': {}, 'ketama': {'ketama': True}, 'ketama-weighted': {'ketama_weighted': True}}
c = pylibmc.Client(sys.argv[2].split(','), behaviors=behaviors[sys.argv[1]])
keys = ['%030d' % i for i in range(200)]
print(sum(c.get(k) is not None for k in keys), 'of', len(keys))
PY
my ($python) = grep { system("$_ -c 'import pylibmc' 2>/dev/null") == 0 } 'python3', '/usr/bin/python3';
for my $hash (qw(modulo ketama ketama-weighted jump)) {
    my @servers = map { start_server() } 1 .. 3;
    my @at = map { $_->at } @servers;
    my @common = ((map { ('-s', $_) } @at), "--hash=$hash", '-r', 200);
    my $run = run_ok("$hash, closed loop", @common, @BRIEFLY, '-T', 2, '-c', 2, '-u', '0.2', '--verify=1');
    my $json = $run->{json};
    is($json->{'totals.loaded'}, 200, "$hash: each record is stored once");
    is($json->{'totals.hits'}, $json->{'totals.keys'}, "$hash: and found where it is asked for");
    my @items = map { mem_stats($_->control)->{curr_items} } @servers;
    is($items[0] + $items[1] + $items[2], 200, "$hash: @items records");
    cmp_ok($_, '>', 20, "$hash: a server has its share") for @items;
    $run = mcload_json(@common, @BRIEFLY, '--noload', '--getcount=10', '-q', '300', '-c', 4);
    $json = $run->{json};
    is($json->{'totals.hits'}, $json->{'totals.keys'}, "$hash, multigets: all hits");
    cmp_ok($json->{'totals.gets'}, '>', 2 * $json->{'totals.keys'} / 10,
        "$hash, multigets: one for each server");
    is($json->{'totals.sent'} + $json->{'totals.unsent'}, $json->{'totals.offered'},
        "$hash, multigets: each is offered");
    SKIP: {
        skip 'no pylibmc', 1 if !$python || $hash eq 'jump';
        my $found = run_program({command => [$python, '-c', $client, $hash, join ',', @at]});
        is($found->{out}, "200 of 200\n", "$hash: libmemcached looks in the same places")
            or diag($found->{err});
    }
}

# One of two servers goes away: the other one is asked on.
for my $args ([], ['-q', '500']) {
    my ($gone, $stays) = (start_testd('--fault=refuse', '--from=30', '--value=10'), start_testd('--value=10'));
    my $run = mcload_json('-s', "127.0.0.1:$gone->{port}", '-s', "127.0.0.1:$stays->{port}",
        '--hash=jump', '--noload', '-r', 1000, '-t', 100, '--until=n:200', '-c', 2, @$args);
    my @late = @{stop_testd($stays)->{rows}};
    my @early = @{stop_testd($gone)->{rows}};
    cmp_ok($run->{json}{'errors.connect'}, '>', 0, "one gone: noticed (@$args)");
    my $end = $early[-1]{received};
    cmp_ok(scalar(grep { $_->{received} > $end } @late), '>', 20, "one gone: the other is asked on (@$args)");
}

refuses('another hash', 1, 'the hashes are', '--hash=crc16');

# ---- secrets ------------------------------------------------------------------------------

{
    my $auth = scratch_file('auth', "user:secret\nother:word\n");
    my $server = serve('1.6', '-Y', $auth);
    my $at = $server->at;
    finds('--auth-file', '-s', $at, '--auth-file', $auth);
    refuses('an --auth-file without a colon', 1, 'not NAME:PASSWORD', '-s', $at, '--auth-file',
        scratch_file('bad', "user\n"));
    refuses('an empty --auth-file', 1, 'not NAME:PASSWORD', '-s', $at, '--auth-file',
        scratch_file('empty', ''));
    refuses('no --auth-file', 1, 'cannot read', '-s', $at, '--auth-file', "$dir/none");
    refuses('two secrets', 1, 'exclusive', '-s', $at, '--auth-file', $auth, '-P', 'secret', '-U', 'user');
}

# ---- TLS ----------------------------------------------------------------------------------

SKIP: {
    my $why = no_tls_because();
    skip $why, 1 if $why;
    skip 'the servers speak TLS already', 1 if $ENV{MCTEST_TLS};
    my $certs = certificates();
    my ($port, $plain) = (free_port(), free_port());
    my $server = serve(tls_args("ssl_ca_cert=$certs/ca.pem",
        'ssl_verify_mode=1'), '-l', "127.0.0.1:$port,notls:127.0.0.1:$plain", {listen => 0});
    my $at = "tls://127.0.0.1:$port";
    finds(@$_) for ['TLS', '-s', $at, '--tls-verify=no'], ['TLS, other form', '-s', "127.0.0.1:$port",
        '--transport=tls', '--tls-verify=no', '--protocol=binary', '-d', 4, '-c', 3], ['TLS beside none', '-s',
        $at, '--tls-verify=no', '-s', "127.0.0.1:$plain"], ['TLS, large values', '-s', $at, '--tls-verify=no',
        '-V', '300000', '--getcount=3', '-r', '20', '-u', '0.3', '--verify=1', '-c', 2],
        ['TLS with a certificate', '-s', $at, '--tls-verify=no', '--tls-cert', "$certs/client.pem", '--tls-key',
        "$certs/client.key"];
    # The name in the certificate is "server", which nobody can resolve.
    refuses('TLS, an unknown authority', 2, 'TLS handshake: .*(?:certificate|issuer).* \(--tls-ca=FILE: ', '-s', $at);
    refuses('TLS, another name', 2, 'TLS handshake: .*mismatch', '-s', $at, '--tls-ca', "$certs/ca.pem");
    refuses('TLS to a port without', 2, 'TLS handshake', '-s', "tls://127.0.0.1:$plain", '--tls-verify=no');
    refuses('no authorities', 1, 'cannot load authorities from /none', '-s', $at, '--tls-ca', '/none');
    refuses('no certificate', 1, 'cannot load the certificate /none', '-s', $at, '--tls-cert', '/none');
    refuses('a key that is another\'s', 1, 'cannot load the key', '-s', $at, '--tls-cert',
        "$certs/client.pem", '--tls-key', "$certs/ca.key");
    refuses('a key alone', 1, 'needs --tls-cert', '-s', $at, '--tls-key', "$certs/client.key");

    # A certificate for the address, and one that a lost connection has to show again.
    my $run = run_ok('TLS, open loop', '-s', $at, '-r', '50', @BRIEFLY, '--tls-verify=no', '-q', '300', '-c',
        4);
}

# A port that a socket has which is connected to itself: nobody else can listen there, or be heard.
{
    my $taken = IO::Socket::INET->new(LocalAddr => '127.0.0.1', Proto => 'udp');
    connect($taken, getsockname $taken) or die;
    refuses('UDP to a port without', 2, 'does not listen: does it speak ascii over udp', '-s',
        'udp://127.0.0.1:' . $taken->sockport);
}

done_testing();
