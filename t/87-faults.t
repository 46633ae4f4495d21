#!/usr/bin/env perl
# What clients, signals and limits do to a server, one case each with what is expected of it:
# clients that dribble, leave in the middle, reset, send nothing but line ends or come and go;
# descriptors that run out; a stop and a continuation; kills and restarts on the same port under
# load; reloads during logins; a log that cannot be written.
#
# Elsewhere: no memory t/85, short reads and writes, EINTR and errors of accept t/86, readers that
# do not read t/40, watchers and dumps that nobody reads t/71 and t/83, silent clients t/48, -c
# t/42, -M and a full -m t/19 and t/30, a CPU set that shrinks t/53, stops under load t/44.
use MCTest ':ours';
use IO::Socket::INET;
use Socket qw(SOL_SOCKET SO_LINGER);
use Time::HiRes qw(time sleep);
use MCBinary;

my $dir = scratch_dir();
my $canary = "VALUE canary 5 6\r\nyellow\r\nEND\r\n";

sub replace_file($name, $text) {
    write_file("$dir/$name.new", $text);
    rename "$dir/$name.new", "$dir/$name" or die "$dir/$name: $!";
    return "$dir/$name";
}

sub open_files($server) {
    opendir my $fds, '/proc/' . $server->pid . '/fd' or return 0;
    return scalar grep { /^\d+$/ } readdir $fds;
}

# The connection is reset, not closed.
sub reset_connection($sock) {
    setsockopt $sock, SOL_SOCKET, SO_LINGER, pack 'll', 1, 0;
    close $sock;
}

# ---- clients -----------------------------------------------------------------------------

