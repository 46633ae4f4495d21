#!/usr/bin/env perl
# The n-th allocation fails, once or with all that follow, for one n after the other: while the
# server starts, and while clients ask for everything. It starts or says why it does not; each
# request gets its answer, or an error about memory, or its connection is closed; afterwards the
# server serves again. t/preload/fail_alloc.c, preloaded into the server, counts and fails.
#
# OOM_STEP=1 tries every n; by default some are passed over.
use MCTest ':ours';
use POSIX qw(:sys_wait_h);
use Time::HiRes qw(time sleep);
use MCBinary;
use MCPreload;

my $FOR_EVER = 1 << 62;
my $NO_MEMORY = qr/SERVER_ERROR [Oo]ut of memory(?: storing object| writing get response| allocating new item)?\r\n/;
my $REFUSED = "ERROR Too many open connections\r\n";
my $dir = scratch_dir();
my $control = "$dir/control";
my ($program, @wrapped) = server_binary();
my %environment = (preloaded('fail_alloc'), FAIL_ALLOC => $control);

plan skip_all => 'the server runs under something else' if @wrapped;

# ---- which allocations fail ------------------------------------------------------------

# From now on number $first to $last; 0: none.
sub fail_from($first, $last) { control_put($control, 0, $first, $last, 0); }

# How many were asked for, and how many failed, since then.
sub allocations {
    my ($seen, undef, undef, $failed) = control_of($control);
    return wantarray ? ($seen, $failed) : $seen;
}

sub has_failed { return (allocations())[1] > 0; }

# ---- the start -------------------------------------------------------------------------

# Starts the server with these failures, lets it serve and stops it, if it can be.
# (status, signal, what it said, what is wrong)
sub life($first, $last, @args) {
    my ($ports, $said) = ("$dir/life.port", "$dir/life.err");
    unlink $ports;
    fail_from($first, $last);
    my $pid = fork // die "fork: $!";
    if (!$pid) {
        %ENV = (%ENV, %environment, MEMCACHED_PORT_FILENAME => $ports);
        open STDIN, '<', '/dev/null';
        open STDOUT, '>', '/dev/null';
        open STDERR, '>', $said;
        { no warnings; exec $program, '-l', '127.0.0.1', '-p', '-1', @AS_ROOT, @args; }
        POSIX::_exit(127);
    }
    my ($status, $wrong) = (undef, '');
    my $has_ended = sub { waitpid($pid, WNOHANG) == $pid && ($status = $?, 1) };
    wait_until(sub { -s $ports || $has_ended->() }) or $wrong = 'does not start';
    if (!defined $status && !$wrong) {
        my ($line) = grep { /TCP/ } split /\n/, MCTest::slurp($ports);
        my $s = IO::Socket::INET->new(PeerAddr => '127.0.0.1', PeerPort => $line =~ /(\d+)$/);
        if ($s) {
            $s->blocking(0);
            put($s, "mn\r\n");
            my ($got, $is_closed) = (read_line($s), !defined MCTest::fill($s, 0));
            $wrong = 'does not answer' if $got eq '' && !$is_closed && MCTest::fill($s, 60) // 1;
        }
        kill 'TERM', $pid;
        wait_until($has_ended) or $wrong = 'does not end';
    }
    if (!defined $status) {
        kill 'KILL', $pid;
        waitpid $pid, 0;
        $status = $?;
    }
    return ($status >> 8, $status & 127, MCTest::slurp($said), $wrong);
}

# Tries numbers of the start; tells what went wrong with which.
sub try_starts($name, $step, @args) {
    my ($status, $signal, $said, $wrong) = life(0, 0, @args);
    my $count = allocations();
    is("$status $signal $wrong", '0 0 ', "$name: starts and ends") or diag($said);
    for my $is_lasting (0, 1) {
        my @bad;
        for (my $n = 1; $n <= $count; $n += $step) {
            ($status, $signal, $said, $wrong) = life($n, $is_lasting ? $FOR_EVER : $n, @args);
            my $is_clear = $status == 0 || ($status != 99 && $said =~ /^memcached: [^\n]+$/m);
            push @bad, "number $n: status $status, signal $signal, $wrong: $said"
                if !$is_clear || $signal || $wrong || $said =~ /Sanitizer|must:/;
        }
        is(join("\n", @bad), '', "$name: starts or says why not when one of $count allocations fails"
            . ($is_lasting ? ' and all that follow' : ''));
    }
}

