#!/usr/bin/env perl
# Authentication, by SASL and by tokens, can not be got around: not by a failed attempt, a step
# without a start, another protocol, a fixed protocol of a listener, UDP, lengths, or blank lines.
use MCTest;
use MCBinary;

sub plain {
    my ($user, $password) = @_;
    return request(0x21, 'PLAIN', '', "\0$user\0$password");
}

my $dir = scratch_dir();

my $get = request(0x00, 'canary');
my $refused = 0x20;

# ---- SASL --------------------------------------------------------------------------------

my $passwords = scratch_file('sasl', "alice:secret\nbob:" . ('p' x 200) . ":more\n\nnonsense\ncarol:\n");
for my $profile (is_ours() ? profiles() : ()) {
    my $server = eval {
        start_server(profile => $profile, args => ['-S'], env => {MEMCACHED_SASL_PWDB => $passwords},
            debug => 0);
    };
    if (!$server) {
        diag($@);
        fail("[$profile] a server with SASL starts");
        next;
    }
    my $known = $server->connect;
    put($known, plain('alice', 'secret'));
    is_deeply([(response($known))[0]], [0], "[$profile] the right password");
    put($known, request(0x01, 'canary', pack('NN', 0, 0), 'yellow'));
    is_deeply([(response($known))[0]], [0], "[$profile] and then anything goes");

    my $alive = sub ($name) {
        ok($server->is_alive, "[$profile] $name: alive") or BAIL_OUT("server died: " . $server->err);
        put($known, $get);
        is_deeply([response($known)], [0, "\0\0\0\0yellow"], "[$profile] $name: in sync");
    };
    # After these bytes a get is refused and the connection closed.
    my $still_out = sub {
        my ($name, @sent) = @_;
        my $c = $server->connect;
        for my $bytes (@sent) {
            put($c, $bytes);
            response($c);
        }
        put($c, $get);
        my ($status, $body) = response($c);
        is($status, $refused, "[$profile] $name: a get is refused");
        my ($rest, $closed) = read_until_eof($c);
        ok($closed && $rest eq '', "[$profile] $name: and the connection closed");
        $alive->($name);
    };

    $still_out->('nothing');
    $still_out->('a wrong password', plain('alice', 'wrong'));
    $still_out->('an unknown user', plain('mallory', 'secret'));
    # CVE-2013-7239: an invalid request, then a wrong password, then once more
    $still_out->('CVE-2013-7239', request(0x21, 'NOSUCH', '', 'x'), plain('alice', 'x'), plain('alice', 'x'));
    $still_out->('a failure behind a success', plain('alice', 'secret'), plain('alice', 'wrong'));
    # 1.5.9: a step before any start
    $still_out->('a step first', request(0x22, 'PLAIN', '', "\0alice\0secret"));
    $still_out->('an empty step', request(0x22, 'PLAIN'));
    # many at once, read and not: one after the other is refused, and nothing piles up
    {
        my @flood = map { $server->connect } 1 .. 10;
        my $wrong = plain('alice', 'wrong') x 1000;
        my $refusals = 0;
        for my $c (@flood) {
            put($c, $wrong);
            $refusals += grep { $_ eq '8121000000000020' } unpack '(H16 x29)*', read_bytes($c, 37 * 1000);
        }
        is($refusals, 10_000, "[$profile] 10,000 wrong passwords: each is refused");
        my $memory = proc_status($server->pid, 'RssAnon');
        for my $round (1 .. 5) {
            for my $c (@flood) {
                put($c, $wrong);
                read_bytes($c, 37 * 1000);
            }
        }
        put($_, $wrong x 5, 0.01) for @flood;
        cmp_ok(proc_status($server->pid, 'RssAnon') - $memory, '<', $ENV{ASAN_OPTIONS} || $ENV{TSAN_OPTIONS}
            ? 60_000 : 10 * 10 * 16 + 1000, "[$profile] ten blocks for each at most");
        close $_ for @flood;
        $alive->('wrong passwords in a flood');
    }
    # prefixes, additions, and NULs in the wrong places
    $still_out->('part of the password', plain('alice', 'secre'));
    $still_out->('more than the password', plain('alice', 'secret0'));
    $still_out->('part of the name', plain('alic', 'secret'));
    $still_out->('a name with a NUL', plain("alice\0", 'secret'));
    $still_out->('another identity', request(0x21, 'PLAIN', '', "root\0alice\0wrong"));
    $still_out->('no NUL at all', request(0x21, 'PLAIN', '', 'alice secret'));
    $still_out->('one NUL', request(0x21, 'PLAIN', '', "alice\0secret"));
    $still_out->('NULs only', request(0x21, 'PLAIN', '', "\0" x 2));
    $still_out->('no user', plain('', ''));
    $still_out->('a user of the second field', plain('bob', ('p' x 200) . ':more'));
    $still_out->('a line without a colon', plain('nonsense', ''));
    $still_out->('CVE-2016-8706: a long name of a mechanism', request(0x21, 'm' x 40, '', 'x' x 100));
    $still_out->('a password of 10,000 bytes', plain('alice', 'x' x 10_000));
    {
        # CVE-2016-8706 again: a body shorter than the key
        my $c = $server->connect;
        put($c, pack('CCnCCnNNQ>', 0x80, 0x21, 0x20, 0, 0, 0, 1, 1, 0) . 'A' x 1000);
        shutdown $c, 1;
        my (undef, $closed) = read_until_eof($c);
        ok($closed, "[$profile] CVE-2016-8706: closed");
        $alive->('CVE-2016-8706');
    }
    for my $op (0x01 .. 0x06, 0x08 .. 0x0a, 0x0c .. 0x1a, 0x1c .. 0x1e, 0x23, 0x24) {
        my $c = $server->connect;
        put($c, request($op, $op == 0x08 || $op == 0x0a || $op == 0x10 || $op == 0x17 || $op == 0x18
            ? '' : 'canary'));
        my ($status) = response($c);
        is($status, $refused, sprintf '[%s] opcode %02x is refused', $profile, $op);
    }
    for my $text ("get canary\r\n", "version\r\n", "set canary 0 0 1\r\n1\r\n", "mg canary v\r\n") {
        my $c = $server->connect;
        put($c, $text . ' ' x 30);
        shutdown $c, 1;
        my ($got, $closed) = read_until_eof($c);
        ok($closed && $got eq '', "[$profile] text is closed: " . show($text))
            or diag('    got: ' . show($got));
    }
    $alive->('all of it');
    my $c = $server->connect;
    put($c, plain('bob', 'p' x 200));
    is_deeply([(response($c))[0]], [0], "[$profile] a password of 200 bytes");
    $server->stop;
}

