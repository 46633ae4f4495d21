#!/usr/bin/env perl
# What a worker's clients wait for in another thread holds up nobody else: a login by libsasl2, the
# file that qos save writes. t/preload/hold.c holds either until the test lets it go on.
use MCTest ':ours';
use MCBinary;
use Socket qw(SOL_SOCKET SO_LINGER);

use constant {GET => 0, SET => 1, NOOP => 0x0a, AUTH => 0x21};

my $dir = scratch_dir();
my $hold = preload('hold') // plan skip_all => 'no library to preload, or the server runs under something else';
my $fifo = "$dir/fifo";
POSIX::mkfifo($fifo, 0600) or die "mkfifo: $!";
my %held = (LD_PRELOAD => $hold, HOLD_LOGIN => $fifo);

# Returns when a call is held; it goes on when the handle is closed.
sub wait_held {
    open my $handle, '>', $fifo or die "$fifo: $!";
    return $handle;
}

sub is_answer($sock, $status, $body, $name) {
    my ($got, $text) = response($sock);
    is($got, $status, "$name: status");
    like($text, $body, "$name: body");
}

sub plain($user, $password) { return request(AUTH, 'PLAIN', '', "\0$user\0$password"); }

# The only worker's state, as the kernel has it.
sub worker_sleeps($server) {
    for my $task (glob '/proc/' . $server->pid . '/task/*') {
        return read_file("$task/stat") =~ /^.*\) S/ if read_file("$task/comm") =~ /^mc-worker/;
    }
    die 'no worker';
}

# ---- qos save ----------------------------------------------------------------------------

{
    my $file = write_file("$dir/conf", "qps-limit = 50000\n");
    my ($server, $s) = serve('-t', 1, '--config', $file, {env => {LD_PRELOAD => $hold, HOLD_FILE => $fifo}});
    my $other = $server->connect;
    my $before = mem_stats($other)->{curr_connections};
    my $gone = $server->connect;
    exchange($s, "qos qps_limit 60k\r\n", "OK\r\n");
    put($s, "qos save\r\nget x\r\n");
    my $handle = wait_held();
    exchange($other, "set x 0 0 1\r\n1\r\n", "STORED\r\n", 'qos save is held, the worker serves others');
    put($gone, "qos save\r\n");
    soon { worker_sleeps($server) } '... and sleeps meanwhile';
    setsockopt $gone, SOL_SOCKET, SO_LINGER, pack 'll', 1, 0 or die "SO_LINGER: $!";
    close $gone;
    exchange($other, "get x\r\n", "VALUE x 0 1\r\n1\r\nEND\r\n", '... and serves when another one that waits is reset');
    close $handle;
    expect_bytes($s, "SAVED qps-limit 50000 -> 60000\r\nOK\r\nVALUE x 0 1\r\n1\r\nEND\r\n", 'both are answered');
    soon { mem_stats($other)->{curr_connections} == $before } 'the one that was reset is gone';
    like(read_file($file), qr/^qps-limit = 60000\n/m, 'the file');
    # those that ask meanwhile have one answer
    my @more = map { $server->connect } 1 .. 3;
    exchange($_, "qos qps_limit 61k\r\n", "OK\r\n") for @more;
    put($s, "qos save\r\n");
    $handle = wait_held();
    exchange($other, "qos qps_limit 62k\r\n", "OK\r\n");
    put($_, "qos save\r\n") for @more;
    soon { grep({ /conn_waiting/ } values %{mem_stats($other, 'conns')}) == 4 } 'four wait';
    close $handle;
    expect_bytes($s, "SAVED qps-limit 60000 -> 61000\r\nOK\r\n", 'the first one');
    close wait_held();
    expect_bytes($_, "SAVED qps-limit 61000 -> 62000\r\nOK\r\n", 'the others, of one file') for @more;
    # the end, while the file is written
    exchange($s, "qos qps_limit 70k\r\n", "OK\r\n");
    put($s, "qos save\r\n");
    $handle = wait_held();
    put($other, "qos save\r\nversion\r\n");
    kill TERM => $server->pid;
    close $handle;
    expect_bytes($s, "SAVED qps-limit 62000 -> 70000\r\nOK\r\n", 'a server that ends answers the one');
    $server->stop('TERM', 'and ends');
}

# ---- logins ------------------------------------------------------------------------------

SKIP: {
    my $lacks = library_lacks($dir, 'plain', 'me', 'secret');
    skip $lacks, 1 if $lacks;
    my ($server, $s) = serve('-S', '-B', 'binary', '-t', 1, {env => {SASL_CONF_PATH => $dir, %held}});
    put($s, plain('me', 'secret'));
    my ($status) = response($s);
    skip 'no mechanisms installed', 1 if $status != 0;

    my ($held, $second, $gone) = map { $server->connect } 1 .. 3;
    put($held, plain('me', 'hold'));
    my $handle = wait_held();
    put($second, plain('me', 'secret') . request(NOOP));
    put($gone, plain('me', 'secret') . request(NOOP));
    put($s, request(NOOP));
    is_answer($s, 0, qr/^$/, 'a login is held, the worker serves others');
    setsockopt $gone, SOL_SOCKET, SO_LINGER, pack 'll', 1, 0 or die "SO_LINGER: $!";
    close $gone;
    put($s, request(GET, 'k'));
    is_answer($s, 1, qr/^Not found$/, '... and serves when one that waits is reset');
    close $handle;
    is_answer($held, 0x20, qr/^Auth/, 'the login that was held');
    is_answer($second, 0, qr/^Authenticated$/, 'the next one');
    is_answer($second, 0, qr/^$/, 'what came behind it');
    # the end, while a login is held and another one waits
    put($held, plain('me', 'hold') . request(NOOP));
    $handle = wait_held();
    put($second, plain('me', 'secret'));
    kill TERM => $server->pid;
    close $handle;
    is_answer($held, 0x20, qr/^Auth/, 'a server that ends answers the one');
    $server->stop('TERM', 'and ends');

    # the end, though a login does not
    my $kept = "$dir/items";
    my @keeps = ('-S', '-B', 'binary', '-t', 1, '-e', $kept);
    ($server, $s) = serve(@keeps, {env => {SASL_CONF_PATH => $dir, %held}});
    put($s, plain('me', 'secret'));
    is_answer($s, 0, qr/^Authenticated$/, 'a client');
    put($s, request(SET, 'k', pack('NN', 0, 0), 'v'));
    is_answer($s, 0, qr/^$/, 'an item');
    $held = $server->connect;
    put($held, plain('me', 'hold') . request(NOOP));
    $handle = wait_held();
    $server->stop('USR1', 'ends though libsasl2 does not answer');
    log_says($server, qr/^memcached: warning: libsasl2 does not answer a login, which is given up; /m, '... says so');
    ok(-s $kept, '... and has saved its items');
    close $handle;
}

done_testing();