# ---- a session -------------------------------------------------------------------------

my ($mid, $big) = ('m' x 20_000, 'b' x 1_000_000);
my $value = sub { "VALUE $_[0] 0 " . length($_[1]) . "\r\n$_[1]\r\n" };
my $stats = qr/(?:STAT [^\r]*\r\n|\d+:[^\r]*\r\n)*/;
my $gone = "END\r\n";
my $one_mid = $value->('mid', $mid) . $gone;

# Requests over text, and the whole replies that they may get. What an earlier request failed to
# store may be missing.
my @text = (
    ["set small 0 0 5\r\nhello\r\n", "STORED\r\n"],
    ["get small\r\n", $value->('small', 'hello') . $gone, $gone],
    ["get small nix small\r\n", $value->('small', 'hello') x 2 . $gone, $gone],
    ["append small 0 0 1\r\n!\r\n", "STORED\r\n", "NOT_STORED\r\n"],
    ["get small\r\n", $value->('small', 'hello!') . $gone, $value->('small', 'hello') . $gone, $gone],
    ["set n 0 0 1\r\n9\r\n", "STORED\r\n"],
    ["incr n 1\r\n", "10\r\n", "NOT_FOUND\r\n"],
    ["ma m N0 J5 v\r\n", "VA 1\r\n5\r\n"],
    ["ms YWJj 3 b c\r\nxyz\r\n", qr/HD c\d+\r\n/],
    ["mg YWJj b k v s t\r\n", qr/VA 3 b? ?kYWJj(?: b)? s3 t-1(?: b)?\r\nxyz\r\n/, qr/VA 3 .*\r\nxyz\r\n/, "EN\r\n"],
    ["mg made N30 v\r\n", qr/VA 0 W\r\n\r\n/, "EN\r\n"],
    ["me small\r\n", qr/ME small .*\r\n/, "EN\r\n"],
    ["touch small 100\r\n", "TOUCHED\r\n", "NOT_FOUND\r\n"],
    ["gat 100 small\r\n", qr/(?:VALUE small 0 [56]\r\nhello!?\r\n)?END\r\n/],
    ["set mid 0 0 20000\r\n$mid\r\n", "STORED\r\n"],
    ['get' . ' mid' x 60 . "\r\n", $value->('mid', $mid) x 60 . $gone, $gone],
    ["set big 0 0 1000000\r\n$big\r\n", "STORED\r\n"],
    ["get big big big\r\n", $value->('big', $big) x 3 . $gone, $gone],
    ["append big 0 0 10\r\n0123456789\r\n", "STORED\r\n", "NOT_STORED\r\n"],
    ["mg big s\r\n", qr/HD s10000[01]0\r\n/, "EN\r\n"],
    ["set big 0 0 3\r\nnew\r\n", "STORED\r\n"],
    ["get big\r\n", $value->('big', 'new') . $gone, $gone],
    ["set huge 0 0 1100000\r\n" . 'h' x 1_100_000 . "\r\n", "SERVER_ERROR object too large for cache\r\n"],
    ['get ' . join(' ', map { "missing$_" } 1 .. 1500) . "\r\n", $gone],
    ["get mid\r\n" x 200, $one_mid x 200, $gone x 200],
    ["stats\r\n", qr/${stats}END\r\n/],
    (map { ["stats $_\r\n", qr/${stats}(?:END|RESET)\r\n/] } qw(items slabs settings conns sizes reset)),
    ["stats cachedump 1 0\r\n", qr/(?:ITEM .*\r\n)*END\r\n/],
    ["stats detail on\r\n", "OK\r\n"],
    (map { ["get prefix$_:key\r\n", $gone] } 1 .. 40),
    ["stats detail dump\r\n", qr/(?:PREFIX .*\r\n)*END\r\n/],
    ["stats detail off\r\n", "OK\r\n"],
    ["stats qos\r\n", qr/${stats}END\r\n/],
    ["slabs reassign 1 5\r\n", qr/\w+ .*\r\n|OK\r\n/],
    ["lru_crawler crawl all\r\n", qr/\w+ .*\r\n|OK\r\n/],
    ["lru tune 30 30 0.2 2.0\r\n", "OK\r\n"],
    ["cache_memlimit 70\r\n", "OK\r\n"],
    ["verbosity 1\r\n", "OK\r\n"],
    ["bogus\r\n", "ERROR\r\n"],
    ["delete small\r\n", "DELETED\r\n", "NOT_FOUND\r\n"],
    ["flush_all\r\n", "OK\r\n"],
    ["get mid big small n\r\n", $gone],
);

