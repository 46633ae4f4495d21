#!/usr/bin/env perl
# What becomes of the file of --config while the server runs: qos reload, SIGHUP, qos save. What can
# change changes, all or nothing; the rest is named.
use MCTest ':ours';

my $dir = scratch_dir();
my $file = "$dir/s.conf";
my $SORRY = "CLIENT_ERROR nothing has changed\r\n";

sub write_conf(@lines) { return write_file($file, map { "$_\n" } @lines); }

# The option's name in the file, the value there and then, where the new one shows, as what.
my @changes = (
    ['qps-limit', '50k', '60k,bulk=2k', '50000', '60000,bulk=2000', 'qos', qps_limit => 60000, qps_limit_bulk => 2000],
    ['qps-limit-peer', '100,burst=7', '200', '100,burst=7', '200', 'qos', qps_limit_peer => 200, qps_burst_peer => 16],
    ['qps-limit-action', 'error', 'delay:50ms+error', 'error', 'delay:50ms+error', 'qos', qps_action => 'delay:50ms+error'],
    ['qps-limit-unit', 'cmd', 'key', 'cmd', 'key', 'qos', qps_unit => 'key'],
    ['cpu-limit', '50%', '90%', '50%', '90%', 'qos', cpu_limit => '90%'],
    ['slo', 'p95:1ms', 'p99:2ms,bulk=p90.5:3ms', 'p95:1000us', 'p99:2000us,bulk=p90.5:3000us', 'qos', slo => 'p99:2000us', slo_bulk => 'p90.5:3000us'],
    ['verbose', '0', '1', '0', '1', 'settings', verbosity => 1],
    ['memory-limit', '100', '80', '100', '80', 'settings', maxbytes => 80 << 20],
    ['slab_automove', '0', '2', '0', '2', 'settings', slab_automove => 2],
    ['slab_automove_ratio', '0.5', '0.25', '0.5', '0.25', 'settings', slab_automove_ratio => '0.25'],
    ['slab_automove_window', '20', '25', '20', '25', 'settings', slab_automove_window => 25],
    ['lru_crawler_sleep', '200', '300', '200', '300', 'settings', lru_crawler_sleep => 300],
    ['lru_crawler_tocrawl', '5', '6', '5', '6', 'settings', lru_crawler_tocrawl => 6],
    ['hot_lru_pct', '10', '11', '10', '11', 'settings', hot_lru_pct => 11],
    ['warm_lru_pct', '12', '13', '12', '13', 'settings', warm_lru_pct => 13],
    ['hot_max_factor', '0.5', '0.75', '0.5', '0.75', 'settings', hot_max_factor => '0.75'],
    ['warm_max_factor', '1.5', '1.75', '1.5', '1.75', 'settings', warm_max_factor => '1.75'],
);

# Likewise, beside the maintainer.
my @lists = (
    ['lru_policy', 'flat', 'segmented', 'flat', 'segmented', 'settings', lru_segmented => 'yes'],
    ['temporary_ttl', '30', 'off', '30', 'off', 'settings', temp_lru => 'no'],
);

# ---- what can change ---------------------------------------------------------------------

