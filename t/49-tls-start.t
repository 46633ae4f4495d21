#!/usr/bin/env perl
# TLS as it is asked for: what ends the start, which listeners speak it, certificates of
# clients, versions, resumption, and new certificates while the server runs.
use MCTest;
use Cwd qw(abs_path);
use File::Copy qw(copy);
use MCTLS;
use POSIX qw(mkfifo);

plan skip_all => no_tls_because() if no_tls_because();
plan skip_all => 'the servers speak TLS already' if $ENV{MCTEST_TLS};

my $dir = certificates();

sub refused($profile, $status, $want, @args) {
    local $Test::Builder::Level = $Test::Builder::Level + 1;
    my $run = run_program("--compat=$profile", '-l', '127.0.0.1', '-p', '-1', @AS_ROOT, @args);
    my $name = "@args: $want";
    return is($run->{status}, $status, "$name (status)") && like($run->{err}, $want, $name)
        && is($run->{err} =~ tr/\n//, 1, "$name: one line");
}

sub copies($from, $to) {
    for my $end (qw(pem key)) {
        copy("$dir/$from.$end", "$dir/$to.$end") or die "copy: $!";
    }
}

sub who_is($sock) {
    return $sock ? $sock->peer_certificate('cn') : "nobody: $IO::Socket::SSL::SSL_ERROR";
}

# What a client is told that may be let in only when it has sent something: in TLS 1.3 its own
# handshake ends before the server has seen its certificate.
sub is_let_in($server, %ssl) {
    my $sock = tls_connect($server, %ssl) or return 0;
    put($sock, "version\r\n");
    return read_line($sock) eq VERSION_REPLY($server->profile) ? 1 : 0;
}

# ---- what ends the start ---------------------------------------------------------------

MCTLS::openssl('genpkey', '-algorithm', 'EC', '-pkeyopt', 'ec_paramgen_curve:prime256v1', '-aes128',
    '-pass', 'pass:secret', '-out', "$dir/locked.key");
MCTLS::openssl('pkey', '-in', "$dir/server.key", '-outform', 'DER', '-out', "$dir/server.der");

each_profile(sub ($profile) {
    my $pem = "ssl_chain_cert=$dir/server.pem";
    my $good = "$pem,ssl_key=$dir/server.key";
    refused($profile, 64, qr/You cannot enable SSL without a TCP port/, '-Z', '-p', '0', '-U', '0', '-o', $good);
    my $plain = run_program("--compat=$profile", '-s', "$dir/socket", '-Z', '-o', $good, '--check-config', @AS_ROOT);
    has($plain, 'TLS and a UNIX socket', status => 0,
        err => "memcached: warning: -Z has no effect on a UNIX socket (-s), which stays plain\n");
    refused($profile, 64, $profile eq 'native'
        ? qr/^memcached: -Z needs a certificate: write -o ssl_chain_cert=FILE$/m
        : qr/Error loading the certificate chain: \(null\).*; write -o ssl_chain_cert=FILE/, '-Z');
    refused($profile, 64, qr/Error loading the certificate chain: \/none : .*No such file/, '-Z', '-o',
        "ssl_chain_cert=/none,ssl_key=$dir/server.key");
    refused($profile, 64, qr/Error loading the key: \/none : .*No such file/, '-Z', '-o', "$pem,ssl_key=/none");
    refused($profile, 64, qr/Error loading the key: \Q$dir\E\/server.pem /, '-Z', '-o', $pem);
    refused($profile, 64, qr/Error (?:loading the key|validating)/, '-Z', '-o', "$pem,ssl_key=$dir/other.key");
    refused($profile, 64, qr/Error loading the key/, '-Z', '-o', "$pem,ssl_key=$dir/locked.key");
    refused($profile, 64, qr/Error loading the key/, '-Z', '-o', "$good,ssl_keyformat=2");
    refused($profile, 64, qr/Error loading the key: .*bad ssl filetype/, '-Z', '-o', "$good,ssl_keyformat=9");
    refused($profile, 64, qr/Error loading the CA certificate: \/none/, '-Z', '-o', "$good,ssl_ca_cert=/none");
    refused($profile, 64, qr/Error setting the provided cipher\(s\): nonsense/, '-Z', '-o', "$good,ssl_ciphers=nonsense");
    for my $word (qw(ssl_verify_mode ssl_min_version)) {
        refused($profile, 1, qr/Invalid $word\. Use help to see valid options\./, '-o', "$word=$_") for 4, -1, 'x';
    }
    refused($profile, 1, qr/could not parse argument to $_/, '-o', "$_=x") for qw(ssl_keyformat ssl_wbuf_size);
    refused($profile, 1, qr/Missing $_ argument/, '-o', $_)
        for qw(ssl_chain_cert ssl_key ssl_verify_mode ssl_keyformat ssl_ciphers ssl_ca_cert ssl_wbuf_size
        ssl_min_version);
});
refused('1.6', 71, qr/'notls' option is valid only when SSL is enabled/, '-l', 'notls:127.0.0.1');

# ---- statistics ------------------------------------------------------------------------

each_profile(sub ($profile) {
    my $server = serve($profile, '-o', "ssl_chain_cert=/none");
    exchange($server->connect, "refresh_certs\r\n", "ERROR\r\n", 'no certificates without -Z');
    is(mem_stats($server->connect, 'settings')->{ssl_enabled}, pick($profile, '1.4' => undef, '1.6' => 'no'),
        'words alone are no -Z');
    $server->stop;

    $server = serve($profile, tls_args(), '-I', 1024,
            pick($profile, '1.4' => [], '1.6' => ['-o', 'slab_chunk_max=1,no_lru_crawler,no_lru_maintainer'])->@*);
    my $s = tls_connect($server);
    is(scalar stat_names($s), pick($profile, '1.4' => 62, '1.6' => 87), 'names of stats');
    is_deeply([grep { /ssl|cert/ } stat_names($s)],
        [qw(ssl_handshake_errors ssl_proto_errors time_since_server_cert_refresh)], 'of TLS');
    my @settings = grep { /ssl/ } stat_lines($s, 'settings');
    is_deeply(\@settings, pick($profile, '1.4' => [], '1.6' => [map { "STAT ssl_$_" } 'enabled yes',
                "chain_cert $dir/server.pem", "key $dir/server.key", 'verify_mode 0', 'keyformat 1',
                'ciphers NULL', 'ca_cert NULL', 'wbuf_size 16384', 'session_cache no', 'kernel_tls no',
                'min_version tlsv1.2']), 'settings');
    $server->stop;

    $server = serve($profile, '-Z', '-o', "ssl_chain_cert=$dir/server.pem",
            '-o', "ssl_key=$dir/server.der,ssl_keyformat=2,ssl_verify_mode=1,ssl_ca_cert=$dir/ca.pem",
            '-o', 'ssl_ciphers=ECDHE+AESGCM,ssl_wbuf_size=4,ssl_session_cache,ssl_kernel_tls,ssl_min_version=3');
    $s = tls_connect($server);
    is($s->get_sslversion, 'TLSv1_3', 'the version that is left');
    exchange($s, "set a 0 0 3\r\nabc\r\nget a\r\n", "STORED\r\nVALUE a 0 3\r\nabc\r\nEND\r\n",
        'with all words, and a key in DER');
    like((join ' ', grep { /ssl_new/ } stat_lines($s)), qr/^STAT ssl_new_sessions [1-9]/, 'the cache');
    is((join ' ', grep { /ssl_(?:v|keyf|ci|ca|w|se|ker|min)/ } stat_lines($s, 'settings')), $profile eq '1.4' ? ''
        : join(' ', map { "STAT ssl_$_" } 'verify_mode 1', 'keyformat 2', 'ciphers ECDHE+AESGCM',
            "ca_cert $dir/ca.pem", 'wbuf_size 4096', 'session_cache yes', 'kernel_tls yes', 'min_version tlsv1.3'),
        'settings follow');
    is(tls_connect($server, SSL_version => 'TLSv1_2'), undef, 'an older version is refused');
});

# ---- listeners, clients' certificates --------------------------------------------------

my @client = (SSL_cert_file => "$dir/client.pem", SSL_key_file => "$dir/client.key");
my @stranger = (SSL_cert_file => "$dir/stranger.pem", SSL_key_file => "$dir/stranger.key");

each_profile(sub ($profile) {
    my ($default, $none, $basic, $mutual) = map { free_port() } 1 .. 4;
    my $server = serve($profile, tls_args("ssl_ca_cert=$dir/ca.pem,ssl_session_cache,ssl_verify_mode=1"), '-U', $default, '-l',
            "127.0.0.1:$default,notls:127.0.0.1:$none,btls:127.0.0.1:$basic,mtls:127.0.0.1:$mutual", {listen => 0});
    $server->{port} = $none;
    exchange($server->connect, "version\r\n", VERSION_REPLY($profile), 'notls: is plain');
    ok(is_let_in($server, port => $_), 'no certificate') for $default, $basic;
    ok(!is_let_in($server, port => $mutual), 'mtls: demands one');
    ok(is_let_in($server, port => $_, @client), 'a good one') for $default, $basic, $mutual;
    ok(is_let_in($server, port => $_, @stranger), 'btls: does not look at a bad one') for $basic;
    ok(!is_let_in($server, port => $_, @stranger), 'a bad one elsewhere') for $default, $mutual;

    # A session that was begun where nobody asks does not open the other door.
    my $session = "$dir/session";
    for my $version ('-tls1_2', '-tls1_3') {
        my $talk = "version\r\nquit\r\n";
        like(s_client($basic, $talk, $version, '-sess_out', $session), qr/^New, /m, "$version: a session");
        like(s_client($basic, $talk, $version, '-sess_in', $session), qr/^Reused, .*^VERSION /ms,
            "$version: resumed where it was begun");
        unlike(s_client($mutual, $talk, $version, '-sess_in', $session), qr/^VERSION|^Reused/m,
            "$version: not so with mtls:");
    }
    my $datagram = IO::Socket::INET->new(PeerAddr => "127.0.0.1:$default", Proto => 'udp');
    $datagram->send("\0\1\0\0\0\1\0\0version\r\n");
    MCTest::wait_io($datagram, 0, 60);
    $datagram->recv(my $reply, 1400);
    is(substr($reply // '', 8), VERSION_REPLY($profile), 'UDP is plain');
    $server->stop;

    for my $mode (0 .. 3) {
        $server = serve($profile, tls_args("ssl_ca_cert=$dir/ca.pem,ssl_verify_mode=$mode"));
        is(is_let_in($server), $mode < 2 ? 1 : 0, "ssl_verify_mode=$mode: without");
        is(is_let_in($server, @client), 1, "ssl_verify_mode=$mode: with");
        is(is_let_in($server, @stranger), $mode < 1 ? 1 : 0, "ssl_verify_mode=$mode: a stranger");
        $server->stop;
    }

    my $path = "$dir/socket";
    $server = serve($profile, tls_args(), '-s', $path, {path => $path});
    exchange($server->connect, "version\r\n", VERSION_REPLY($profile), 'a UNIX socket is plain');
    exchange($server->connect, "refresh_certs\r\n", "OK\r\n");
});

# Sessions by number, for clients without tickets, are for the cache.
for my $cache (0, 1) {
    my $server = serve(tls_args($cache ? 'ssl_session_cache' : ()));
    my @talk = ($server->port, "version\r\nquit\r\n", '-tls1_2', '-no_ticket');
    s_client(@talk, '-sess_out', "$dir/session");
    like(s_client(@talk, '-sess_in', "$dir/session"), $cache ? qr/^Reused, /m : qr/^New, /m,
        'without tickets ' . ($cache ? 'the cache resumes' : 'nothing is resumed'));
}

# ---- new certificates ------------------------------------------------------------------

each_profile(sub ($profile) {
    copies('server', 'now');
    my $server = serve($profile, '-Z', '-o', "ssl_chain_cert=$dir/now.pem,ssl_key=$dir/now.key");
    my $old = tls_connect($server);
    my $age = sub { mem_stats($old)->{time_since_server_cert_refresh} };
    is(who_is($old), 'server', 'the first certificate');
    $server->{control} = $old;
    debugtime($server, 1000);
    cmp_ok($age->(), '>=', 1000, 'its age');
    copies('other', 'now');
    is(who_is(tls_connect($server)), 'server', 'a new file alone changes nothing');
    exchange($old, "refresh_certs\r\n", "OK\r\n");
    cmp_ok($age->(), '<', 500, 'the age begins anew');
    is(who_is(tls_connect($server)), 'other', 'refresh_certs: new connections get the new one');
    expect_open($old, 'old ones stay');

    copy("$dir/server.key", "$dir/now.key");
    exchange($old, "refresh_certs\r\n", qr/^Error (?:loading the key: |validating).*\r\n\z/, 'files that do not match');
    unlink "$dir/now.pem";
    exchange($old, "refresh_certs\r\n", "Error loading the certificate chain: $dir/now.pem : "
            . "error:80000002:system library::No such file or directory\r\n", 'a file that is gone');
    kill 'HUP', $server->pid;
    soon { $server->err =~ /Error loading the certificate chain: \S*now.pem .*old certificate stays/ }
        'SIGHUP tells it';
    is(who_is(tls_connect($server)), 'other', 'all stays as it was');

    copies('server', 'now');
    kill 'HUP', $server->pid;
    soon { who_is(tls_connect($server)) eq 'server' } 'SIGHUP loads them';
    expect_open($old, 'the first connection is still there');
});

# SIGHUP while the server starts, here while it waits for its key, is for when it has started. That the
# key is a pipe is noticed then.
{
    copies('server', 'piped');
    unlink "$dir/piped.key";
    mkfifo("$dir/piped.key", 0600) or die "mkfifo: $!";
    my $writer = fork // die "fork: $!";
    if ($writer == 0) {
        open my $first, '>', "$dir/piped.key" or POSIX::_exit(1);
        kill 'HUP', read_file("$dir/piped.pid") =~ /(\d+)/ or POSIX::_exit(2);
        print $first read_file("$dir/server.key");
        close $first or POSIX::_exit(3);
        POSIX::_exit(0);
    }
    my $server = serve('-Z', '-o', "ssl_chain_cert=$dir/piped.pem,ssl_key=$dir/piped.key",
        {wrap => ['sh', '-c', 'echo $$ >"$0" && exec "$@"', "$dir/piped.pid"]});
    is(waitpid($writer, 0), $writer);
    is($?, 0, 'SIGHUP at the start');
    soon { $server->err =~ /piped\.key: a pipe can be read only once/ } '... is taken when it has started';
    is(who_is(tls_connect($server)), 'server', '... does not end it');
}

# Outside its time a certificate is served with a warning; a pipe cannot be read again, which would wait for ever.
{
    odd_certificates();
    for (['expired', 'expired on 2020-02-01'], ['future', 'is not valid before 2090-01-01']) {
        my ($name, $when) = @$_;
        my $pem = "$dir/$name.pem";
        my $server = serve('-Z', '-o', "ssl_chain_cert=$pem,ssl_key=$dir/$name.key");
        like($server->err, qr/^memcached: warning: the certificate \Q$pem $when\E: .*; renew it, then send refresh_certs/m, $name);
        is(tls_connect($server), undef, '... a client that checks it goes');
        my $sock = tls_connect($server, SSL_verify_mode => 0);
        exchange($sock, "version\r\n", VERSION_REPLY($server->profile), '... another one is served');
        copies('server', $name);
        exchange($sock, "refresh_certs\r\n", "OK\r\n");
        is(who_is(tls_connect($server)), 'server', '... renewed');
        unlink "$dir/$name.key";
        mkfifo("$dir/$name.key", 0600) or die "mkfifo: $!";
        exchange($sock, "refresh_certs\r\n", "Error loading $dir/$name.key: a pipe can be read only once; give a file\r\n");
        $server->stop;
    }
}

# A daemon has another directory; the key may be root's alone.
{
    my $pid_file = "$dir/pid";
    copies('server', 'now');
    chmod 0600, "$dir/now.key";
    chmod 0755, $dir;
    my $port = free_port();
    my @user = $> == 0 ? ('-u', 'nobody') : ();
    my @command = map { m{/} ? abs_path($_) // $_ : $_ } server_binary();
    my $run = run_program({command => ['sh', '-c', 'cd "$0" && exec "$@"', $dir, @command, '-d',
            '-l', "127.0.0.1:$port", @user, '--compat=1.6', '-Z', '-o', 'ssl_chain_cert=now.pem,ssl_key=now.key']});
    is($run->{status}, 0, 'a daemon starts') or diag($run->{err});
    my $server = bless {port => $port, profile => '1.6'}, 'MCTest::Server';
    my $sock;
    wait_until(sub { $sock = eval { tls_connect($server) } });
    is(who_is($sock), 'server', 'and serves');
    my $pid = mem_stats($sock)->{pid};
    chmod 0644, "$dir/now.key";
    exchange($sock, "refresh_certs\r\n", "OK\r\n", 'relative names are still good');
    is((stat "/proc/$pid/mem")[4], 0, 'its memory is for root alone') if -e "/proc/$pid/mem";
    delete $server->{pid};
    kill 'TERM', $pid;
    expect_eof($sock, '', 'the daemon ends');
}

done_testing();