# Whether the reply is one of those; with a failure behind it, also one about memory, or what the
# server had said when it closed.
sub is_right($got, @right) {
    my $is_closed = $got =~ s/<closed>\z//;
    if ($is_closed || has_failed()) {
        push @right, $NO_MEMORY, $is_closed ? $REFUSED : ();
        push @right, qr/(?s)(?:VALUE .*|(?:STAT|ITEM|PREFIX|\d+:) .*|END\r\n)?$NO_MEMORY?/ if $is_closed;
        # of a pipeline each reply may be one of them
        push @right, qr/(?:VALUE mid 0 20000\r\nm{20000}\r\n(?:END\r\n|$NO_MEMORY)|END\r\n|$NO_MEMORY)+/;
        return 0 if $is_closed && !has_failed();
    }
    return scalar grep { ref $_ ? $got =~ /\A$_\z/ : $got eq $_ } @right;
}

sub shown { return length $_[0] > 300 ? show(substr($_[0], 0, 60) . '...' . substr $_[0], -120) : show($_[0]); }

sub say_text {
    my ($server, $bad) = @_;
    my $s = $server->connect;
    for my $step (@text) {
        my ($send, @right) = @$step;
        my $got = roundtrip($s, $send);
        push @$bad, 'to ' . show(substr $send, 0, 60) . ': ' . shown($got) if !is_right($got, @right);
        $s = $server->connect if $got =~ /<(?:closed|no reply to version)>\z/;
    }
}

# Half a line, then the rest; a client that leaves in the middle of a value; many at once.
sub say_pieces {
    my ($server, $bad) = @_;
    my $s = $server->connect;
    put($s, 'get ' . 'half' x 20);
    roundtrip($server->connect, "mn\r\n");
    my $got = roundtrip($s, " b\r\n");
    push @$bad, 'to half a line: ' . show($got) if !is_right($got, $gone);
    put($server->connect, "set part 0 0 500000\r\n" . 'p' x 100_000);
    my @many = map { $server->connect } 1 .. 40;
    for my $c (@many) {
        $got = roundtrip($c, "get nix\r\n");
        push @$bad, 'to one of many: ' . show($got) if !is_right($got, $gone);
    }
}

sub say_binary {
    my ($server, $bad) = @_;
    my $noop = packet(0x0a);
    my $s = $server->connect;
    for my $step ([0x01, {0 => 1}, key => 'bin', value => 'v' x 3000, extras => store_extras()],
            [0x00, {0 => 1, 1 => 1}, key => 'bin'], [0x0c, {0 => 1, 1 => 1}, key => 'bin'],
            [0x05, {0 => 1}, key => 'binsum', extras => sum_extras(1, 5)],
            [0x0e, {0 => 1, 1 => 1, 5 => 1}, key => 'bin', value => 'x' x 30_000],
            [0x10, {0 => 1}], [0x10, {0 => 1}, key => 'items'], [0x1d, {0 => 1, 1 => 1}, key => 'bin', extras => pack 'N', 9],
            [0x01, {3 => 1}, key => 'binbig', value => 'v' x 1_100_000, extras => store_extras()],
            [0x04, {0 => 1, 1 => 1}, key => 'bin'], [0x20, {0x81 => 1}], [0x0b, {0 => 1}]) {
        my ($opcode, $right, %fields) = @$step;
        put($s, packet($opcode, %fields) . $noop);
        my $last;
        while ($last = read_packet($s)) {
            last if $last->{opcode} == 0x0a;
            push @$bad, sprintf 'to opcode %02x: status %02x', $opcode, $last->{status}
                if !$right->{$last->{status}} && !($last->{status} == 0x82 && has_failed())
                    || $last->{opcode} != $opcode || $last->{opcode} == 0x0a;
        }
        if (!$last) {
            push @$bad, sprintf 'to opcode %02x: nothing', $opcode if !has_failed();
            $s = $server->connect;
        }
    }
}