each_profile(sub ($profile) {
    my ($server, $s) = serve($profile, qw(-m 64 -t 2 -c 1000));
    my $is_there = canary($server, $s);
    my $before = mem_stats($server->control);
    # All who came are gone, and nothing of theirs is left.
    my $unharmed = sub ($name) {
        $is_there->($name);
        soon { mem_stats($server->control)->{curr_connections} == $before->{curr_connections} }
            "$name: all connections are gone";
    };

    # slowloris: a byte of a header, or of a value, from each of many, again and again
    {
        my @header = map { $server->connect } 1 .. 60;
        my @value = map { $server->connect } 1 .. 60;
        put($_, "set slow$_ 0 0 20\r\n") for @value;
        for my $i (0 .. 19) {
            put($_, substr "get canary nix nix\r\n", $i, 1) for @header;
            put($_, 'v') for @value;
            exchange($s, "get canary\r\n", $canary, "slow clients, byte $i: others are served");
        }
        expect_bytes($_, $canary, 'who sent a byte at a time') for $header[0], $header[59];
        put($_, "\r\n") for @value;
        expect_bytes($_, "STORED\r\n", 'and a value so') for $value[0], $value[59];
        close $_ for splice(@header), splice @value;
        $unharmed->('slow clients');
    }

    # half closed and reset in the middle of a value, of a line, behind many unread replies
    for my $sent ("set gone 0 0 100000\r\n" . 'x' x 50_000, "set gone 0 0 10\r\nxxx", 'get can',
            "ms gone 5000\r\n" . 'x' x 4000, packet(0x01, key => 'gone', value => 'x' x 500, body_len => 90_000,
                extras => store_extras())) {
        my $name = length($sent) . ' bytes of ' . show(substr $sent, 0, 8);
        my $c = $server->connect;
        put($c, $sent);
        shutdown $c, 1;
        expect_eof($c, '', "half closed behind $name");
        close $c;
        $c = $server->connect;
        put($c, $sent);
        reset_connection($c);
        $unharmed->("reset behind $name");
    }
    exchange($s, "get gone\r\n", "END\r\n", 'nothing of it is stored');
    exchange($s, "set wide 0 0 500000\r\n" . 'w' x 500_000 . "\r\n", "STORED\r\n");
    for (1 .. 5) {
        my $c = $server->connect;
        put($c, "get wide\r\n" x 40);
        read_bytes($c, 1000);
        reset_connection($c);
    }
    $unharmed->('reset behind unread replies');

    # line ends, a million of them, that are answered and read, or not read
    {
        my $c = $server->connect;
        my $each = $profile eq '1.4' ? "ERROR\r\n" : "CLIENT_ERROR bad command line format\r\n";
        my ($sent, $got) = (0, 0);
        for my $round (1 .. 20) {
            $sent += put($c, "\r\n" x 5000);
            $got += length read_bytes($c, 5000 * length $each);
        }
        is($got / length $each, $sent / 2, '100,000 line ends are answered one by one');
        close $c;
        $c = $server->connect;
        put($c, "\n" x 1_000_000, 2);
        close $c;
        $unharmed->('a million line ends');
    }

    # come and go: without a word, with one, and with a reset
    {
        my $from = mem_stats($server->control)->{total_connections};
        my $files = open_files($server);
        for my $i (1 .. 600) {
            my $c = $server->connect(no_wait => $i % 2);
            put($c, "get canary\r\n", 0.001) if $i % 3 == 0;
            $i % 5 ? close $c : reset_connection($c);
        }
        $unharmed->('600 that come and go');
        # Some may be accepted only now.
        soon { open_files($server) <= $files + 1 } 'no descriptor is left';
        soon { mem_stats($server->control)->{total_connections} > $from } 'they were there';
    }

    # urgent data is data like any other, or passed over; the connection goes on
    {
        my $c = $server->connect;
        put($c, "get nix\r\n");
        expect_bytes($c, "END\r\n", 'before urgent data');
        send $c, '!', Socket::MSG_OOB();
        put($c, "\r\nget canary\r\n");
        like(scalar(read_bytes($c, length $canary)), qr/^(?:VALUE|\w*ERROR)/, 'urgent data');
        close $c;
        $unharmed->('urgent data');
    }

    # 1.6.42: a store that fails while mutations are watched; a body beyond INT_MAX is not read
    # as requests
    {
        my $w = $server->connect;
        put($w, "watch mutations\r\n");
        is(read_line($w), "OK\r\n", 'watch mutations');
        my $b = $server->connect;
        put($b, packet(0x01, key => 'fail', value => 'x' x 1_100_000, extras => store_extras()));
        answers($b, 0x01, {status => 3, value => 'Too large.'}, 'too large');
        exchange($s, "set fail 0 0 1100000\r\n" . 'x' x 1_100_000 . "\r\n", "SERVER_ERROR object too large for cache\r\n");
        exchange($s, "set heard 0 0 1\r\n1\r\n", "STORED\r\n");
        my $line;
        do { $line = read_line($w) } until $line !~ /key=fail/;
        like($line, qr/type=item_store key=heard status=stored/, 'and the watcher goes on');
        close $_ for $w, $b;
        my $c = $server->connect;
        put($c, packet(0x01, key => 'k', extras => store_extras(), body_len => 0x80000009)
            . packet(0x01, key => 'inside', value => '1', extras => store_extras()) . "set inside 0 0 1\r\n1\r\n");
        shutdown $c, 1;
        read_until_eof($c);
        exchange($s, "get inside\r\n", "END\r\n", 'a body of 2 GiB is not read as requests');
        close $c;
        $unharmed->('failed stores');
    }

    # a stop and a continuation: what was asked meanwhile is answered then
    {
        my @c = map { $server->connect } 1 .. 20;
        put($_, "get canary\r\n") for @c;
        expect_bytes($_, $canary, 'before the stop') for $c[0];
        read_bytes($_, length $canary) for @c[1 .. 19];
        kill 'STOP', $server->pid;
        wait_until(sub { is_stopped($server) });
        put($_, "get canary\r\nget canary\r\n") for @c;
        close pop @c;
        my $new = $server->connect;
        put($new, "get canary\r\n");
        kill 'CONT', $server->pid;
        my $right = grep { read_bytes($_, 2 * length $canary) eq $canary x 2 } @c;
        is($right, 19, 'stopped and continued: all are answered');
        expect_bytes($new, $canary, 'and one who came meanwhile');
        close $_ for @c, $new;
        $unharmed->('a stop');
    }

    # descriptors run out, and are there again
  SKIP: {
        system('prlimit --version >/dev/null 2>&1') == 0 or skip 'no prlimit', 6;
        my $most = open_files($server) + 4;
        is(system("prlimit --pid @{[$server->pid]} --nofile=$most: >/dev/null"), 0, 'fewer descriptors');
        my @many = map { $server->connect } 1 .. 12;
        put($_, "get canary\r\n") for @many;
        soon { mem_stats($server->control)->{accepting_conns} == 0 } 'accepting_conns is 0';
        exchange($s, "get canary\r\n", $canary, 'those who are there are served');
        is(system("prlimit --pid @{[$server->pid]} --nofile=1024: >/dev/null"), 0, 'more descriptors');
        my $right = grep { read_bytes($_, length $canary) eq $canary } @many;
        is($right, 12, 'all who waited are served');
        close $_ for splice @many;
        $unharmed->('descriptors that run out');
    }
    $server->stop;
});

# ---- kills -------------------------------------------------------------------------------