# ---- UDP together with authentication (issue 501 and 1.6.43) -------------------------------

each_profile(sub ($profile) {
    plan skip_all => 'of this server' if !is_ours();
    my $tokens = scratch_file('tokens', "alice:secret\n");
    for my $case (['-S', {MEMCACHED_SASL_PWDB => $passwords}], ['-Y', {}, $tokens]) {
        my ($option, $env, @file) = @$case;
        my $port = free_port();
        my $server = eval {
            start_server(profile => $profile, listen => 0, debug => 0, env => $env,
                args => [$option, @file, '-l', '127.0.0.1', '-p', $port, '-U', $port]);
        };
        if (!$server) {
            like($@, qr/UDP/, "[$profile] $option with UDP is refused");
            next;
        }
        my $udp = IO::Socket::INET->new(PeerAddr => '127.0.0.1', PeerPort => $port, Proto => 'udp');
        my $answered = '';
        for my $payload ("stats\r\n", request(0x0b)) {
            send $udp, pack('n4', 1, 0, 1, 0) . $payload, 0;
            my $bits = '';
            vec($bits, fileno $udp, 1) = 1;
            my $bytes = '';
            $answered .= $bytes if select($bits, undef, undef, 0.2) > 0 && recv $udp, $bytes, 2000, 0;
        }
        is($answered, '', "[$profile] $option with UDP: nobody answers there");
        $server->stop;
    }
});

# ---- tokens (-Y) --------------------------------------------------------------------------

