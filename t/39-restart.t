#!/usr/bin/env perl
# -e FILE: SIGUSR1 saves the items, the next server has them; every other end leaves none, and
# nothing that is not exactly what was saved is served.
use MCTest ':ours';
use Cwd qw(getcwd);
use File::Temp qw(tempdir);
use POSIX ();

# On a tmpfs, if there is room on it, nobody waits for a disk.
my ($free_kb) = `df -Pk /dev/shm 2>&1` =~ /\s(\d+)\s+\d+%/;
my $dir = tempdir('mctest.XXXXXX', CLEANUP => 1,
    ($free_kb || 0) > 500_000 ? (DIR => $ENV{TMPDIR_MEMORY} // '/dev/shm') : (TMPDIR => 1));
my $file = "$dir/memory";

sub fresh {
    unlink $file, "$file.meta";
}

sub start_on($profile, @args) {
    return start_server(profile => $profile, args => ['-e', $file, '-m', '44', @args]);
}

# A start that must fail, and why.
sub refused($profile, $why, $name, @args) {
    my $run = run_program("--compat=$profile", '-p', '0', '-s', "$dir/socket", '-e', $file,
        '-m', '44', @AS_ROOT, @args);
    is($run->{status}, 1, "$name: status 1");
    like($run->{err}, $why, "$name: says why");
    unlike($run->{err}, qr/\n./, "$name: in one line");
}

# ---- what comes back -------------------------------------------------------------------

each_profile(sub ($profile) {
    my @args = $profile eq '1.6' ? qw(-m 128 -I 2m -o temporary_ttl=240) : qw(-m 128 -I 2m);
    fresh();
    my $server = start_on($profile, @args);
    my $s = $server->connect;
    my $large = join '', map { chr(33 + $_ * 7 % 90) } 1 .. 1_500_000;
    exchanges($s, ["set small 7 0 3\r\nabc\r\n", "STORED\r\n"],
        ["set flags 4294967295 0 0\r\n\r\n", "STORED\r\n"],
        ["set large 1 0 1500000\r\n$large\r\n", "STORED\r\n"],
        ["set number 0 0 2\r\n99\r\nincr number 1\r\n", "STORED\r\n100\r\n"],
        ["set tail 0 0 1\r\na\r\nappend tail 0 0 1\r\nb\r\n", "STORED\r\nSTORED\r\n"],
        ["set ttl 0 1000 1\r\nt\r\nset long 0 10000 1\r\nl\r\n", "STORED\r\nSTORED\r\n"],
        ["ms AP8g 1 b\r\nx\r\n", "HD\r\n"], ["set stale 0 0 1\r\ns\r\nmd stale I T3000\r\n", "STORED\r\nHD\r\n"],
        ["set deleted 0 0 1\r\nd\r\ndelete deleted\r\n", "STORED\r\nDELETED\r\n"],
        ["set gone 0 0 1500000\r\n$large\r\ndelete gone\r\n", "STORED\r\nDELETED\r\n"]);
    put($s, "gets small large\r\n");
    my ($small_cas) = read_line($s) =~ /^VALUE small 7 3 (\d+)/;
    read_line($s);
    my ($large_cas) = read_line($s) =~ /^VALUE large 1 1500000 (\d+)/;
    read_bytes($s, 1500002 + 5);
    exchange($s, "get ttl\r\n", "VALUE ttl 0 1\r\nt\r\nEND\r\n");
    my $many = $profile eq '1.6' ? 131072 + 100 : 1000;
    put($s, join '', map { "set key$_ 0 0 " . length($_) . " noreply\r\n$_\r\n" } 1 .. $many);
    exchange($s, "mn\r\n", "MN\r\n");
    if ($profile eq '1.6') {
        soon { mem_stats($s)->{hash_power_level} == 17 } 'the table has grown';
        put($s, join '', map { "delete key$_ noreply\r\n" } 5001 .. $many);
        exchange($s, "mn\r\n", "MN\r\n");
        $many = 5000;
    }
    my $before = mem_stats($s);
    exchange($s, "cache_memlimit 200\r\n", "MEMLIMIT_ADJUST_FAILED out of bounds or unable to adjust\r\n");
    debugtime($server, 400);
    my $watcher = $server->connect;
    put($watcher, "watch\r\n");
    is(read_line($watcher), "OK\r\n", 'a watcher');
    $server->stop('USR1', 'SIGUSR1 beside a watcher: exit 0');
    log_says($server, qr/^Gracefully stopping$/m, 'says so') if $profile eq '1.6';
    is((stat "$file.meta")[2] & 0777, 0600, 'FILE.meta is private');
    like(read_file("$file.meta"), qr/^Tmain\n(?:K\w+ .+\n)+\z/, 'its lines');

    $server = start_on($profile, @args, '-v');
    $s = $server->connect;
    ok(!-e "$file.meta", 'FILE.meta has been used up');
    my $after = mem_stats($s);
    is($after->{$_}, $before->{$_}, "$_") for qw(curr_items bytes hash_power_level);
    cmp_ok($after->{uptime}, '>=', $before->{uptime} + 400, 'the clock goes on');
    exchanges($s, ["gets small\r\n", "VALUE small 7 3 $small_cas\r\nabc\r\nEND\r\n"],
        ["gets large\r\n", "VALUE large 1 1500000 $large_cas\r\n$large\r\nEND\r\n"],
        ["get flags number tail\r\n",
            "VALUE flags 4294967295 0\r\n\r\n"
            . "VALUE number 0 3\r\n100\r\nVALUE tail 0 2\r\nab\r\nEND\r\n"],
        ["mg AP8g b k v\r\n", "VA 1 kAP8g b\r\nx\r\n"]);
    put($s, "mg stale t v\r\n");
    like(read_line($s), qr/^VA 1 t2\d\d\d X W\r\n/, 'a stale item stays stale');
    read_line($s);
    exchange($s, "get deleted gone\r\n", "END\r\n");
    put($s, "get " . join(' ', map { "key$_" } 1 .. $many) . "\r\n");
    my $want = join '', map { "VALUE key$_ 0 " . length($_) . "\r\n$_\r\n" } 1 .. $many;
    ok(read_bytes($s, length($want) + 5) eq $want . "END\r\n", "$many small ones");
    put($s, "mg ttl t h\r\n");
    like(read_line($s), qr/^HD t(?:[1-5]\d\d|600) h1\r\n/, 'the time to live goes on');
    exchange($s, "set small 0 0 1\r\nn\r\n", "STORED\r\n");
    put($s, "gets small\r\n");
    my ($next) = read_line($s) =~ /^VALUE small 0 1 (\d+)/;
    cmp_ok($next, '>', $large_cas, 'CAS numbers go on');
    read_bytes($s, 3 + 5);
    debugtime($server, 601);
    exchange($s, "get ttl long\r\n", "VALUE long 0 1\r\nl\r\nEND\r\n");
    is(mem_stats($s, 'settings')->{memory_file}, $file, 'memory_file') if $profile eq '1.6';

    # Flushed now: nothing of it comes back.
    exchange($s, "flush_all\r\nset new 0 0 1\r\nn\r\n", "OK\r\nSTORED\r\n");
    $server->stop('USR1');
    $server = start_on($profile, @args);
    $s = $server->connect;
    exchange($s, "get small large key1 new\r\n", "VALUE new 0 1\r\nn\r\nEND\r\n");
    is(mem_stats($s)->{curr_items}, 1, 'one item');

    # Only a graceful stop saves.
    for my $signal (qw(KILL TERM INT)) {
        if ($signal eq 'KILL') {
            $server->_kill;
        } else {
            $server->stop($signal);
        }
        ok(!-e "$file.meta", "SIG$signal leaves no FILE.meta");
        $server = start_on($profile, @args);
        exchange($server->connect, "get new\r\nset new 0 0 1\r\nn\r\n", "END\r\nSTORED\r\n");
    }
    $server->stop;
});

# ---- under load: what a client was told is stored is there ---------------------------------

sub value_of($writer, $n) {
    return "$writer-$n " x (1 + $n * 37 % ($n % 20 ? 60 : 6000));
}

each_profile(sub ($profile) {
    fresh();
    my $server = start_on($profile, '-t', '2', '-m', '80');
    my @writers;
    for my $writer (1 .. 3) {
        pipe my $out, my $in or die "pipe: $!";
        my $pid = in_child(sub {
            close $out;
            my $c = $server->connect;
            my $n = 0;
            while ($n < 3000) {
                my $value = value_of($writer, $n);
                put($c, "set w$writer.$n $n 0 " . length($value) . "\r\n$value\r\n");
                last if read_line($c) ne "STORED\r\n";
                $n++;
                syswrite $in, 'r' if $n == 50;
            }
            syswrite $in, "$n\n";
        });
        close $in;
        push @writers, [$writer, $out, $pid];
    }
    sysread $_->[1], my $ready, 1 for @writers;
    $server->stop('USR1', 'SIGUSR1 under load: exit 0');
    my %stored;
    for my $writer (@writers) {
        my $out = $writer->[1];
        ($stored{$writer->[0]}) = (<$out> // '') =~ /^(\d+)$/;
        waitpid $writer->[2], 0;
    }
    $server = start_on($profile, '-t', '2', '-m', '80');
    my $s = $server->connect;
    for my $writer (sort keys %stored) {
        my $wrong = 0;
        for my $n (0 .. $stored{$writer} - 1) {
            my $value = value_of($writer, $n);
            my $want = "VALUE w$writer.$n $n " . length($value) . "\r\n$value\r\nEND\r\n";
            put($s, "get w$writer.$n\r\n");
            my $got = read_line($s);
            $got .= read_bytes($s, length($want) - length $got) if $got ne "END\r\n";
            $wrong++ if $got ne $want;
        }
        is($wrong, 0, "all $stored{$writer} values that were acknowledged");
    }
    $server->stop;
});

# ---- shutdown graceful, a start that fails, the background --------------------------------

each_profile(sub ($profile) {
    fresh();
    my $server = start_on($profile, '-A');
    exchange($server->connect, "set k 0 0 1\r\nv\r\n", "STORED\r\n");
    if ($profile eq '1.6') {
        put($server->connect, "shutdown graceful\r\n");
        soon { !$server->is_alive } 'shutdown graceful ends it';
        is($server->{exit}, 0, 'with status 0');
    } else {
        $server->stop('USR1');
    }

    my $other = serve($profile);
    my $run = run_program("--compat=$profile", '-l', '127.0.0.1', '-p', $other->port, '-U',
        '0', '-e', $file, '-m', '44', @AS_ROOT);
    is($run->{status}, 71, 'the port is taken');
    $other->stop;
    ok(-e "$file.meta", 'which costs no items');

    my $home = getcwd();
    my $pids = "$dir/pid";
    my $socket = "$dir/daemon";
    chdir $dir or die "$dir: $!";
    $run = run_program({command => [server_in($home), "--compat=$profile", '-d', '-P', $pids,
            '-s', $socket, '-e', 'memory', '-m', '44', @AS_ROOT]});
    chdir $home or die "$home: $!";
    is($run->{status}, 0, 'a daemon, FILE without a folder') or diag($run->{err});
    soon { -s $pids && -S $socket } 'it is up';
    my $c;
    soon { $c = IO::Socket::UNIX->new(Peer => $socket) } 'listens';
    $c->blocking(0);
    put($c, "get k\r\n");
    expect_bytes($c, "VALUE k 0 1\r\nv\r\nEND\r\n", 'serves the items');
    my $pid = read_file($pids) + 0;
    kill 'USR1', $pid;
    soon { -e "$file.meta" && !kill 0, $pid } 'it saves and ends';

    $server = start_on($profile);
    exchange($server->connect, "get k\r\n", "VALUE k 0 1\r\nv\r\nEND\r\n");
    refused($profile, qr/in use by another server/, 'FILE is in use');
    $server->stop('USR1');
});

sub server_in($home) {
    my @words = server_binary();
    return map { m{^[^/].*/} && -e "$home/$_" ? "$home/$_" : $_ } @words;
}

# ---- files that are not as they should be -------------------------------------------------

each_profile(sub ($profile) {
    fresh();
    my $server = start_on($profile);
    my $s = $server->connect;
    exchange($s, "set k 0 0 5\r\nvalue\r\n", "STORED\r\n");
    $server->stop('USR1');
    my $meta = read_file("$file.meta");

    for my $case (
        ['empty', ''], ['no line', 'hello'], ['cut', substr $meta, 0, 100],
        ['a number changed', $meta =~ s/^Kcurrent_cas \K1$/2/mr],
        ['a line more', $meta . "Kfoo 1\n"], ['binary', "\0" x 5000]) {
        write_file("$file.meta", $case->[1]);
        refused($profile, qr/memory\.meta is corrupt/, "FILE.meta: $case->[0]");
    }
    write_file("$file.meta", $meta);
    $server = start_on($profile);
    exchange($server->connect, "get k\r\n", "VALUE k 0 5\r\nvalue\r\nEND\r\n");

    # The old FILE.meta again, after a flush.
    exchange($server->connect, "flush_all\r\n", "OK\r\n");
    $server->_kill;
    write_file("$file.meta", $meta);
    $server = start_on($profile);
    log_says($server, qr/^memcached: warning: the items of \S+ are lost: .* is about others$/,
        'FILE.meta is stale');
    exchange($server->connect, "get k\r\nset k 0 0 5\r\nvalue\r\n", "END\r\nSTORED\r\n");
    $server->stop('USR1');

    # A byte of the value.
    my $memory = read_file($file);
    my $at = index $memory, 'kvalue';
    cmp_ok($at, '>', 0, 'the item is in FILE');
    write_file($file, substr($memory, 0, $at) . 'kfalse' . substr($memory, $at + 6));
    $server = start_on($profile);
    log_says($server, qr/has changed since it was saved$/, 'FILE has changed');
    exchange($server->connect, "get k\r\nset k 0 0 5\r\nvalue\r\n", "END\r\nSTORED\r\n");
    $server->stop('USR1');

    # Another geometry.
    for my $case ([maxbytes => '-m', '80'], [slab_config => '-f', '1.5'],
        [item_size_max => '-I', '2m'], [use_cas => '-C'], [chunk_size => '-n', '64']) {
        my ($name, @args) = @$case;
        $server = start_on($profile, @args);
        log_says($server, qr/are lost: $name was another one$/, "other $name");
        exchange($server->connect, "get k\r\nset k 0 0 5\r\nvalue\r\n", "END\r\nSTORED\r\n");
        $server->stop('USR1');
        $server = start_on($profile);
        exchange($server->connect, "get k\r\nset k 0 0 5\r\nvalue\r\n", "END\r\nSTORED\r\n");
        $server->stop('USR1');
    }
    # One with which no server can start leaves what another one can take.
    $server = start_on($profile);
    exchange($server->connect, "set k 0 0 5\r\nvalue\r\n", "STORED\r\n");
    $server->stop('USR1');
    refused($profile, qr/needs -m \d+ or more/, 'too little memory', '-m', 2);
    $server = start_on($profile);
    exchange($server->connect, "get k\r\n", "VALUE k 0 5\r\nvalue\r\nEND\r\n");
    $server->stop;
    fresh();
    my $saved = $file;
    $file = "$dir/nowhere/memory";
    refused($profile, qr/can't open .*: No such file or directory/, 'no folder');
    $file = $dir;
    refused($profile, qr/can't open .*: Is a directory/, 'a folder');
    $file = $saved;
});

# The classes of the native profile are others; memory for a page of each is not needed, and what lies in
# chunks of a larger class comes back.
{
    fresh();
    my $server = start_on('native', '-f', '1.25');
    exchange($server->connect, "set k 0 0 5\r\nvalue\r\n", "STORED\r\n");
    $server->stop('USR1');
    $server = start_on('native');
    log_says($server, qr/are lost: slab_config was another one$/, 'other classes');
    $server->stop('USR1');
    fresh();
    $server = start_on('native');
    my $s = $server->connect;
    my @sizes = map { $_ * 7 } 1 .. 200;
    exchange($s, join('', map { "set k$_ 0 0 $_\r\n" . 'v' x $_ . "\r\n" } @sizes), "STORED\r\n" x @sizes);
    my $classes = mem_stats($s, 'slabs')->{active_slabs};
    cmp_ok($classes, '<', 30, "200 sizes in $classes classes");
    $server->stop('USR1');
    $server = start_on('native');
    mem_get_is($server->connect, "k$_", 'v' x $_) for @sizes[0, 10, 50, 199];
    is(mem_stats($server->connect)->{curr_items}, 200, 'all of them');
    $server->stop('USR1');
    fresh();
    refused('native', qr/preallocation \(-L, -e\) needs -m \d+ or more/, 'too little for that', '-m', '10');
}

# ---- a signal in the start ------------------------------------------------------------------

# The items are in the server, and no more in the file; t/preload/hold.c holds the start there.
SKIP: {
    my $hold = preload('hold') // skip 'no library to preload', 1;
    for my $signal (qw(USR1 TERM INT)) {
        fresh();
        my $server = start_on('native');
        exchange($server->connect, "set k 0 0 5\r\nvalue\r\n", "STORED\r\n");
        $server->stop('USR1');
        POSIX::mkfifo("$dir/fifo", 0600) or die "mkfifo: $!";
        my $pid = in_child(sub {
            @ENV{qw(LD_PRELOAD HOLD_FILE)} = ($hold, "$dir/fifo");
            exec server_binary(), '-l', '127.0.0.1', '-p', '0', '-U', '0', '-e', $file, '-m', '44', @AS_ROOT;
        });
        open my $held, '>', "$dir/fifo" or die "fifo: $!";
        ok(!-e "$file.meta", "SIG$signal when the items are loaded");
        unlink "$dir/fifo"; # nothing is held from here on
        kill $signal, $pid;
        close $held;
        waitpid $pid, 0;
        is($?, 0, '... and the server is not ready: exit 0');
        $server = start_on('native');
        mem_get_is($server->connect, 'k', 'value', '... costs no items');
        $server->stop;
    }
}

# Too little room: as large as a file may be is more than there is.
fresh();
refused('1.6', qr/can't (?:reserve|resize) .*: (?:File too large|No space left on device|Invalid argument)/,
    'no room', '-m', '1000000000');
ok(!-s $file, 'nothing is left lying around');
refused('1.6', qr/preallocation \(-L, -e\) needs -m \d+ or more/, 'less than a page a class', '-m', '10');

done_testing();