each_profile(sub ($profile) {
    my @changes = (@changes, $profile eq '1.4' ? () : @lists);
    write_conf(map { "$_->[0] = $_->[1]" } @changes);
    my ($server, $s) = serve($profile, '--config', $file);
    exchange($s, "qos reload\r\n", "OK\r\n", 'nothing is new');
    for my $row (@changes) {
        my ($name, $old, $new, $told, $tells, $group, %shown) = @$row;
        write_conf(map { "$_->[0] = " . ($_->[0] eq $name ? $new : $_->[1]) } @changes);
        exchange($s, "qos reload\r\n", "CHANGED $name $told -> $tells\r\nOK\r\n");
        has(mem_stats($s, $group), $name, %shown);
        write_conf(map { "$_->[0] = $_->[1]" } @changes);
        exchange($s, "qos reload\r\n", "CHANGED $name $tells -> $told\r\nOK\r\n");
    }
    # several at once, in the order of the help; a switch; a line that is gone
    write_conf('qps-limit-dry-run', 'no_lru_crawler', 'no_slab_automove');
    put($s, "qos reload\r\n");
    my @lines;
    while (($lines[-1] // '') !~ /\A(OK|CLIENT_ERROR)/) {
        push @lines, read_line($s);
    }
    my $crawler = $profile eq '1.4' ? '' : 'on -> off';
    is(scalar(grep { /^CHANGED / } @lines), @changes - 3 + ($crawler ? 2 : 1), 'all are gone but what is the default') || diag(@lines);
    is_deeply([grep { /dry-run|lru_crawler / } @lines],
        [$crawler ? "CHANGED lru_crawler on -> off\r\n" : (), "CHANGED qps-limit-dry-run off -> on\r\n"], 'switches');
    has(mem_stats($s, 'settings'), 'settings', lru_crawler => 'no', slab_automove => 0, maxbytes => 64 << 20);
    has(mem_stats($s, 'qos'), 'qos', qps_limit => 'off', qps_dry_run => 'on', slo => 'off', cpu_limit => 'off');
    # what commands have changed is as the file says again
    exchange($s, "qos qps_limit 777\r\n", "OK\r\n");
    exchange($s, "qos reload\r\n", "CHANGED qps-limit 777 -> off\r\nOK\r\n");
    exchange($s, "qos reload now\r\n", "CLIENT_ERROR usage: qos reload\r\n");
});

# what a server makes of a value is what it is compared with
{
    write_conf('slab_automove_window = 86400');
    my ($server, $s) = serve('1.4', '--config', $file);
    is(mem_stats($s, 'settings')->{slab_automove_window}, 1800, 'a window that is too long');
    exchange($s, "qos reload\r\n", "OK\r\n", '... is no news');
}

# ---- what cannot -------------------------------------------------------------------------

each_profile(sub ($profile) {
    write_conf('qps-limit = 50', 'class-rule = key:a:=bulk', 'class-rule = key:b:=bulk');
    my ($server, $s) = serve($profile, '--config', $file, '-t', '2');
    write_conf('class-rule = key:b:=bulk', 'class-rule = key:a:=bulk', 'threads = 3', 'conn-limit = 500', 'qps-limit = 60');
    my $reply = roundtrip($s, "qos reload\r\n");
    is(join('', sort split /^/, $reply),
        join('', sort "RESTART conn-limit $file:4\r\n", "RESTART class-rule $file:2\r\n", "CHANGED qps-limit 50 -> 60\r\n", "OK\r\n"),
        'each is named; not what the command line decides');
    is(mem_stats($s, 'settings')->{num_threads}, 2, 'threads');
    exchange($s, "qos reload\r\n", "RESTART conn-limit $file:4\r\nRESTART class-rule $file:2\r\nOK\r\n", 'until it is restarted');
    write_conf('qps-limit = 60');
    exchange($s, "qos reload\r\n", "RESTART class-rule (no longer given)\r\nOK\r\n", 'what is gone');
});
# A unit says the same as the number.
{
    write_conf('memory-limit = 1g');
    my ($server, $s) = serve('native', '--config', $file);
    write_conf('memory-limit = 1024');
    exchange($s, "qos reload\r\n", "OK\r\n", 'the same in megabytes');
    write_conf('memory-limit = 64MB');
    exchange($s, "qos reload\r\n", "CHANGED memory-limit 1024 -> 64\r\nOK\r\n", 'another, with a unit');
    exchange($s, "cache_memlimit 80\r\n", "OK\r\n");
    exchange($s, "qos save\r\n", "SAVED memory-limit 64 -> 80\r\nOK\r\n", 'saved');
    is(read_file($file), "\n# saved by qos save\nmemory-limit = 80\n", '... in megabytes');
}
{
    write_conf('memory-limit = 100');
    my ($server, $s) = serve('native', '--config', $file, '-e', "$dir/items");
    write_conf('memory-limit = 90');
    exchange($s, "qos reload\r\n", "RESTART memory-limit $file:1\r\nOK\r\n", 'memory that is a file');
}

# ---- what is wrong -----------------------------------------------------------------------

each_profile(sub ($profile) {
    write_conf('qps-limit = 50');
    my ($server, $s) = serve($profile, '--config', $file);
    my $unchanged = sub ($name) {
        is(mem_stats($s, 'qos')->{qps_limit}, 50, "$name: unchanged");
    };
    for my $case (
        ["qps-limit = 60\nslo = x\nlru_crawler_sleep = no\n", qr{\AWRONG \Q$file\E:2: slo: [^\r\n]+\r\nWRONG \Q$file\E:3: LRU crawler sleep [^\r\n]+\r\n\Q$SORRY\E\z}],
        ["qps-limit = 60\nmax-item-size = 60m\n", qr{\AWRONG \Q$file\E: Cannot set item size limit [^\r\n]+\r\n\Q$SORRY\E\z}],
        ["qps-limit = 60\n\0\n", qr{\AWRONG \Q$file\E:2: the byte 0x00 is no text[^\r\n]+\r\n\Q$SORRY\E\z}],
        [(join '', map { chr(($_ * 7919) % 256) } 1 .. 5000), qr{\AWRONG [^\r\n]+\r\n\Q$SORRY\E\z}],
        ["qps-limit = 60\ninclude s.conf\n", qr{\AWRONG \Q$file\E:2: \Q$file\E includes itself; remove this line\r\n\Q$SORRY\E\z}],
        ["#\n" x 600_000, qr{\AWRONG memcached: cannot read \Q$file\E: it is larger than 1 MiB}],
        ["bad\n" x 5000, qr{\A(?:WRONG \Q$file\E:\d+: unknown option --bad[^\r\n]*\r\n){100}WRONG memcached: more than 100 errors; the rest is not shown\r\n\Q$SORRY\E\z}],
        [join('', ('bad' x 1000 . "\n") x 50), qr{\A(?:WRONG \Q$file\E:\d+: unknown option --(?:bad)+[^\r\n]*\r\n){50}\Q$SORRY\E\z}],
        ["port = " . 'x' x 3000 . "\n", qr{\AWRONG [^\r\n]{494}\r\n\Q$SORRY\E\z}],
        [join('', ("port = " . 'x' x 3000 . "\n") x 90), qr{\A(?:WRONG [^\r\n]{494}\r\n){60}NOTE 30 more lines are in the log\r\n\Q$SORRY\E\z}],
    ) {
        write_file($file, $case->[0]);
        exchange($s, "qos reload\r\n", $case->[1], MCTest::show(substr $case->[0], 0, 40));
        $unchanged->(MCTest::show(substr $case->[0], 0, 40));
    }
    unlink $file or die;
    exchange($s, "qos reload\r\n", "WRONG memcached: cannot read $file: No such file or directory\r\n$SORRY", 'a file that is gone');
    $unchanged->('a file that is gone');
    exchange($s, "qos save\r\n", "WRONG memcached: cannot read $file: No such file or directory\r\n$SORRY", 'it is not made either');
    ok(!-e $file, '... indeed');
    write_conf('qps-limit = 80', 'logfile /x');
    my $note = "NOTE $file:2: warning: logfile has no effect; the log goes to standard error\r\n";
    exchange($s, "qos reload\r\n", "${note}CHANGED qps-limit 50 -> 80\r\nOK\r\n", 'and back');
    exchange($s, "qos qps_limit 90\r\n", "OK\r\n");
    exchange($s, "qos save\r\n", "${note}SAVED qps-limit 80 -> 90\r\nOK\r\n", 'a warning is told once');
});

# as another user, who may not read it
SKIP: {
    skip 'needs root', 1 if $> != 0;
    write_conf('qps-limit = 50');
    chmod 0600, $file;
    chmod 0755, $dir;
    my $home = "$dir/nobody";
    mkdir $home, 0777 or die;
    chmod 0777, $home;
    my $server = serve('native', '--config', $file, '-u', 'nobody', '-s', "$home/socket", {path => "$home/socket",
        env => {MEMCACHED_PORT_FILENAME => "$home/ports"}});
    exchange($server->connect, "qos reload\r\n", "WRONG memcached: cannot read $file: Permission denied; the user of the server (-u) needs the right to read it\r\n$SORRY",
        'unreadable');
    chmod 0644, $file;
    my $s = $server->connect;
    exchange($s, "qos reload\r\n", "OK\r\n", 'readable');
    chmod 0755, $dir;
    exchange($s, "qos qps_limit 60\r\n", "OK\r\n");
    exchange($s, "qos save\r\n", "WRONG cannot write $file: Permission denied; the user of the server (-u) needs the right to write in its folder\r\n$SORRY",
        'unwritable');
    like(read_file($file), qr/\Aqps-limit = 50\n/, 'it is as it was');
    # a folder whose files it may not see is not an empty one
    mkdir "$dir/hidden" or die;
    write_file("$dir/hidden/q.conf", "slo = p95:1ms\n");
    write_conf('qps-limit = 50', 'include hidden/*.conf');
    chmod 0700, "$dir/hidden";
    exchange($s, "qos reload\r\n", "WRONG $file:2: cannot read the folder of $dir/hidden/*.conf; "
            . "the user of the server (-u) needs the right to read it\r\n$SORRY", 'a folder that is unreadable');
    is(mem_stats($s, 'qos')->{qps_limit}, 60, 'nothing has changed');
    chmod 0755, "$dir/hidden";
    exchange($s, "qos reload\r\n", "CHANGED qps-limit 60 -> 50\r\nCHANGED slo off -> p95:1000us\r\nOK\r\n", 'and one that is');
}

# in a folder that is read-only, as all are to a unit with ProtectSystem=strict
SKIP: {
    my @wrap = ('unshare', '-m', 'sh', '-c', 'mount --bind "$0" "$0" && mount -o remount,ro,bind "$0" && exec "$@"', "$dir/ro");
    mkdir "$dir/ro" or die;
    my $in = write_file("$dir/ro/s.conf", "qps-limit = 50\n");
    skip 'no mount namespace here', 1 if $> != 0 || run_program({command => [@wrap, 'true']})->{status} != 0;
    my ($server, $s) = serve('native', '--config', $in, {wrap => \@wrap});
    exchange($s, "qos qps_limit 60\r\n", "OK\r\n");
    exchange($s, "qos save\r\n", "WRONG cannot write $in: Read-only file system; in a unit of systemd ReadWritePaths= names the folders "
            . "to write in\r\n$SORRY", 'read-only');
}

# without a file
{
    my ($server, $s) = serve('native');
    exchange($s, "qos $_\r\n", "CLIENT_ERROR there is no file: start the server with --config=FILE\r\n") for 'reload', 'save';
}

# What depends on an option that only a start changes is as that is now; a file that no server starts
# with changes nothing.
{
    write_conf('disable-evictions', 'memory-limit = 8');
    my ($server, $s) = serve('native', '--config', $file);
    write_conf('memory-limit = 8', 'class-memory = write:10%max');
    is(join('', sort split /^/, roundtrip($s, "qos reload\r\n")),
        "OK\r\nRESTART class-memory $file:2\r\nRESTART disable-evictions (no longer given)\r\n", 'shares without evictions');
    is(mem_stats($s, 'qos')->{class_memory}, 'off', '... are not in force');
}
{
    write_conf('classes = off');
    my ($server, $s) = serve('native', '--config', $file);
    write_conf('classes = on', 'class-memory = small:10%max', 'qps-limit = 6000,bulk=100', 'slo = bulk=p99:20ms', 'qps-limit-unit = key');
    is(join('', sort split /^/, roundtrip($s, "qos reload\r\n")),
        "CHANGED qps-limit-unit cmd -> key\r\nOK\r\nRESTART class-memory $file:2\r\nRESTART classes $file:1\r\n"
        . "RESTART qps-limit $file:3\r\nRESTART slo $file:4\r\n", 'limits of classes without classes');
    has(mem_stats($s, 'qos'), '... are not in force', class_memory => 'off', qps_limit => 'off', slo => 'off');
}

# a warning about options that go together is part of the answer
{
    write_conf('qps-limit-unit = key');
    my ($server, $s) = serve('native', '--config', $file);
    write_conf('qps-limit-unit = key', 'qps-limit-peer = 5');
    exchange($s, "qos reload\r\n", "NOTE memcached: warning: --qps-limit-peer=5 lets 16 requests through at once after a pause; burst=N behind it sets another number\r\n"
            . "CHANGED qps-limit-peer off -> 5\r\nOK\r\n", 'a warning');
}

# ---- a relative path, in the background -------------------------------------------------

{
    write_conf('qps-limit = 50', "include more*.conf");
    my $pid_file = "$dir/pid";
    my $port = free_port();
    my $run = run_program({command => ['sh', '-c', 'cd "$0" && exec "$@"', $dir, server_binary(), '--config', 's.conf', '-d', '-P', $pid_file,
        '-p', $port, '-l', '127.0.0.1', @AS_ROOT]});
    is($run->{status}, 0, 'it starts') || diag($run->{err});
    my $sock = IO::Socket::INET->new(PeerAddr => '127.0.0.1', PeerPort => $port) or die;
    $sock->blocking(0);
    ${*$sock}{mctest_server} = {profile => 'native'};
    write_file("$dir/more.conf", "qps-limit = 70\n");
    exchange($sock, "qos reload\r\n", "CHANGED qps-limit 50 -> 70\r\nOK\r\n", 'its file and those beside it are found');
    write_file("$dir/more.conf", "compat = 1.4\nqps-limit = 70\nlogfile /x\n");
    exchange($sock, "qos reload\r\n", "NOTE $dir/more.conf:3: warning: logfile has no effect; the log goes to standard error\r\nRESTART compat $dir/more.conf:1\r\nOK\r\n", 'nor do the defaults of another profile apply');
    write_file("$dir/more.conf", "compat = 1.6\nclass-memory = small:60%\n");
    exchange($sock, "qos reload\r\n", "WRONG $file: class-memory needs --compat=native\r\n$SORRY", 'nor is a file good that is wrong in it');
    my ($pid) = read_file($pid_file) =~ /(\d+)/;
    kill 'TERM', $pid;
    soon { !kill 0, $pid } 'it ends';
    unlink "$dir/more.conf";
}

# ---- SIGHUP ------------------------------------------------------------------------------

each_profile(sub ($profile) {
    write_conf('qps-limit = 500k');
    my ($server, $s) = serve($profile, '--config', $file, '-t', '2');
    write_conf('qps-limit = 600k', 'threads = 9', 'conn-limit = 300');
    kill 'HUP', $server->pid;
    log_says($server, qr/^memcached: CHANGED qps-limit 500000 -> 600000$/m, 'what has changed');
    log_says($server, qr/^memcached: RESTART conn-limit \Q$file\E:3$/m, 'what has not');
    is(mem_stats($s, 'qos')->{qps_limit}, 600000, 'it has');
    write_conf('bad');
    kill 'HUP', $server->pid;
    log_says($server, qr/^memcached: WRONG \Q$file\E:1: unknown option --bad/m, 'what is wrong');
    is(mem_stats($s, 'qos')->{qps_limit}, 600000, 'and nothing has changed');
});

# ---- while requests run ------------------------------------------------------------------

# Every request is answered, and in its order, while limits that bind none of them come and go.
{
    write_conf('qps-limit = 900k');
    my ($server, $s) = serve('native', '--config', $file, '-t', '2');
    my @other = map { $server->connect } 1 .. 4;
    my $rounds = 40;
    for my $i (1 .. $rounds) {
        write_conf('qps-limit = ' . (800_000 + $i), 'slab_automove = ' . $i % 3);
        kill 'HUP', $server->pid if $i % 2;
        for my $k (0 .. $#other) {
            put($other[$k], join '', map { "set k$k.$_ 0 0 1\r\n1\r\nget k$k.$_\r\n" } 1 .. 20);
        }
        put($_, "qos reload\r\n") for @other[0, 1];
        put($s, "get none\r\n");
        is(read_line($s), "END\r\n", "round $i: others are served");
        for my $k (0 .. $#other) {
            my $want = join '', map { "STORED\r\nVALUE k$k.$_ 0 1\r\n1\r\nEND\r\n" } 1 .. 20;
            is(read_bytes($other[$k], length $want), $want, "round $i: connection $k");
        }
        for my $k (0, 1) {
            my $line = 'CHANGED';
            $line = read_line($other[$k]) while $line =~ /^CHANGED/;
            is($line, "OK\r\n", "round $i: reload on connection $k");
        }
    }
    is(mem_stats($s, 'qos')->{qps_limit}, 800_000 + $rounds, 'the last one is in force');
    # a stop does not wait for a reload, nor lose its reply
    put($other[0], "qos reload\r\n" x 50);
    $server->stop;
}

# ---- save --------------------------------------------------------------------------------

each_profile(sub ($profile) {
    write_conf('# the web tier', 'qps-limit = 50 # old', '', 'conn-limit = 300', '-v', '-v', 'slo = p95:1ms', '-o slab_automove=0,hot_lru_pct=7');
    chmod 0640, $file;
    my ($server, $s) = serve($profile, '--config', $file);
    my $before = read_file($file);
    exchange($s, "qos save\r\n", "OK\r\n", 'nothing to save');
    is(read_file($file), $before, 'the file is as it was');
    exchange($s, "$_\r\n", "OK\r\n") for 'qos qps_limit 50k 600', 'qos qps_limit bulk 2k', 'qos dry_run on', 'verbosity 0', 'slabs automove 1';
    my $saved = "SAVED verbose 2 -> 0\r\nSAVED qps-limit 50 -> 50000,burst=600,bulk=2000\r\nSAVED qps-limit-dry-run off -> on\r\nSAVED slab_automove 0 -> 1\r\nOK\r\n";
    is(join('', sort split /^/, roundtrip($s, "qos save\r\n")), join('', sort split /^/, $saved), 'what is written');
    my @lines = split /\n/, read_file($file);
    is_deeply([@lines[0 .. 6]], ['# the web tier', '', 'conn-limit = 300', 'slo = p95:1ms', '-o slab_automove=0,hot_lru_pct=7', '', '# saved by qos save'],
        'the rest stays, comments too');
    is_deeply([sort @lines[7 .. $#lines]],
        ['qps-limit = 50000,burst=600,bulk=2000', 'qps-limit-dry-run', 'slab_automove = 1', 'verbose = 0'], 'the new lines');
    is((stat $file)[2] & 07777, 0640, 'its mode stays');
    is_deeply([glob "$file.*"], [], 'nothing is left beside it');
    exchange($s, "qos reload\r\n", "OK\r\n", 'what is read is what is in force');
    my ($again, $t) = serve($profile, '--config', $file);
    has(mem_stats($t, 'qos'), 'a new server', qps_limit => 50000, qps_burst => 600, qps_limit_bulk => 2000, qps_dry_run => 'on');
    # off and on again
    exchange($s, "qos dry_run off\r\nqos qps_limit off\r\nqos qps_limit bulk off\r\n", "OK\r\nOK\r\nOK\r\n");
    exchange($s, "qos save\r\n", qr/\ASAVED .*\r\nSAVED .*\r\nOK\r\n\z/, 'off');
    unlike(read_file($file), qr/dry-run/, 'a switch that is off has no line');
    like(read_file($file), qr/^qps-limit = off$/m, 'a limit has one');
    is(scalar(() = read_file($file) =~ /saved by/g), 1, 'one title');
    exchange($s, "qos reload\r\n", "OK\r\n");
});

# -v of the command line is added to the file's level: what is saved is not, and would be too much
{
    write_conf('verbose = 1');
    my ($server, $s) = serve('native', '--config', $file, '-v');
    my $before = read_file($file);
    exchange($s, "verbosity 0\r\n", "OK\r\n");
    exchange($s, "qos save\r\n", "KEPT verbose 2: the command line or an included file says so\r\nOK\r\n", 'a level that is added to is not saved');
    is(read_file($file), $before, '... the file stays');
}

# Lists go with the maintainer, which waits for a restart: what the file says of both stays.
for my $row (
    ['native', ['no_lru_maintainer'], ['lru_policy = segmented'],
        ['no_lru_maintainer (no longer given)', "lru_policy $file:1"], ['lru_policy segmented']],
    ['native', ['no_lru_maintainer'], [], ['no_lru_maintainer (no longer given)'], ['lru_policy s3fifo']],
    ['native', [], ['no_lru_maintainer'], ["no_lru_maintainer $file:1"], ['lru_policy flat']],
    ['1.4', [], ['lru_maintainer', 'temporary_ttl = 30'], ["lru_maintainer $file:1", "temporary_ttl $file:2"],
        ['lru_policy segmented', 'temporary_ttl 30']],
) {
    my ($profile, $before, $after, $restart, $kept) = @$row;
    write_conf('qps-limit = 50', @$before);
    my ($server, $s) = serve($profile, '--config', $file);
    write_conf(@$after, 'qps-limit = 50');
    exchange($s, "qos reload\r\n", join('', map { "RESTART $_\r\n" } @$restart) . "OK\r\n");
    exchange($s, "qos qps_limit 60\r\n", "OK\r\n");
    is(join('', sort split /^/, roundtrip($s, "qos save\r\n")),
        join('', map { "KEPT $_: lru_maintainer changes at a restart\r\n" } @$kept) . "OK\r\nSAVED qps-limit 50 -> 60\r\n",
        "[$profile] @$before, then @$after: kept");
    is(read_file($file), join('', map { "$_\n" } @$after) . "\n# saved by qos save\nqps-limit = 60\n", '... and only the rest is saved');
}

# what is saved is what is read, at both ends of what commands take
{
    write_conf('conn-limit = 300', 'lru_policy = segmented');
    my ($server, $s) = serve('native', '--config', $file);
    my @commands = map { [split /; /] } (
        'lru tune 79 1 0.000000001 1000000000', 'lru tune 1 79 1234567.25 0.0625', 'lru_crawler sleep 1000000; lru_crawler tocrawl 4294967295',
        'slabs automove 2; slabs automove window 1800; slabs automove ratio 0.00005', 'slabs automove ratio 1', 'verbosity 1', 'cache_memlimit 8',
        'qos qps_limit 1000m 1m; qos qps_limit bulk 1 1', 'qos qps_limit off; qos peer 10m 1m', 'qos action delay:1ns+error; qos unit key',
        'lru mode flat; lru temp_ttl 5', 'lru mode s3fifo; lru temp_ttl 2147483647', 'lru temp_ttl -1', 'qos action delay:3600s+error', 'qos action miss', 'qos cpu_limit 1000000%', 'qos slo p50:1ns; qos slo bulk p99.9:3600s', 'qos slo p50.1:1001us');
    for my $set (@commands) {
        exchange($s, "$_\r\n", "OK\r\n") for @$set;
        my $reply = roundtrip($s, "qos save\r\n");
        like($reply, qr/\A(?:SAVED [^\r]+\r\n)+OK\r\n\z/, "saved: @$set");
        exchange($s, "qos reload\r\n", "OK\r\n", '... and read');
        my ($again, $t) = serve('native', '--config', $file);
        my ($here, $there) = map { mem_stats($_, 'settings') } $s, $t;
        delete @$_{'oldest'} for $here, $there; # the age of an item
        is_deeply($there, $here, '... by a new server');
        exchange($t, "qos save\r\n", "OK\r\n", '... which has nothing to add');
    }
}

# what the file cannot say, as something else says it
{
    write_file("$dir/inc.conf", "qps-limit = 50,bulk=60\nno_lru_crawler\n");
    write_conf('include inc.conf');
    my ($server, $s) = serve('native', '--config', $file, '--slo=p95:1ms');
    exchange($s, "$_\r\n", "OK\r\n") for 'qos slo p95:2ms', 'qos qps_limit bulk off', 'lru_crawler enable', 'lru_crawler sleep 55';
    is(join('', sort split /^/, roundtrip($s, "qos save\r\n")),
        "KEPT qps-limit 50,bulk=60: the command line or an included file says so\r\n"
        . "KEPT slo p95:1000us: the command line or an included file says so\r\nOK\r\n"
        . "SAVED lru_crawler off -> on\r\nSAVED lru_crawler_sleep 100 -> 55\r\n", 'it is said');
}

# what commands take and options do not is in the way of nothing else
each_profile(sub ($profile) {
    write_conf('slab_automove_ratio = 0.5', 'conn-limit = 300');
    my ($server, $s) = serve($profile, '--config', $file);
    exchange($s, "$_\r\n", "OK\r\n") for 'lru tune 0 80 0.2 2', 'slabs automove ratio 3', 'qos qps_limit 70k';
    is(join('', sort split /^/, roundtrip($s, "qos save\r\n")),
        "KEPT hot_lru_pct 20: the option does not take 0\r\nKEPT slab_automove_ratio 0.5: the option does not take 3\r\n"
        . "KEPT warm_lru_pct 40: the option does not take 80\r\nOK\r\nSAVED qps-limit off -> 70000\r\n", 'it is said');
    is(read_file($file), "slab_automove_ratio = 0.5\nconn-limit = 300\n\n# saved by qos save\nqps-limit = 70000\n", 'the rest is saved');
});

# nor is what would make the file one that no server starts with
{
    write_conf('max-item-size = 64m', 'memory-limit = 200');
    my ($server, $s) = serve('native', '--config', $file);
    exchange($s, "$_\r\n", "OK\r\n") for 'cache_memlimit 80', 'qos qps_limit 70k', 'qos slo p95:2ms';
    is(join('', sort split /^/, roundtrip($s, "qos save\r\n")),
        "KEPT memory-limit 200: a start with 80 is refused: Cannot set item size limit higher than 1/2 of memory max. Give -m 128 or more, or a smaller -I\r\n"
        . "OK\r\nSAVED qps-limit off -> 70000\r\nSAVED slo off -> p95:2000us\r\n", 'a size that items do not go with');
    is(read_file($file), "max-item-size = 64m\nmemory-limit = 200\n\n# saved by qos save\nqps-limit = 70000\nslo = p95:2000us\n", 'the rest is saved');
}

# ... for whatever reasons
{
    write_conf('classes = on');
    my ($server, $s) = serve('native', '--config', $file);
    exchange($s, "$_\r\n", "OK\r\n") for 'qos class_memory small:10%', 'qos qps_limit bulk 2k', 'qos slo bulk p95:2ms', 'verbosity 1';
    write_conf('classes = off');
    is(join('', sort split /^/, roundtrip($s, "qos save\r\n")),
        "KEPT class-memory off: a start with small:10% is refused: class-memory needs --classes=on\r\n"
        . "KEPT qps-limit off: a start with off,bulk=2000 is refused: a class's --qps-limit needs --classes=on\r\n"
        . "KEPT slo off: a start with off,bulk=p95:2000us is refused: a class's --slo needs --classes=on\r\nOK\r\nSAVED verbose 0 -> 1\r\n",
        'several that do not go with the file');
    is(read_file($file), "classes = off\n\n# saved by qos save\nverbose = 1\n", 'the rest is saved');
}

# the lines of what is kept are as they were
{
    my @lines = ('# of the web tier', 'qps-limit = 80k', 'memory-limit = 128 # of the box', 'slo = p95:1ms');
    write_conf(@lines);
    my ($server, $s) = serve('native', '--config', $file, '--qps-limit=50k', '-m', '64');
    exchange($s, "$_\r\n", "OK\r\n") for 'qos qps_limit 5k', 'cache_memlimit 70';
    my $kept = "KEPT memory-limit 64: the command line or an included file says so\r\n"
        . "KEPT qps-limit 50000: the command line or an included file says so\r\n";
    exchange($s, "qos save\r\n", "${kept}OK\r\n", 'what the command line says');
    is(read_file($file), join('', map { "$_\n" } @lines), 'nothing is written');
    exchange($s, "qos slo p95:2ms\r\n", "OK\r\n");
    is(join('', sort split /^/, roundtrip($s, "qos save\r\n")), "${kept}OK\r\nSAVED slo p95:1000us -> p95:2000us\r\n", 'beside what can be saved');
    is(read_file($file), join('', map { "$_\n" } @lines[0 .. 2], '', '# saved by qos save', 'slo = p95:2000us'), '... their lines stay');
}

# a file that is a mount of its own, as one given to a container, cannot be replaced
SKIP: {
    my @wrap = ('unshare', '-m', 'sh', '-c', 'mount --bind "$0" "$0" && exec "$@"', $file);
    write_conf('qps-limit = 50');
    skip 'no mount namespace here', 1 if $> != 0 || run_program({command => [@wrap, 'true']})->{status} != 0;
    my ($server, $s) = serve('native', '--config', $file, {wrap => \@wrap});
    exchange($s, "qos qps_limit 60\r\n", "OK\r\n");
    exchange($s, "qos save\r\n", "WRONG cannot replace $file: Device or resource busy; where the file is a mount of its own, mount its folder instead\r\n$SORRY",
        'a mount');
    is_deeply([glob "$file.*"], [], 'nothing is left beside it');
}

# a file that is wrong, or a link, is not written to
{
    write_conf('qps-limit = 50');
    my ($server, $s) = serve('native', '--config', $file);
    exchange($s, "qos qps_limit 60\r\n", "OK\r\n");
    write_conf('qps-limit = x');
    exchange($s, "qos save\r\n", qr/\AWRONG \S+:1: qps-limit: [^\r\n]+\r\n\Q$SORRY\E\z/, 'a mistake in the file');
    is(read_file($file), "qps-limit = x\n", 'stays');
    write_file("$dir/real.conf", "qps-limit = 70\n");
    unlink $file;
    symlink "$dir/real.conf", $file or die;
    exchange($s, "qos save\r\n", "WRONG $file is a symbolic link; name the file itself in --config\r\n$SORRY", 'a link');
    is(read_file("$dir/real.conf"), "qps-limit = 70\n", 'what it points to stays');
    exchange($s, "qos reload\r\n", "CHANGED qps-limit 60 -> 70\r\nOK\r\n", 'it is read');
    unlink $file;
}

# ---- who may -----------------------------------------------------------------------------

SKIP: {
    skip 'datagrams have no TLS', 1 if $ENV{MCTEST_TLS};
    write_conf('qps-limit = 50');
    my $server = serve('native', '--config', $file, '-U', '-1', '--control=any');
    my $u = $server->udp;
    for my $word ('reload', 'save') {
        udp_request($u, "qos $word\r\n");
        is((udp_reply($u))[0], "CLIENT_ERROR not over UDP: use TCP or a UNIX socket\r\n", "UDP: $word");
    }
    my $marked = serve('native', '--config', $file, '--control=marked');
    exchange($marked->connect, "qos $_\r\n", qr/\ACLIENT_ERROR not from this connection: /, "no control: $_") for 'reload', 'save';
}

done_testing();