# Each value tells its key: a client sees right values, misses, and broken connections.
sub hammer($port, $seed) {
    srand $seed;
    my $s;
    while (1) {
        if (!$s || !$s->connected) {
            $s = IO::Socket::INET->new(PeerAddr => '127.0.0.1', PeerPort => $port, Timeout => 5);
            if (!$s) {
                sleep 0.005;
                next;
            }
        }
        my $key = 'k' . int rand 50;
        my $value = "$key." x (1 + int rand 300);
        local $SIG{PIPE} = 'IGNORE';
        print {$s} "set $key 0 0 @{[length $value]}\r\n$value\r\nget $key\r\n";
        my $line = <$s> // '';
        POSIX::_exit(1) if $line =~ /\n\z/ && $line !~ /^(?:STORED|SERVER_ERROR.*)\r\n/;
        $line = <$s> // '' if $line ne '';
        if (my ($found, $bytes) = $line =~ /^VALUE (\S+) 0 (\d+)\r\n\z/) {
            POSIX::_exit(2) if $found ne $key;
            my $n = read($s, my $data, $bytes + 7) // 0;
            POSIX::_exit(3) if $n == $bytes + 7 && $data !~ /\A(?:\Q$key.\E)+\r\nEND\r\n\z/;
            next if $n == $bytes + 7;
        } elsif ($line eq "END\r\n") {
            next;
        }
        close $s; # it broke off
        undef $s;
    }
}

{
    my $port = free_port();
    my @clients = map {
        my $seed = $_;
        in_child(sub {
            local $SIG{TERM} = 'DEFAULT';
            hammer($port, $seed);
        });
    } 1 .. 3;
    my $bound = 0;
    for my $round (1 .. 20) {
        my ($server, $c) = serve($round % 2 ? '1.4' : '1.6', '-l', '127.0.0.1', '-p', $port, '-t', '2', {listen => 0});
        put($c, "mn\r\n");
        $bound++ if read_line($c) eq "MN\r\n";
        wait_until(sub { mem_stats($server->control)->{cmd_set} > 100 });
        $server->_kill;
    }
    is($bound, 20, 'killed twenty times under load: the port is bound again each time');
    kill 'TERM', @clients;
    my @status = map { waitpid $_, 0; $? } @clients;
    is("@status", '15 15 15', 'no client has seen a wrong value');
}

# ---- reloads -----------------------------------------------------------------------------

each_profile(sub ($profile) {
    my $file = replace_file('tokens', "alice:secret\n");
    my $server = serve($profile, '-Y', $file, '-t', '2', {debug => 0});
    my $login = sub {
        my $c = $server->connect;
        put($c, "set x 0 0 12\r\nalice secret\r\n");
        return read_line($c) eq "STORED\r\n";
    };
    ok($login->(), 'a login');
    my $files = open_files($server);
    my $good = 0;
    for my $round (1 .. 1000) {
        kill 'HUP', $server->pid;
        next if $round % 10;
        # alice is in all of them
        replace_file('tokens', $round % 20 ? "alice:secret\n" : "bob:x\nalice:secret\ncarol:" . 'y' x 200 . "\n");
        $good++ if $login->();
    }
    is($good, 100, '1,000 reloads: each login meanwhile is good');
    # files that are no good leave the old entries in force
    for my $bad ('', "\0" x 1000, "alice", 'x' x 10_000_000, "nobody:\n\n\n") {
        my $name = length($bad) . ' bytes of ' . show(substr $bad, 0, 6);
        replace_file('tokens', $bad);
        kill 'HUP', $server->pid for 1 .. 3;
        my $c = $server->connect;
        put($c, "set x 0 0 12\r\nalice wrong!\r\n");
        is(read_line($c), "CLIENT_ERROR authentication failure\r\n", "$name: nobody else may in");
        ok($server->is_alive, "$name: alive");
    }
    replace_file('tokens', "alice:secret\n");
    soon { kill 'HUP', $server->pid; $login->() } 'a good file again';
    soon { open_files($server) <= $files } 'no descriptor is left';
});

# ---- a log that cannot be written ----------------------------------------------------------

each_profile(sub ($profile) {
    my ($server, $s) = serve($profile, '-vv', {wrap => ['/bin/sh', '-c', 'exec "$0" "$@" 2>/dev/full >/dev/full']});
    exchange($s, "get nix\r\nbogus\r\n", "END\r\nERROR\r\n", '-vv into a full disk');
    ($server, $s) = serve($profile, '-vv', {wrap => ['/bin/sh', '-c', 'ulimit -f 1; exec "$0" "$@" 2>' . scratch_dir() . '/log']});
    exchange($s, "get nix\r\nbogus\r\n", "END\r\nERROR\r\n", '-vv into a file that may not grow (ulimit -f)');
});

done_testing();
