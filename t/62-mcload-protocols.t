#!/usr/bin/env perl
# mcload speaks every protocol it names: each get is a hit, each set is stored, over one key
# and many, against this server and against others where they are installed.
use MCTest;
use File::Path qw(make_path);
use MCLoad;
use MCTLS;

my $dir = scratch_dir();
my $main_pid = $$;
my @others;

END {
    if ($$ == $main_pid) {
        my $status = $?;
        kill 'TERM', $_ for @others;
        waitpid $_, 0 for @others;
        $? = $status;
    }
}

# Every kind of error is missing, and everything asked for was found.
sub clean($run, $name) {
    ended_ok($run, $name);
    my $json = $run->{json};
    cmp_ok($json->{'totals.gets'} // 0, '>', 0, "$name: gets");
    is($json->{'totals.hits'}, $json->{'totals.keys'}, "$name: all hits");
    is(join(' ', grep { $json->{$_} } grep { /^errors\./ } sort keys %$json), '', "$name: no errors");
}

# The three kinds of run that every protocol with sets must pass.
sub speaks($at, $protocol, @args) {
    my $name = "$at $protocol";
    clean(mcload_json('-s', $at, "--protocol=$protocol", '-r', '100', @BRIEFLY, '-u', '0.2',
        @args), "$name, gets and sets");
    my $run = mcload_json('-s', $at, "--protocol=$protocol", '-r', '100', @BRIEFLY,
        '--getcount=7', '-c', '2', '-d', '4', '--noload', @args);
    clean($run, "$name, multigets");
    is($run->{json}{'totals.keys'}, 7 * $run->{json}{'totals.gets'}, "$name, multigets: keys");
    $run = mcload_json('-s', $at, "--protocol=$protocol", '-r', '100', @BRIEFLY,
        '--getcount=2', '--key-prefix=none:', '--noload', @args);
    has($run, "$name, misses: gets, no hits", 'totals.keys' => ['>', 0], 'totals.hits' => 0);
}

# Starts a program that listens on $port; false when it is not installed.
sub start_other($port, @command) {
    my ($path) = grep { -x $_ } map { "$_/$command[0]" } split(/:/, $ENV{PATH}), '/usr/sbin';
    return 0 if !defined $path;
    my $pid = in_child(sub {
        open STDOUT, '>', '/dev/null';
        open STDERR, '>', '/dev/null';
        exec $path, @command[1 .. $#command];
    });
    push @others, $pid;
    my $is_up = wait_until(sub {
        return IO::Socket::INET->new(PeerAddr => '127.0.0.1', PeerPort => $port) ? 1 : 0;
    });
    ok($is_up, "$command[0] listens");
    return $is_up;
}

# ---- this server -------------------------------------------------------------------------

each_profile(sub ($profile) {
    my $server = serve($profile);
    my $at = $server->at;
    speaks($at, 'ascii');
    speaks($at, 'binary');
    speaks($at, 'meta');
    clean(mcload_json('-s', $at, '--binary', '-r', '10', @BRIEFLY), '--binary');
});

# ---- authentication ----------------------------------------------------------------------

sub refused($name, @args) {
    my $run = mcload('-r', '10', @args);
    is($run->{status}, 2, "$name: cannot load") or diag($run->{out}, $run->{err});
    has(mcload_json('-r', '10', '--noload', @BRIEFLY, @args), "$name: the run is invalid, no hits, errors",
        status => 3, 'totals.hits' => 0, 'errors.client_error' => ['>', 0]);
}

{
    my $file = "$dir/auth";
    write_file($file, "user:secret\n");
    my $server = serve('1.6', '-Y', $file);
    my $at = $server->at;
    for my $protocol ('ascii', 'meta') {
        speaks($at, $protocol, '-U', 'user', '-P', 'secret');
        refused("$protocol, a wrong password", '-s', $at, "--protocol=$protocol", '-U', 'user', '-P', 'wrong');
    }
    refused('no password', '-s', $at);
    my $json = "$dir/auth.json";
    mcload('-s', $at, @BRIEFLY, '-U', 'user', '--password=secret', '--json', $json);
    unlike(MCTest::slurp($json), qr/secret/, 'the password is not in the report');
}

SKIP: {
    my $file = "$dir/sasl";
    write_file($file, "user:secret:\n");
    my $server = eval { start_server(args => ['-S', '-B', 'binary'],
        env => {MEMCACHED_SASL_PWDB => $file}) };
    skip 'built without SASL', 1 if !$server;
    my $at = $server->at;
    speaks($at, 'binary', '-U', 'user', '-P', 'secret');
    refused('binary, a wrong password', '-s', $at, '--binary', '-U', 'user', '-P', 'wrong');
}

# ---- others ------------------------------------------------------------------------------

SKIP: {
    my $start = sub {
        my $port = free_port();
        return start_other($port, 'memcached', '-l', '127.0.0.1', '-p', $port, @AS_ROOT, @_) && $port;
    };
    my $port = $start->() or skip 'no memcached in the path', 1;
    speaks("127.0.0.1:$port", $_) for qw(ascii meta binary);

    # Three servers that share the keys: each record is on one of them, and found there.
    my @ports = ($port, $start->(), $start->());
    my @three = ((map { ('-s', "127.0.0.1:$_") } @ports), '--hash=ketama', '--key-prefix=three');
    my $run = mcload_json(@three, '-r', '300', @BRIEFLY, '-c', '2', '-u', '0.2', '--verify=1');
    clean($run, 'packaged memcached, ketama');
    is($run->{json}{'totals.loaded'}, 300, 'packaged memcached, ketama: each record once');
    $run = mcload_json(@three[0, 1], '--key-prefix=three', '-r', '300', @BRIEFLY, '--noload');
    cmp_ok($run->{json}{'totals.hits'}, '<', $run->{json}{'totals.keys'},
        'packaged memcached, ketama: one server has its share only');

    SKIP: {
        my $udp = free_port();
        $start->('-U', $udp) or skip 'packaged memcached: no UDP', 1;
        clean(mcload_json('-s', "udp://127.0.0.1:$udp", "--protocol=$_", '-r', '50', @BRIEFLY, '-u', '0.2',
            '-c', '2', '-d', '2', '--verify=1', '--timeout=5', '--key-prefix', $_),
            "packaged memcached, UDP, $_") for qw(ascii binary);
        # One key each: of a get of several it numbers the datagrams of each value anew.
        clean(mcload_json('-s', "udp://127.0.0.1:$udp", '-r', '20', '-V', '5000', @BRIEFLY, '-c',
            '2', '--verify=1', '--timeout=5'), 'packaged memcached, UDP, several datagrams');
    }

    SKIP: {
        my $why = no_tls_because();
        skip $why, 1 if $why;
        skip 'the packaged memcached has no TLS', 1
            if run_program({command => ['memcached', '-h']})->{out} !~ /--enable-ssl/;
        my $certs = certificates();
        my $tls = $start->('-Z', '-o', "ssl_chain_cert=$certs/server.pem,ssl_key=$certs/server.key");
        clean(mcload_json('-s', "tls://127.0.0.1:$tls", '--tls-verify=no', '-r', '50', @BRIEFLY,
            '-u', '0.2', '-c', '2', '--verify=1'), 'packaged memcached, TLS');
    }
}

SKIP: {
    my $port = free_port();
    start_other($port, 'redis-server', '--port', $port, '--bind', '127.0.0.1', '--save', '',
        '--dir', $dir) or skip 'no redis-server', 1;
    speaks("127.0.0.1:$port", 'redis');
    # It makes a counter of what is not there.
    my $run = mcload_json('-s', "127.0.0.1:$port", '--protocol=redis', '-r', 100, '-t', 0.5, '--verify=1', '--ops=get:1,incr:1,delete:1');
    is($run->{json}{'errors.wrong_value'}, 0, 'counters that redis-server makes are right') or diag($run->{out});
    $run = mcload_json('-s', "127.0.0.1:$port", '--protocol=ascii', '--noload', @BRIEFLY);
    is($run->{status}, 3, 'redis-server does not speak ascii');
}

SKIP: {
    my $port = free_port();
    make_path("$dir/www");
    write_file("$dir/www/obj:000$_", 'x' x ($_ * 1000)) for 0 .. 9;
    open my $conf, '>', "$dir/nginx.conf" or die $!;
    print $conf <<"CONF";
daemon off; worker_processes 1; pid $dir/nginx.pid; error_log $dir/nginx.log;
@{[$> == 0 ? 'user root;' : '']}
events { worker_connections 64; }
http {
    access_log off; client_body_temp_path $dir/t1; proxy_temp_path $dir/t2;
    fastcgi_temp_path $dir/t3; uwsgi_temp_path $dir/t4; scgi_temp_path $dir/t5;
    keepalive_requests 100;
    server { listen 127.0.0.1:$port; root $dir/www; }
}
CONF
    close $conf;
    start_other($port, 'nginx', '-e', "$dir/nginx.log", '-c', "$dir/nginx.conf")
        or skip 'no nginx', 1;
    # It closes each connection after 100 requests and says so before.
    clean(mcload_json('-s', "127.0.0.1:$port", '--protocol=http', '-r', '10', @BRIEFLY,
        '-c', '2', '--key-prefix=obj:', '-K', '8'), 'nginx');
    my $run = mcload_json('-s', "127.0.0.1:$port", '--protocol=http', '-r', '10', @BRIEFLY);
    has($run, 'nginx: 404 is an answer, and a miss', 'totals.gets' => ['>', 0], 'totals.hits' => 0);
}

# A server that closes each connection behind its first answer, where connecting takes no
# time: no event tells that the connection is there again.
{
    my $path = "$dir/http";
    my $listener = IO::Socket::UNIX->new(Local => $path, Listen => 16) or die "listen: $!";
    my $pid = in_child(sub {
        while (my $client = $listener->accept) {
            local $/ = "\r\n\r\n";
            next if !defined readline $client;
            print $client "HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 2\r\n\r\nhi";
        }
    });
    push @others, $pid;
    for my $args ([], ['-q', '1000']) {
        my $run = mcload_json('-s', "unix:$path", '--protocol=http', '-r', '10', @BRIEFLY, '-c', '2', @$args);
        clean($run, "one request a connection @$args");
        cmp_ok($run->{json}{'totals.gets'}, '>', 2, '... and more than one each');
    }
    # The interval is longer than the run: there is one, which has them all.
    my $run = mcload_json('-s', "unix:$path", '--protocol=http', '-r', '10', @BRIEFLY, '-d', '4', '--interval=100');
    has($run, 'requests behind the last answer are lost: an error', status => 3, 'errors.disconnect' => ['>', 0],
        'totals.lost' => ['>', 0]);
    my ($errors) = read_file($run->{file}) =~ /"start": [^{}]*"errors": (\d+)/;
    is($errors, $run->{json}{'errors.disconnect'}, '... which its interval has, too');
}

# ---- what a protocol cannot --------------------------------------------------------------

for my $args (['--protocol=gopher'], ['--protocol=http', '-u', '0.1'],
    ['--protocol=http', '--loadonly'], ['--protocol=http', '--getcount=2'],
    ['--protocol=redis', '--binary'], ['-U', 'user'], ['-P', 'secret'],
    ['--protocol=http', '-U', 'user', '-P', 'secret']) {
    has(mcload(@$args), "@$args: usage, one line on stderr", status => 1, err_lines => 1);
}

done_testing();
