# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 the memcached-qos authors
#
# TLS for the Perl tests: certificates made on the spot, and connections that speak it.
package MCTLS;

use MCTest;
use Exporter 'import';
use IO::Socket::INET;

our @EXPORT = qw(no_tls_because certificates odd_certificates tls_args tls_connect tls_upgrade s_client);

my %made;

# Why the test cannot run, or nothing.
sub no_tls_because {
    return 'IO::Socket::SSL is not there' if !eval { require IO::Socket::SSL; 1 };
    return 'no openssl' if system('openssl version >/dev/null 2>&1') != 0;
    return 'the server is built without TLS' if run_program('-h')->{out} !~ /enable-ssl/;
    return '';
}

sub openssl(@args) {
    my $run = run_program({command => ['openssl', @args]});
    die "openssl @args: $run->{err}" if $run->{status} != 0 || $run->{signal} != 0;
    return;
}

my @ec = qw(-newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes);

sub self_signed($dir, $name) {
    openssl('req', '-x509', @ec, '-keyout', "$dir/$name.key", '-out', "$dir/$name.pem",
        '-days', 2, '-subj', "/CN=$name");
    return;
}

sub signed($dir, $name, $serial, $ca, @more) {
    openssl('req', @ec, '-keyout', "$dir/$name.key", '-out', "$dir/$name.csr", '-subj', "/CN=$name");
    openssl('x509', '-req', '-in', "$dir/$name.csr", '-CA', "$dir/$ca.pem", '-CAkey', "$dir/$ca.key",
        '-set_serial', $serial, '-days', 2, '-out', "$dir/$name.pem", @more);
    return;
}

# The folder with ca, server, other (servers' certificates by ca), client (also by ca) and
# stranger (by itself), each .pem and .key.
sub certificates {
    my $dir = scratch_dir();
    if (!$made{$dir}) {
        self_signed($dir, $_) for qw(ca stranger);
        my $serial = 1;
        signed($dir, $_, ++$serial, 'ca') for qw(server other client);
        $made{$dir} = 1;
    }
    return $dir;
}

# Beside those: expired, future (by ca, at other times), serverside (by ca, not for clients), and
# impostor (by impostor-ca, which calls itself ca).
sub odd_certificates {
    my $dir = certificates();
    my $conf = write_file("$dir/ca.cnf", "[ca]\ndefault_ca=d\n[d]\ndatabase=$dir/ca.index\nnew_certs_dir=$dir\n"
            . "policy=p\ndefault_md=sha256\nrand_serial=yes\n[p]\ncommonName=supplied\n");
    write_file("$dir/ca.index", '');
    for (['expired', '20200101000000Z', '20200201000000Z'], ['future', '20900101000000Z', '20910101000000Z']) {
        my ($name, $from, $to) = @$_;
        openssl('req', @ec, '-keyout', "$dir/$name.key", '-out', "$dir/$name.csr", '-subj', "/CN=$name");
        openssl('ca', '-batch', '-notext', '-config', $conf, '-cert', "$dir/ca.pem", '-keyfile', "$dir/ca.key",
            '-in', "$dir/$name.csr", '-out', "$dir/$name.pem", '-startdate', $from, '-enddate', $to);
    }
    my $purpose = write_file("$dir/purpose.cnf", "extendedKeyUsage=serverAuth\n");
    signed($dir, 'serverside', 100, 'ca', '-extfile', $purpose);
    openssl('req', '-x509', @ec, '-keyout', "$dir/impostor-ca.key", '-out', "$dir/impostor-ca.pem", '-days', 2,
        '-subj', '/CN=ca');
    signed($dir, 'impostor', 101, 'impostor-ca');
    return $dir;
}

# What starts a server with TLS; words are added to those of the certificate.
sub tls_args {
    my @words = @_;
    my $dir = certificates();
    return ('-Z', '-o', join ',', "ssl_chain_cert=$dir/server.pem", "ssl_key=$dir/server.key", @words);
}

# Makes a connection speak TLS; the options are those of IO::Socket::SSL. Undef when there is no
# agreement: $IO::Socket::SSL::SSL_ERROR says why.
sub tls_upgrade($sock, %ssl) {
    local $SIG{PIPE} = 'IGNORE';
    require IO::Socket::SSL;
    $sock->blocking(1);
    my %all = (SSL_ca_file => certificates() . '/ca.pem', SSL_verifycn_scheme => 'none', Timeout => 60,
        %ssl);
    IO::Socket::SSL->start_SSL($sock, %all) or return undef;
    $sock->blocking(0);
    return $sock;
}

# Like tls_upgrade, but does not wait: the connection's connect_SSL goes on with it, and is true
# when there is agreement.
sub tls_begin($sock) {
    require IO::Socket::SSL;
    IO::Socket::SSL->start_SSL($sock, SSL_ca_file => certificates() . '/ca.pem',
        SSL_verifycn_scheme => 'none', SSL_startHandshake => 0) or die 'no TLS';
    $sock->blocking(0);
    return;
}

# A new connection; port: not the server's first.
sub tls_connect($server, %ssl) {
    my $port = delete $ssl{port};
    local $server->{port} = $port if defined $port;
    return tls_upgrade($server->connect(plain => 1), %ssl);
}

# Runs openssl s_client to the end of the connection, with this input: what it printed.
sub s_client($port, $input, @args) {
    my $file = scratch_file('s_client.in', $input);
    my $run = run_program({command => ['sh', '-c', 'exec openssl s_client "$@" <"$0"', $file,
        '-connect', "127.0.0.1:$port", '-ign_eof', @args]});
    return $run->{out} . $run->{err};
}

1;
