#!/usr/bin/env perl
# --config and --check-config: what a file may look like, its order with the command line, and what
# is said of each mistake, with file and line.
use MCTest ':ours';

my $dir = scratch_dir();

# Runs --check-config on a file of these bytes.
sub check($bytes, @args) {
    my $file = write_file("$dir/c.conf", $bytes);
    return run_program('--config', $file, '--check-config', @args);
}

# The options that count, as -v lists them, without where they come from.
sub listed($bytes, @args) {
    my $run = check($bytes, '-v', @args);
    is($run->{status}, 0, 'status') || diag($run->{err});
    my ($title, @lines) = split /\n/, $run->{out};
    is($title, 'configuration is good', 'is good');
    return [map { s/  # .*//r } grep { !/^verbose/ } @lines];
}

# ---- forms of a line ---------------------------------------------------------------------

for my $row (
    ['qps-limit = 50k', 'qps-limit = 50k'],
    ['qps-limit=50k', 'qps-limit = 50k'],
    ['qps-limit 50k', 'qps-limit = 50k'],
    ["  qps_limit\t=\t50k \t", 'qps-limit = 50k'],
    ['--qps-limit=50k', 'qps-limit = 50k'],
    ['--qps-limit 50k', 'qps-limit = 50k'],
    ['qps-limit = 50k # of the web tier', 'qps-limit = 50k'],
    ['qps-limit = "50k" # of the web tier', 'qps-limit = 50k'],
    ['pidfile = /a b#c', 'pidfile = "/a b#c"'],
    ['pidfile = "/a # b"', 'pidfile = "/a # b"'],
    ['pidfile = /a=b', 'pidfile = /a=b'],
    ['disable-cas', 'disable-cas'],
    ['-m 100', 'memory-limit = 100'],
    ['-m100', 'memory-limit = 100'],
    ['memory-limit = 1g', 'memory-limit = 1g'],
    ['-m 64', undef], # the default
    ['-l 127.0.0.1', 'listen = 127.0.0.1'],
    ['-D "#"', '-D "#"'],
    ['memory-file = ""', 'memory-file = ""'],
    ['-d', 'daemon'],
    ['slab_automove = 2', 'slab_automove = 2'],
    ['slab_automove', 'slab_automove'],
    ['no_lru_crawler', 'no_lru_crawler'],
    ['-o no_lru_crawler', 'no_lru_crawler'],
    ['extended = no_lru_crawler', 'no_lru_crawler'],
    ['', undef],
    [" \t ", undef],
    ['# nothing', undef],
    ["\t#nothing", undef],
    ['logfile /var/log/memcached.log', undef],
) {
    my ($line, $want) = @$row;
    for my $end ('', "\n", "\r\n") {
        is_deeply(listed($line . $end), defined $want ? [$want] : [], "'$line' before '" . MCTest::show($end) . "'");
    }
}
is_deeply(listed("-o no_lru_crawler,slab_automove=2\n-vv\n"), ['no_lru_crawler', 'slab_automove = 2'], 'words of -o');
is_deeply(listed("\xef\xbb\xbfthreads = 2\r\n\r\nbacklog = 5\r\n" =~ s/backlog/listen-backlog/r),
    ['threads = 2', 'listen-backlog = 5'], 'a mark of the byte order, and CRLF');
like(check("logfile /x\n")->{err}, qr{\A\Q$dir\E/c\.conf:1: warning: logfile has no effect; the log goes to standard error\n\z},
    'logfile is said to do nothing');

# Debian's file, as it comes but for its user, memcache, which root does not find everywhere
is_deeply(listed(<<'END'), ['daemon', 'port = 11211', 'user = nobody', 'listen = 127.0.0.1', 'pidfile = /var/run/memcached/memcached.pid'], "Debian's");
# memcached default config file
# Run memcached as a daemon.
-d

logfile /var/log/memcached.log
# -v
-m 64
-p 11211
-u nobody
-l 127.0.0.1
# -c 1024
-P /var/run/memcached/memcached.pid
END

# ---- order -------------------------------------------------------------------------------

{
    my $file = "threads = 2\nthreads = 3\nlisten = 127.0.0.1\nlisten = 127.0.0.2\nport = 1\n";
    is_deeply(listed($file), ['threads = 3', 'listen = 127.0.0.1', 'listen = 127.0.0.2', 'port = 1'],
        'the last counts, lists add up');
    is_deeply(listed($file, '-t', '5', '-l', '127.0.0.3'),
        ['listen = 127.0.0.1', 'listen = 127.0.0.2', 'port = 1', 'threads = 5', 'listen = 127.0.0.3'],
        'the command line counts');
    my $path = write_file("$dir/o.conf", $file);
    for my $args (['-t', '5', '--config', $path], ["--config=$path", '-t', '5']) {
        like(run_program(@$args, '--check-config', '-v')->{out}, qr/^threads = 5  # command line$/m,
            "whatever comes first: @$args[0]");
    }
    like(check("qps-limit = 5\n", '-v')->{out}, qr{^qps-limit = 5  # \Q$dir\E/c\.conf:1$}m, 'file and line');
}

# the profile may be the file's
for my $row (['', 'compat = 1.4', '1.4.39'], ['', 'compat = " 1.4"', '1.4.39'], ['--compat= 1.4', '', '1.4.39'], ['', 'compat 1.6', '1.6.45'], ['--compat=1.6', 'compat = 1.4', '1.6.45'],
    ['--compat=1.4', 'compat = 1.6', '1.4.39']) {
    my ($arg, $line, $version) = @$row;
    my $file = write_file("$dir/p.conf", "hot_lru_pct = 30\n$line\n");
    my $run = run_program('-V', '--config', $file, $arg || ());
    like($run->{out}, qr/\Amemcached \Q$version\E\n/, "'$line' and '$arg'");
    my $window = $version eq '1.4.39' ? 30 : 10;
    my $server = start_server(args => ['--config', $file, $arg || ()], is_scoped => 1, debug => 0,
        profile => $version eq '1.4.39' ? '1.4' : '1.6') if $arg;
    is(mem_stats($server->connect, 'settings')->{slab_automove_window}, $window, '... its defaults') if $arg;
}

# ---- include -----------------------------------------------------------------------------

{
    mkdir "$dir/sub" or die;
    mkdir "$dir/empty" or die;
    write_file("$dir/sub/b.conf", "threads = 3\ninclude deeper.txt\n");
    write_file("$dir/sub/a.conf", "threads = 2\nmax-reqs-per-event = 7\n");
    write_file("$dir/sub/deeper.txt", "listen-backlog = 9");
    my @all = ('max-reqs-per-event = 7', 'threads = 3', 'listen-backlog = 9');
    is_deeply(listed("include sub/*.conf\n"), \@all, 'a pattern, in the order of the names');
    is_deeply(listed("include = $dir/sub/[ab].conf\n"), \@all, 'an absolute one');
    is_deeply(listed("include sub/b.conf\nthreads = 9"), ['listen-backlog = 9', 'threads = 9'], 'a name');
    is_deeply(listed("include empty/*.conf\nthreads = 9"), ['threads = 9'], 'a pattern that matches nothing');
    # the folder of the file is no part of the pattern, whatever its name is
    my $odd = "$dir/a[1]*\\x?";
    mkdir $odd or die;
    mkdir "$odd/sub" or die;
    write_file("$odd/sub/b.conf", "threads = 3\n");
    for my $pattern ('sub/b.conf', 'sub/*.conf') {
        my $run = run_program('--config', write_file("$odd/a.conf", "include $pattern\n"), '--check-config', '-v');
        like($run->{out}, qr{^threads = 3  # \Q$odd\E/sub/b\.conf:1$}m, "$pattern beside a file in a folder with an odd name");
    }
    my $at = "$dir/c.conf";
    is(check("include nothing.conf\n")->{err}, "$at:1: cannot read $dir/nothing.conf: No such file or directory\n", 'no such file');
    is(check("\ninclude c.conf\n")->{err}, "$at:2: $at includes itself; remove this line\n", 'itself');
    write_file("$dir/d.conf", "include c.conf\n");
    is(check("include d.conf\n")->{err}, "$dir/d.conf:1: $at includes itself; remove this line\n", 'a circle of two');
    symlink 'c.conf', "$dir/e.conf" or die;
    is(check("include e.conf\n")->{err}, "$at:1: $dir/e.conf includes itself; remove this line\n", 'by another name');
    is(check("include sub\n")->{err}, "$at:1: cannot read $dir/sub: it is a directory; name a file in it, or a pattern such as NAME/a*.conf\n",
        'a directory');
    is(check("threads = 0\ninclude f.conf\n" . (write_file("$dir/f.conf", "\nthreads = x\n") && ''))->{err}
        =~ s/ \(.*//gr =~ s/: .*//gr, "$at:1\n$dir/f.conf:2\n", 'mistakes of both files');
    mkdir "$dir/deep" or die;
    write_file("$dir/deep/$_.conf", "include " . ($_ + 1) . ".conf\n") for 0 .. 20;
    like(check("include deep/0.conf\n")->{err},
        qr{\A\Q$dir\E/deep/15\.conf:1: \Q$dir\E/deep/16\.conf is not read: more than 16 files include each other\n\z}, 'too deep');
    write_file("$dir/deep/many.conf", "include one.txt\n" x 300);
    write_file("$dir/deep/one.txt", "\n");
    like(check("include deep/many.conf\n")->{err}, qr{\A\S+:255: \S+ is not read: more than 256 files\n}, 'too many');
}

# Of a file in /proc nothing tells how long it is.
{
    local $0 = 'threads = 3';
    like(run_program('--config', "/proc/$$/comm", '--check-config', '-v')->{out}, qr{^threads = 3  # /proc/$$/comm:1$}m,
        'a file without a length');
}

# ---- files that are none -----------------------------------------------------------------

for my $row (
    ['nothing', 'No such file or directory'],
    ['.', 'it is a directory; name a file in it, or a pattern such as NAME/a*.conf'],
    ['/dev/zero', 'it is not a regular file; name one'],
) {
    my ($path, $why) = @$row;
    my $full = $path =~ m{^/} ? $path : "$dir/$path";
    has(run_program('--config', $full), "--config $path", status => 78, err => "memcached: cannot read $full: $why\n", out => '');
}
has(run_program('--config='), 'no name', status => 64, err => qr/\Amemcached: there is no name of a file \(--config ""\)\n\z/);
has(run_program('--config'), 'no value', status => 1, err => "memcached: option --config needs a value: FILE\n");
{
    my $file = write_file("$dir/x.conf", "threads = 2\n");
    has(run_program('--config', $file, '--config', $file), 'two', status => 64,
        err => qr/\Amemcached: one file is given to --config; it may include others /);
    has(check('x' x 5000), 'a long line', status => 78, err => "$dir/c.conf:1: the line is longer than 4096 bytes\n");
    has(check("#\n" x 600_000), 'a large file', status => 78,
        err => "memcached: cannot read $dir/c.conf: it is larger than 1 MiB, which no file of options is\n");
    has(check("threads=2\n" x 10_002), 'many lines', status => 78, err => qr{\A\S+:10001: there are more than 10000 lines with options\n});
    has(check("a\n" x 1000), 'many mistakes', status => 78, err_lines => 101, err => qr/^memcached: more than 100 errors; the rest is not shown\n\z/m);
    has(check("port = \"\n" x 150 . "a\n" x 9), 'many mistakes, of two kinds', status => 78, err_lines => 101);
    my $garbage = join '', map { chr(($_ * 7919) % 256) } 1 .. 5000;
    has(check($garbage), 'binary garbage', status => 78, err_lines => 1, err => qr{\A\S+c\.conf:1: the byte 0x[01][0-9a-f] is no text});
    has(check("threads=2\nthr\0eads=2\nbad\n"), 'a NUL', status => 78, err => qr{\A\S+:2: the byte 0x00 is no text; a line is NAME = VALUE in plain text\n.*\z});
    if ($> == 0) {
        chmod 0, $file or die;
        my $run = run_program({command => ['setpriv', '--reuid=65534', '--clear-groups', server_binary(), '--config', $file]});
        SKIP: {
            skip 'no setpriv here', 1 if $run->{status} == 127;
            chmod 0755, $dir;
            is($run->{err}, "memcached: cannot read $file: Permission denied; the user of the server (-u) needs the right to read it\n",
                'may not be read');
        }
    }
}

# ---- mistakes ----------------------------------------------------------------------------

# Each is one line, which begins with file and line.
my @mistakes = (
    ['qps-limt = 5', 'unknown option --qps-limt; did you mean --qps-limit? See --help'],
    ['qps-limit', '--qps-limit needs a value: N[,CLASS=N...]'],
    ['qps-limit =', 'there is no value behind =; write "" for an empty one'],
    ['qps-limit = ""', 'qps-limit: a limit is a number from 1 to 1000m, or off (--qps-limit "")'],
    ['qps-limit = 50q', 'qps-limit: a limit is a number from 1 to 1000m, or off (--qps-limit "50q")'],
    ['qps-limit = 0', 'qps-limit: a limit is a number from 1 to 1000m, or off (--qps-limit "0")'],
    ['qps-limit = large=5', 'qps-limit: a limit is N, total=N or CLASS=N, and burst=B behind it (--qps-limit "large=5")'],
    ['qps-limit-peer = 11m', 'qps-limit-peer: a limit is a number from 1 to 10m, or off (--qps-limit-peer "11m")'],
    ['qps-limit-action = drop', qr/^qps-limit-action: the action is delay, error, miss, or delay:TIME\+error/],
    ['qps-limit-unit = byte', 'qps-limit-unit: the unit is cmd or key (--qps-limit-unit "byte")'],
    ['cpu-limit = much', qr/^cpu-limit: a share of the CPU is a percentage such as 40% \(of one CPU\), or off/],
    ['slo = 5ms', qr/^slo: /],
    ['class-rule = peer', qr/./],
    ['class-shares = write', qr/./],
    ['class-max-wait = 5', 'class-max-wait must be a time like 5ms, from 100us to 10s (--class-max-wait "5")'],
    ['classes = maybe', 'classes must be on or off (--classes "maybe")'],
    ['verbose = loud', 'verbose must be a number (--verbose "loud")'],
    ['bulk-keys = 0', 'bulk-keys must be a number from 1 (--bulk-keys "0")'],
    ['bulk-bytes = 2g', 'bulk-bytes must be a size from 1 to 1g (--bulk-bytes "2g")'],
    ['control = all', '--control must be local, marked or any (--control "all")'],
    ['pin = everywhere', qr/^the pin policy is one of /],
    ['steer = left', 'steering is one of rr, cpu, reuseport, napi, p2c (--steer "left")'],
    ['threads = none', 'Number of threads must be greater than 0 and at most 1024, or auto (--threads "none")'],
    ['memory-limit = lots', 'memory must be 1 to 1000000000 megabytes, such as 64, 64m or 1g (--memory-limit "lots")'],
    ['memory-limit = 64k', 'memory must be 1 to 1000000000 megabytes, such as 64, 64m or 1g (--memory-limit "64k")'],
    ['m=64', 'option --m is ambiguous: --memory-limit, --max-reqs-per-event, --max-item-size or --memory-file; the letter is written -m 64'],
    ['k', 'unknown option --k; the letter is written -k'],
    ['memory-limit = 0', 'memory must be 1 to 1000000000 megabytes, such as 64, 64m or 1g (--memory-limit "0")'],
    ['max-item-size = big', 'not a number (--max-item-size "big")'],
    ['slab-growth-factor = 1', 'Factor must be greater than 1 and at most 1000000 (--slab-growth-factor "1")'],
    ['port = 99999', 'ERROR: Invalid port number; it is 0 to 65535, or -1 (--port "99999")'],
    ['conn-limit = 0', 'Maximum connections must be greater than 0 and at most 10000000 (--conn-limit "0")'],
    ['unix-mask = 999', 'access mode must be octal, 0 to 777 (--unix-mask "999")'],
    ['protocol = http', qr/^Invalid value for binding protocol: http -- should be one of auto, binary, or ascii/],
    ['listen = ""', 'no address to listen on (--listen "")'],
    ['listen = 127.0.0.1:99999', 'Invalid port number: "99999" (--listen "127.0.0.1:99999")'],
    ['-l 127.0.0.1,[::1', 'Invalid IPV6 address: "[::1" (--listen "127.0.0.1,[::1")'],
    ['-l 127.0.0.1;class=red', 'Invalid class of a listener: "red" (small, write, bulk, background) (--listen "127.0.0.1;class=red")'],
    ['unix-socket = /x;class=red', qr/class/],
    ['udp-allow = everywhere', qr/^udp-allow must be a list of at most 32 networks like /],
    ['udp-guard = yes', 'udp-guard must be on or off (--udp-guard "yes")'],
    ['compat = 2.0', '--compat must be native, 1.6 or 1.4 (--compat "2.0")'],
    ['hot_lru_pct = 90', 'hot_lru_pct must be > 1 and < 80 (-o hot_lru_pct "90")'],
    ['slab_automove = 3', 'slab_automove must be between 0 and 2 (-o slab_automove "3")'],
    ['slab_automov = 1', qr/^unknown option --slab_automov; did you mean -o slab_automove/],
    ['lru_crawler = on', '-o lru_crawler takes no value: write its name alone'],
    ['disable-cas = yes', '--disable-cas takes no value: write its name alone'],
    ['hashpower = 99', 'Initial hashtable multiplier of 99 is too high (-o hashpower "99")'],
    ['extended = colour=red', 'unknown word of -o: colour=red'],
    ['-o slab_automov', qr/^unknown word of -o: slab_automov; did you mean -o slab_automove, /],
    ['ext_path = /x', 'This server is not built with external storage. (-o ext_path)'],
    ['-q', 'unknown option -q. See --help'],
    ['-m', 'option -m needs a value: N'],
    ['-m 64 -p 11211', 'memory must be 1 to 1000000000 megabytes, such as 64, 64m or 1g (--memory-limit "64 -p 11211"), and a line is one option'],
    ['-k yes', '-k takes no value, and a line is one option: yes'],
    ['-d -v', '-d takes no value, and a line is one option: -v'],
    ['-vv --port=1', '-vv takes no value, and a line is one option: --port=1'],
    ['help', '--help belongs on the command line, not in a file'],
    ['-V', '--version belongs on the command line, not in a file'],
    ['config = other.conf', '--config belongs on the command line, not in a file'],
    ['pin-dry-run', '--pin-dry-run belongs on the command line, not in a file'],
    ['doctor', '--doctor belongs on the command line, not in a file'],
    ['doctor = all', '--doctor belongs on the command line, not in a file'],
    ['include', 'include needs a file: include FILE, or a pattern'],
    ['= 5', 'there is no name: write NAME = VALUE'],
    ['-', 'not an option: -'],
    ['pidfile = "/a', 'a quote is not closed: write NAME = "VALUE"'],
    ['pidfile = "/a" b', 'there is text behind the quoted value: write NAME = "VALUE"'],
    ['PORT="11211"', qr/^unknown option --PORT/],
);
cmp_ok(scalar @mistakes, '>=', 50, 'fifty mistakes');
for my $profile (profiles()) {
    for my $row (@mistakes) {
        my ($line, $want) = @$row;
        my $run = check("# one\n\n$line\n", "--compat=$profile");
        my $name = "[$profile] '$line'";
        has($run, $name, status => 78, out => '', err_lines => 1);
        my ($said) = $run->{err} =~ m{\A\Q$dir\E/c\.conf:3: (.*)\n\z};
        ref $want ? like($said // '', $want, "$name: message") : is($said, $want, "$name: message");
    }
}
{
    # all of them, not just the first; and the same at a start
    my $run = check(join '', map { "$_->[0]\n" } grep { $_->[0] !~ /include/ } @mistakes);
    is($run->{err} =~ tr/\n//, @mistakes - 1, 'each has its line');
    my $start = run_program('--config', "$dir/c.conf", '-p', '-1', @AS_ROOT);
    has($start, 'at a start', status => 78, err => $run->{err}, out => '');
    # options that do not go together
    has(check("max-item-size = 60m\n"), 'item and memory', status => 78,
        err => qr{\A\Q$dir\E/c\.conf: Cannot set item size limit higher than 1/2 of memory max\. Give -m 120 or more, or a smaller -I\n\z});
    # which addresses there may be depends on TLS, wherever it is asked for
    has(check("compat = 1.6\nlisten = btls:127.0.0.1\n"), 'an address for TLS', status => 78,
        err => "$dir/c.conf: 'btls' option is valid only when SSL is enabled\n");
    # of the command line as before
    has(check("threads = 2\n", '-m', 'x'), 'the command line', status => 1, err => qr/\Amemcached: memory must be /);
    # what it names is read
    has(check("auth-file = $dir/none\n"), 'tokens', status => 1, out => '', err => qr{\Amemcached: [^\n]*\Q$dir\E/none[^\n]*\n\z});
    has(check("auth-file = " . write_file("$dir/tokens", "ann:secret\n")), 'tokens', status => 0, out => "configuration is good\n");
    has(run_program('--check-config', '-e', "$dir/memory", '-m', '2'), 'what the store refuses', status => 1,
        err => qr/needs -m \d+ or more/, err_lines => 1);
    my $user = check("user = no-such-user-here\n");
    has($user, 'a user that root does not find', $> == 0 ? (status => 67, out => '', err_lines => 1, err => qr/no-such-user-here/)
        : (status => 0, out => "configuration is good\n"));
    has(check(qq(pidfile = ""\n)), 'a pid file without a name', status => 71, out => '', err => "memcached: there is no name of a pid file (-P)\n");
    has(check("user = root\n"), 'one that there is', status => 0, out => "configuration is good\n");
    has(run_program('--check-config', '-m', '100'), 'without a file', status => 0, out => "configuration is good\n", err => '');
}

# ---- a server ----------------------------------------------------------------------------

each_profile(sub ($profile) {
    write_file("$dir/s.conf", "# limits\nqps-limit = 12345\n-c 200\nlru_crawler_sleep = 77\n-o no_slab_automove\n");
    my ($server, $s) = serve($profile, '--config', "$dir/s.conf", '-c', '300');
    is(mem_stats($s, 'qos')->{qps_limit}, 12345, 'the file');
    my $settings = mem_stats($s, 'settings');
    has($settings, 'settings', lru_crawler_sleep => 77, slab_automove => 0, maxconns => 300);
});

# -d in a file is no reason for a service manager to lose the process
{
    my ($server, $s) = serve('native', '--config', write_file("$dir/n.conf", "-d\n"), {env => {NOTIFY_SOCKET => "$dir/none"}});
    exchange($s, "get k\r\n", "END\r\n", 'serves in the foreground');
    log_says($server, qr/^memcached: warning: -d has no effect under a service manager$/m, 'and says so');
}

done_testing();