# Clients that hear of others, and that ask for everything.
sub say_watch {
    my ($server, $bad) = @_;
    for my $order ('watch fetchers mutations evictions', 'lru_crawler metadump all') {
        my $w = $server->connect;
        put($w, "$order\r\n");
        my $got = read_line($w);
        push @$bad, "to $order: " . show($got)
            if $got !~ /\A(?:OK|END|key=.*|BUSY .*|NOTSTARTED .*|$NO_MEMORY|$REFUSED|WATCHER_FAILED .*)?\r?\n?\z/ || $got eq '' && !has_failed();
        my $s = $server->connect;
        roundtrip($s, "get watched$_\r\n") for 1 .. 3;
        next if $order !~ /watch/;
        read_line($w, has_failed() ? 0.05 : 60) =~ /\A(?:ts=.* key=watched1 .*|skipped=.*)?\n?\z/
            or push @$bad, 'a strange line of the log';
    }
}

sub say_udp {
    my ($server, $bad) = @_;
    my $u = $server->udp;
    for my $send ("set udp 0 0 2\r\nhi\r\n", "get udp\r\n", "get " . join(' ', map { "u$_" } 1 .. 100) . "\r\n") {
        $u->send(pack('nnnn', 7, 0, 1, 0) . $send);
        # an answer that there was no memory for never comes; those before it have
        next if !IO::Select->new($u)->can_read(has_failed() ? 0.05 : 60) && has_failed();
        $u->recv(my $got, 65536);
        push @$bad, 'over UDP to ' . show(substr $send, 0, 30) . ': ' . show($got // '')
            if substr($got // '', 8) !~ /\A(?:STORED\r\n|VALUE udp 0 2\r\nhi\r\nEND\r\n|END\r\n|$NO_MEMORY)\z/;
    }
}

sub say_everything {
    my ($server, $bad) = @_;
    $_->($server, $bad) for \&say_text, \&say_pieces, \&say_binary, \&say_watch, \&say_udp;
}

sub say_token($server, $bad) {
    for my $pair (["someone wrong pass", "CLIENT_ERROR authentication failure\r\n"],
            ["someone secret", "STORED\r\n"]) {
        my ($token, $right) = @$pair;
        my $s = $server->connect;
        put($s, 'set auth 0 0 ' . length($token) . "\r\n$token\r\n");
        my $got = read_line($s);
        push @$bad, "to a token: " . show($got) if $got ne $right && !(has_failed() && ($got eq '' || $got eq $REFUSED));
        next if $got ne "STORED\r\n";
        $got = roundtrip($s, "get nix\r\n");
        push @$bad, 'behind a token: ' . show($got) if !is_right($got, $gone);
    }
}

sub say_sasl($server, $bad) {
    for my $pair (["\0someone\0wrong", 0x20], ["\0someone\0secret", 0]) {
        my $s = $server->connect;
        my $got = ask($s, 0x20);
        $got = ask($s, 0x21, key => 'PLAIN', value => $pair->[0]) if $got;
        push @$bad, 'to a password: ' . ($got ? $got->{status} : 'nothing') if !has_failed() && (!$got
            || $got->{status} != $pair->[1]) || $got && $got->{status} != $pair->[1] && $got->{status} != 0x82;
        next if !$got || $got->{status} != 0;
        $got = ask($s, 0x00, key => 'nix');
        push @$bad, 'behind a password: ' . $got->{status} if $got && $got->{status} !~ /^(?:1|130)$/;
    }
}

# One server for each number: pools that a former failure has filled would hide the next.
sub try_session($name, $profile, $session, $is_well, $step, %server) {
    my @range = (0, 0);
    my $count = 0;
    for my $is_lasting (0, 1) {
        my @bad;
        for (my $n = $is_lasting ? 1 : 0; $n <= $count || $n == 0; $n += $n == 0 ? 1 : $step) {
            fail_from(0, 0);
            my $server = start_server(profile => $profile, %server, env => {%environment, %{$server{env} || {}}});
            # It accepts, and has closed again: it is up, and little has been allocated by then.
            my $first = $server->connect;
            shutdown $first, 1;
            read_until_eof($first);
            fail_from($n, $is_lasting ? $FOR_EVER : $n);
            my @here;
            $session->($server, \@here);
            $count = allocations() if $n == 0;
            fail_from(0, 0);
            push @here, 'it ended: ' . $server->err if !$server->is_alive;
            push @here, 'it does not recover' if !@here && !$is_well->($server);
            my $status = stop_quietly($server);
            push @here, "it ended with status $status" if $status != 0;
            push @here, substr $server->err, 0, 3000 if $server->err =~ /Sanitizer|must:/;
            push @bad, map { "number $n: $_" } @here;
        }
        is(join("\n", @bad), '', "[$profile] $name: right answers, or none, when one of $count allocations fails"
            . ($is_lasting ? ' and all that follow' : ''));
    }
    cmp_ok($count, '>', 5, "[$profile] $name: allocations have been counted");
}

sub stop_quietly($server) {
    delete $server->{control};
    return -1 if !$server->{pid};
    kill 'TERM', $server->{pid};
    my $status = $server->_reap(120);
    $server->_kill if !defined $status;
    $server->{pid} = 0;
    return $status // -1;
}

# Nothing is lost: it stores and serves, also much, and closes those who have left.
sub is_well {
    my ($server) = @_;
    my $s = $server->connect;
    return roundtrip($s, "set well 0 0 1000000\r\n$big\r\n") eq "STORED\r\n"
        && roundtrip($s, "get well well\r\n") eq $value->('well', $big) x 2 . $gone
        && wait_until(sub { mem_stats($server->control)->{curr_connections} <= 4 });
}

# ---- all of it -------------------------------------------------------------------------

fail_from(0, 0);
{
    my ($status) = life(0, 0);
    plan skip_all => 'a sanitizer has an allocator of its own' if allocations() == 0;
}
my $is_slow = ($ENV{ASAN_OPTIONS} || $ENV{TSAN_OPTIONS} || '') ne '';
my $tokens = write_file("$dir/tokens", "someone:secret\nother:word\n");
chmod 0644, $tokens;

my $step = $ENV{OOM_STEP} || ($is_slow ? 29 : 11);
try_starts('TCP', $step, '-t', '2');
try_starts('a listener for each, balance', $step, '-t', '2', '--pin', '--steer=reuseport', '--balance');
try_starts('HTTP', $step, '-t', '2', "--admin=unix:$dir/admin");
try_starts('UDP, tokens, pages at once', $step, '-U', '0', '-Y', $tokens, '-L', '-m', '80', '--pin=compact');
# The profiles hardly differ in what they allocate: the second is looked at here and there.
try_session('everything', $_, \&say_everything, \&is_well, $_ eq '1.4' ? $step : 5 * $step,
    args => ['-t', '1', '-U', '-1', '-m', '80', '-o', 'lru_crawler']) for profiles();
try_session('tokens', '1.6', \&say_token, sub { my @bad; say_token($_[0], \@bad); return !@bad }, $step,
    args => ['-t', '1', '-Y', $tokens]);
try_session('passwords', '1.4', \&say_sasl, sub { my @bad; say_sasl($_[0], \@bad); return !@bad }, $step,
    args => ['-t', '1', '-S'], env => {MEMCACHED_SASL_PWDB => $tokens});

# Of the first allocations for a connection over TLS one after the other fails: it is closed, or served. The library
# has got what it keeps for all before.
SKIP: {
    require MCTLS;
    skip 'no TLS: ' . MCTLS::no_tls_because(), 3 if MCTLS::no_tls_because();
    fail_from(0, 0);
    my $server = start_server(profile => '1.6', env => \%environment, args => [MCTLS::tls_args(), '-t', '1']);
    ok(MCTLS::tls_connect($server), 'a handshake') for 1 .. 2;
    for my $n (1 .. 60) {
        fail_from($n, $n);
        my $s = MCTLS::tls_connect($server);
        fail_from(0, 0);
        last if !$server->is_alive;
    }
    my $s = MCTLS::tls_connect($server);
    ok($s && roundtrip($s, "get nix\r\n") eq "END\r\n", 'TLS: the server goes on') or diag($server->err);
}

# What has no memory to become a watcher is a client as before: its next request asks for a token.
{
    fail_from(0, 0);
    my ($server, $s) = serve('-t', '1', {env => \%environment});
    my ($client, $said) = (undef, '');
    for my $n (1 .. 50) { # what else allocates meanwhile may be in between
        $client = $server->connect;
        exchange($client, "mn\r\n", "MN\r\n");
        fail_from($n, $n);
        put($client, "watch fetchers\r\n");
        $said = read_line($client);
        fail_from(0, 0);
        last if $said =~ /^WATCHER_FAILED/;
    }
    is($said, "WATCHER_FAILED failed to add log watcher\r\n", 'no memory for a watcher');
    exchange($s, "qos $_\r\n", "OK\r\n") for 'action delay', 'unit key', 'qps_limit 1 1';
    exchange($s, 'get' . ' d' x 1000 . "\r\n", "END\r\n", 'no token comes for a thousand seconds');
    exchange($s, "qos $_\r\n", "OK\r\n") for 'unit cmd', 'action error';
    exchange($client, "get a\r\n", "SERVER_ERROR 307 busy\r\n", 'and no way past a limit');
}

# Who is closed for want of memory is counted, and the log says so. Over TLS the library is without memory, too.
if (!$ENV{MCTEST_TLS}) {
    fail_from(0, 0);
    my $server = serve('-t', '1', {env => \%environment});
    my ($last, @clients) = map { $server->connect } 0 .. 200;
    expect_open($_) for $last, @clients;
    fail_from(1, $FOR_EVER);
    put($_, 'get') for @clients; # half a line needs a buffer, a whole one does not
    put($last, "get nix\r\n");
    is(read_line($last), "END\r\n", 'no memory for buffers: half a line of each has been read');
    put($_, " nix\r\n") for @clients;
    my $closed = grep { read_line($_) ne "END\r\n" } @clients;
    fail_from(0, 0);
    cmp_ok($closed, '>', 0, '... some are closed');
    is(mem_stats($server->control)->{read_buf_oom}, $closed, '... and counted');
    log_says($server, qr/^memcached: warning: no memory for what a client sends or is sent; its connection is closed(?: \(\d+ more left out\))?$/m, '... and the log says so');
}

# The file of --config is as it was, or saved: never a part of it. What is read of it in part is not
# applied.
{
    my ($file, $old) = ("$dir/save.conf", "qps-limit = 5k\n# " . 'a long line ' x 300 . "\nconn-limit = 500\n");
    my $new = $old =~ s/\A.*\n//r . "\n# saved by qos save\nqps-limit = 6000\n";
    fail_from(0, 0);
    write_file($file, $old);
    my $server = serve('-t', '1', '--config', $file, {env => \%environment});
    for my $word ('reload', 'save') {
        my ($count, @bad) = (0);
        exchange($server->connect, "qos qps_limit 6k\r\n", "OK\r\n") if $word eq 'save';
        for (my $n = 0; $n <= $count; $n++) {
            write_file($file, $old);
            my $s = $server->connect;
            fail_from($n, $n);
            my $got = roundtrip($s, "qos $word\r\n");
            $count = allocations() if $n == 0;
            fail_from(0, 0);
            my $is = read_file($file);
            my $is_saved = $word eq 'save' && $is eq $new;
            push @bad, "number $n: " . show($got) . ' and ' . show($is)
                if !$is_saved && ($is ne $old || $got =~ /^CHANGED|^SAVED/m || $word eq 'save' && $got =~ /^OK/m);
            push @bad, "number $n leaves " . join ' ', glob "$file.*" if glob "$file.*";
        }
        cmp_ok($count, '>', 10, "qos $word: allocations have been counted");
        is(join("\n", @bad), '', "qos $word: when one of $count allocations fails");
    }
}
done_testing();
