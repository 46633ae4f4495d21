#!/usr/bin/env perl
# Which certificates of clients open the door, in each ssl_verify_mode, and what refresh_certs
# changes for those who are in, on the threshold, or come back with an old session.
use MCTest;
use MCConns;
use File::Copy qw(copy);
use MCTLS;

plan skip_all => no_tls_because() if no_tls_because();
plan skip_all => 'the servers speak TLS already' if $ENV{MCTEST_TLS};

my $dir = odd_certificates();
my @kinds = qw(none client stranger impostor expired future serverside);

sub shown($name) {
    return $name eq 'none' ? () : (SSL_cert_file => "$dir/$name.pem", SSL_key_file => "$dir/$name.key");
}

# True when the client gets an answer: in TLS 1.3 it hears of a refusal after the handshake only.
sub is_let_in($server, $name, $version) {
    my $sock = tls_connect($server, shown($name), SSL_version => $version) or return 0;
    return hears($sock, $server);
}

sub hears($sock, $server) {
    put($sock, "version\r\n");
    return read_line($sock) eq VERSION_REPLY($server->{profile}) ? 1 : 0;
}

# ---- who comes in ----------------------------------------------------------------------

for my $mode (0 .. 3) {
    my $server = serve('1.6', tls_args("ssl_ca_cert=$dir/ca.pem,ssl_verify_mode=$mode"), '-t', 1);
    for my $version ('TLSv1_2', 'TLSv1_3') {
        for my $kind (@kinds) {
            my $want = $mode == 0 || $kind eq 'client' || ($kind eq 'none' && $mode == 1) ? 1 : 0;
            is(is_let_in($server, $kind, $version), $want, "ssl_verify_mode=$mode, $version: $kind");
        }
    }
    $server->{control} = tls_connect($server, shown('client'));
    my $refused = $mode == 0 ? 0 : $mode == 1 ? 10 : 12;
    soon { mem_stats($server->control)->{ssl_handshake_errors} == $refused }
        "ssl_verify_mode=$mode: the refusals are counted, and they only";
}

# Nobody is known to a server without authorities.
for my $mode (1, 2) {
    my $server = serve('1.6', tls_args("ssl_verify_mode=$mode"));
    is(is_let_in($server, 'none', 'TLSv1_3'), $mode == 1 ? 1 : 0, "no ssl_ca_cert, mode $mode: without");
    is(is_let_in($server, 'client', 'TLSv1_3'), 0, "no ssl_ca_cert, mode $mode: with");
}

# ---- authorities that change -----------------------------------------------------------

for my $version ('1_2', '1_3') {
    my $now = "$dir/now-ca.pem";
    copy("$dir/ca.pem", $now) or die "copy: $!";
    my $server = serve('1.6', tls_args("ssl_ca_cert=$now,ssl_verify_mode=2," . 'ssl_session_cache'));
    my $tls = "TLSv$version";
    my $old = tls_connect($server, shown('client'), SSL_version => $tls);
    ok(hears($old, $server), "$tls: in with the first authority");
    my @s_client = ($server->port, "version\r\nquit\r\n", "-tls$version", '-cert', "$dir/client.pem", '-key',
        "$dir/client.key");
    like(s_client(@s_client, '-sess_out', "$dir/session"), qr/^New, .*VERSION 1/ms, "$tls: a session");
    like(s_client(@s_client, '-sess_in', "$dir/session"), qr/^Reused, .*VERSION 1/ms, "$tls: and again");
    # It has connected, but said nothing yet.
    $server->{control} = $old;
    soon { mem_stats($old)->{curr_connections} == 1 } "$tls: only the first is in";
    my $threshold = $server->connect(plain => 1);
    soon { %{conn_stats($server, $threshold)} } "$tls: another on the threshold";

    copy("$dir/impostor-ca.pem", $now) or die "copy: $!";
    is(is_let_in($server, 'client', $tls), 1, "$tls: a new file alone changes nothing");
    exchange($old, "refresh_certs\r\n", "OK\r\n");
    is(is_let_in($server, 'client', $tls), 0, "$tls: refresh_certs: the old authority has no say");
    is(is_let_in($server, 'impostor', $tls), 1, "$tls: but the new one");
    unlike(s_client(@s_client, '-sess_in', "$dir/session"), qr/^Reused, |VERSION 1/m,
        "$tls: an old session opens nothing");
    ok(hears($old, $server), "$tls: who was in stays");
    my $late = tls_upgrade($threshold, shown('client'), SSL_version => $tls);
    ok($late && hears($late, $server), "$tls: who had come before is judged by the rules of then");

    write_file($now);
    exchange($old, "refresh_certs\r\n", qr/^Error loading the CA certificate: \Q$now\E .*\r\n\z/, 'an empty file');
    is(is_let_in($server, 'impostor', $tls), 1, "$tls: which changes nothing");
}

# Renewals while clients come and go: each is let in or refused as if there were none.
{
    my $server = serve('1.6', tls_args("ssl_ca_cert=$dir/ca.pem,ssl_verify_mode=2"));
    my $admin = tls_connect($server, shown('client'));
    $server->{control} = $admin;
    my $wrong = 0;
    for my $round (1 .. 30) {
        put($admin, "refresh_certs\r\n");
        my $kind = $kinds[$round % @kinds];
        $wrong++ if is_let_in($server, $kind, 'TLSv1_3') != ($kind eq 'client');
        $wrong++ if read_line($admin) ne "OK\r\n";
    }
    is($wrong, 0, '30 renewals beside handshakes');
}

done_testing();