# 9.1: files without a final newline, with long lines, without a colon
each_profile(sub ($profile) {
    plan skip_all => 'of this server' if !is_ours();
    my %file = (
        'no final newline' => ["alice:secret", 1],
        'eight users' => [join('', map { "user$_:pass$_\n" } 1 .. 8) =~ s/user8:pass8/alice:secret/r, 1],
        'more than eight users' => ["alice:secret\n" . join('', map { "user$_:pass$_\n" } 1 .. 20), 1],
    );
    for my $name (sort keys %file) {
        my ($text, $starts) = @{$file{$name}};
        my $server = eval { start_server(profile => $profile, debug => 0,
            args => ['-Y', scratch_file('tokens', $text)]) };
        ok($server, "[$profile] CVE-2021-37519, $name: starts") or next;
        my $c = $server->connect;
        put($c, "set x 0 0 12\r\nalice secret\r\n");
        is(read_line($c), "STORED\r\n", "[$profile] $name: the token is good");
        $server->stop;
    }
    for my $bad ("alice\n", 'x' x 300, "alice:secret\nbob", ('x' x 250) . ":secret\nbob" . 'y' x 400 . "\n", '') {
        my $run = run_program("--compat=$profile", '-Y', scratch_file('tokens', $bad), '-l', '127.0.0.1', '-p', -1,
            '-u', 'root', {timeout => $bad =~ /\A(?:alice\n|x+)\z/ ? 60 : 0.3});
        ok($run->{signal} == 0 || $run->{timed_out}, "[$profile] CVE-2021-37519: no crash on " . show($bad));
        isnt($run->{status}, 0, "[$profile] refused: " . show($bad)) if $bad =~ /\A(?:alice\n|x+)\z/;
    }

    my $server = eval { start_server(profile => $profile, debug => 0,
        args => ['-Y', scratch_file('tokens', "alice:secret\nbob:pass word\n")]) };
    ok($server, "[$profile] a server with tokens starts") or next;
    my $known = $server->connect;
    put($known, "set x 0 0 12\r\nalice secret\r\n");
    is(read_line($known), "STORED\r\n", "[$profile] the right token");
    my $alive = canary($server, $known);
    # Whatever is answered: a get behind it brings nothing out.
    my $still_out = sub {
        my ($name, $bytes, $want) = @_;
        my $c = $server->connect;
        put($c, $bytes);
        put($c, "get canary\r\n" . ' ' x 20);
        shutdown $c, 1;
        my ($got, $closed) = read_until_eof($c);
        ok($closed, "[$profile] $name: ends");
        unlike($got, qr/VALUE|yellow|STORED|STAT|VERSION/, "[$profile] $name: nothing comes out");
        like($got, $want, "[$profile] $name: answer") if defined $want;
        $alive->($name);
    };
    $still_out->('nothing', '');
    $still_out->($_, "$_\r\n") for 'version', 'stats', 'get canary', 'gets canary', 'mg canary v', 'flush_all',
        'shutdown', 'watch', 'lru_crawler metadump all', 'add x 0 0 12', 'cas x 0 0 12 1', 'ms x 12',
        'incr canary 1', 'delete canary', 'quit', 'verbosity 1', 'mn';
    # CVE-2026-90698 and 1.6.44: blank and short lines
    $still_out->('line ends', "\n" x 3000);
    $still_out->('short lines', join('', map { "$_\r\n" } 1 .. 500));
    $still_out->('CR LF', "\r\n" x 10);
    $still_out->('five blanks', "     \r\n");
    # 1.6.42: lengths
    for my $n (2_147_483_646, 2_147_483_647, 4_294_967_294, 4_294_967_295, '18446744073709551614', 16_385) {
        $still_out->("a token of $n bytes", "set foo 0 0 $n\r\n", qr/^CLIENT_ERROR auth token too long\r\n/)
            if $n <= 16_385 || $n == 2_147_483_646;
        $still_out->("a token of $n bytes", "set foo 0 0 $n\r\n") if $n > 16_385;
    }
    $still_out->("a token of $_ bytes", "set foo 0 0 $_\r\nalice secret\r\n") for -1, 0, 1, 11, 13, 'x', '';
    $still_out->('a wrong token', "set x 0 0 11\r\nalice wrong\r\n", qr/^CLIENT_ERROR authentication failure\r\n/);
    $still_out->('part of it', "set x 0 0 11\r\nalice secre\r\n", qr/^CLIENT_ERROR authentication failure\r\n/);
    $still_out->('more than it', "set x 0 0 13\r\nalice secrets\r\n", qr/^CLIENT_ERROR authentication failure\r\n/);
    $still_out->('no blank', "set x 0 0 12\r\nalice:secret\r\n", qr/^CLIENT_ERROR bad authentication token format\r\n/);
    $still_out->('a NUL', "set x 0 0 13\r\nalice secret\0\r\n");
    $still_out->('an empty password', "set x 0 0 6\r\nalice \r\n");
    $still_out->('no end', "set x 0 0 12\r\nalice secretXX\r\n");
    $still_out->('too few words', "set x 0 12\r\nalice secret\r\n", qr/^CLIENT_ERROR unauthenticated\r\n/);
    $still_out->('a long line', 'set ' . 'x' x 3000);
    $still_out->('binary', $get . request(0x21, 'PLAIN', '', "\0alice\0secret") . $get);
    my $c = $server->connect;
    put($c, "set x 0 0 13\r\nbob pass word\r\n");
    is(read_line($c), "STORED\r\n", "[$profile] a password with a blank");
    # the answer comes in spite of noreply, and in pieces too
    $c = $server->connect;
    put($c, $_) for split //, "set x 0 0 12 noreply\r\nalice secret\r\n";
    is(read_line($c), "STORED\r\n", "[$profile] byte by byte, with noreply");

    # reload during logins: SIGHUP again and again
    for my $round (1 .. 20) {
        kill 'HUP', $server->pid;
        my $c = $server->connect;
        put($c, "set x 0 0 12\r\nalice secret\r\n");
        my $line = read_line($c);
        fail("[$profile] login $round during a reload: " . show($line)) if $line ne "STORED\r\n";
    }
    $alive->('twenty reloads');
    # a bad new file leaves the old entries in force
    scratch_file('tokens', "nonsense\n");
    kill 'HUP', $server->pid;
    for (1 .. 5) {
        my $c = $server->connect;
        put($c, "set x 0 0 12\r\nalice secret\r\n");
        is(read_line($c), "STORED\r\n", "[$profile] after a bad new file");
    }
    $server->stop;
});

pass('there is no SASL to test in another memcached') if !is_ours();
done_testing();
