#!/usr/bin/env perl
# Every option and word of 1.4.39 and 1.6.45 is taken with its effect, however it is written,
# or ends the start with one line that says what is not there.
use MCTest ':ours';


# Settings of a server started with these arguments; the server's stderr as well.
sub settings_of($profile, @args) {
    my $server = eval { start_server(profile => $profile, args => \@args, debug => 0) };
    if (!$server) {
        fail("starts with @args");
        diag($@);
        return ({}, '');
    }
    my $settings = mem_stats($server->connect, 'settings');
    my $err = $server->err;
    $server->stop('TERM', "@args: exit 0");
    return ($settings, $err);
}

sub shows($profile, $want, @args) {
    my ($got) = settings_of($profile, @args);
    is($got->{$_}, $want->{$_}, "@args: $_") for sort keys %$want;
}

sub refused($profile, $status, $pattern, @args) {
    my $run = run_program("--compat=$profile", '-l', '127.0.0.1', '-p', '-1', @AS_ROOT, @args);
    my $name = "@args";
    is($run->{timed_out} ? 'started' : $run->{status}, $status, "$name: exit status");
    like($run->{err} . $run->{out}, $pattern, "$name: message");
    is(scalar(() = ($run->{err} . $run->{out}) =~ /\n/g), 1, "$name: one line")
        or diag($run->{err} . $run->{out});
}

my %flat = (lru_maintainer_thread => 'no', lru_segmented => 'no', lru_crawler => 'no',
    slab_reassign => 'no', slab_automove => 0, hash_algorithm => 'jenkins',
    slab_chunk_max => 1048576, maxconns_fast => 'no', slab_automove_ratio => '0.80',
    lru_crawler_sleep => 100, lru_crawler_tocrawl => 0, tail_repair_time => 0,
    hot_lru_pct => 20, warm_lru_pct => 40, hot_max_factor => '0.20',
    warm_max_factor => '2.00', temp_lru => 'no', temporary_ttl => 61, idle_timeout => 0,
    watcher_logbuf_size => 262144, worker_logbuf_size => 65536, track_sizes => 'no');
my %segmented = (lru_maintainer_thread => 'yes', lru_segmented => 'yes', lru_crawler => 'yes',
    slab_reassign => 'yes', slab_automove => 1, hash_algorithm => 'murmur3',
    slab_chunk_max => 524288, maxconns_fast => 'yes', inline_ascii_response => 'no');

# What there is without options, and what modern and no_modern change.
shows('1.4', {%flat, inline_ascii_response => 'yes', slab_automove_window => 30,
    detail_enabled => 'no', stat_key_prefix => ':', auth_enabled_sasl => 'no'});
shows('1.4', \%segmented, '-o', 'modern');
shows('1.4', {%segmented, lru_crawler => 'no', slab_automove => 0, hash_algorithm => 'xxh3',
    slab_chunk_max => 262144}, '-o',
    'slab_chunk_max=262144,modern,no_lru_crawler', '-o', 'slab_automove=0,hash_algorithm=xxh3');
shows('1.6', {%segmented, slab_automove_window => 10, auth_enabled_ascii => 'no', shutdown_command => 'no',
    read_buf_mem_limit => 0, memory_file => '(null)', num_napi_ids => 0, client_flags_size => 4});
shows('1.6', {%flat, inline_ascii_response => 'no'}, '-o', 'no_modern');
shows('1.6', \%segmented, '-o', 'modern,relaxed_privileges');
shows('1.6', {lru_maintainer_thread => 'no', lru_segmented => 'no', lru_crawler => 'no',
    slab_reassign => 'no', slab_automove => 0, maxconns_fast => 'no'},
    '-o', 'no_lru_maintainer,no_lru_crawler,no_slab_reassign,no_slab_automove,no_maxconns_fast');

# With TLS the rest is in 49-tls-start.t.
my $has_tls = run_program('-h')->{out} =~ /enable-ssl/;

each_profile(sub ($profile) {
    # Words with values; several options of one server at a time.
    shows($profile, {slab_reassign => 'yes', slab_automove => 1, slab_automove_ratio => '0.50',
        slab_automove_window => 3, lru_crawler => 'yes', lru_crawler_sleep => 0,
        lru_crawler_tocrawl => 4294967295, tail_repair_time => 10, hash_algorithm => 'jenkins',
        hashpower_init => 13},
        '-o', 'slab_reassign,slab_automove,slab_automove_ratio=0.5,slab_automove_window=3',
        '-o', 'lru_crawler,lru_crawler_sleep=0,lru_crawler_tocrawl=4294967295',
        '-otail_repair_time=10,hash_algorithm=jenkins,hashpower=13');
    shows($profile, {slab_automove => 2, lru_maintainer_thread => 'yes', lru_segmented => 'yes',
        hot_lru_pct => 1, warm_lru_pct => 79, hot_max_factor => '0.75', warm_max_factor => '3.50',
        temp_lru => 'yes', temporary_ttl => 15, idle_timeout => 77, watcher_logbuf_size => 8192,
        worker_logbuf_size => 131072, track_sizes => 'yes'},
        '--extended=slab_automove=2,lru_maintainer,hot_lru_pct=1,warm_lru_pct=79', '--extended',
        'hot_max_factor=0.75,warm_max_factor=3.5,temporary_ttl=15', '-o',
        ' idle_timeout=77,watcher_logbuf_size=8,worker_logbuf_size=128,track_sizes,');
    shows($profile, {detail_enabled => 'yes', stat_key_prefix => '/'}, '-D', '/path');
    shows($profile, {binding_protocol => 'ascii', maxconns => 300, num_threads => 2, chunk_size => 64,
        growth_factor => '1.08', tcp_backlog => 99, reqs_per_event => 3, cas_enabled => 'no',
        evictions => 'off', flush_enabled => 'no', dump_enabled => 'no', maxbytes => 134217728,
        item_size_max => 4194304, verbosity => 3}, '--protocol=ascii', '--conn-limit=300', '--threads', 2,
        '--slab-min-size=64', '--slab-growth-factor=1.08', '--listen-backlog=99', '--max-reqs-per-event=3',
        '--disable-cas', '--disable-evictions', '--disable-flush-all', '--disable-dumping',
        '--memory-limit=128', '--max-item-size=4m', '--verbose', '-vv', '--disable-watch', '--lock-memory',
        '--enable-coredumps', '--enable-shutdown', '--unix-mask=0755');
    # Strange, and seen in start scripts.
    my ($got, $err) = settings_of($profile, '-m 65', '-c 200 ', '-t2', '-o', '', '-o', ',,',
        '-I2M', 'left over', '-m65');
    has($got, "'-m 65' as one word, a blank behind the number, -t2, -I2M", maxbytes => 65 << 20,
        maxconns => 200, num_threads => 2, item_size_max => 2097152);
    like($err, qr/left over/, 'operands are told');
    (undef, $err) = settings_of($profile, '-o', 'relaxed_privileges,no_drop_privileges');
    is($err, '', 'words that ask for nothing are no reason to talk');
    (undef, $err) = settings_of($profile, '-o', 'drop_privileges,resp_obj_mem_limit=5');
    like($err, qr/drop_privileges.*no effect.*\n.*resp_obj_mem_limit.*no effect/,
        'those without effect say so');

    # Chunk sizes, and -L.
    my ($server, $s) = serve($profile, '-o', 'slab_sizes=96-300-1000', '-L', '-m', '16');
    exchange($s, "set k 0 0 500\r\n" . 'v' x 500 . "\r\n", "STORED\r\n");
    is(mem_stats($s, 'slabs')->{'3:chunk_size'}, 1000, 'slab_sizes: third class');
    exchange($s, "cache_memlimit 32\r\n", "MEMLIMIT_ADJUST_FAILED out of bounds or unable to adjust\r\n",
        '-L: the limit is final');
    $server = serve($profile, '-o', 'no_chunked_items');
    is(mem_stats($server->connect, 'settings')->{slab_chunk_max}, 1048576, 'no_chunked_items');
    $server->stop;

    # What is not there, or does not go together.
    if (!$has_tls) {
        refused($profile, 64, qr/not built with TLS support/, '-Z');
        refused($profile, 64, qr/not built with TLS support/, '--enable-ssl');
        refused($profile, 1, qr/not built with TLS support/, '-o', 'ssl_chain_cert=x');
    }
    refused($profile, 1, qr/not built with external storage/, '-o', 'ext_path=/f:1m');
    refused($profile, 1, qr/not built with a proxy/, '-o', 'proxy_config=x');

    refused($profile, 1, qr/Maximum number of NAPI IDs must be greater than 0/, '-N', $_) for '0', '-1', 'x';
    refused($profile, @$_) for [64, qr/Invalid value for binding protocol: http/, '-B', 'http'],
        [1, qr/No delimiter specified/, '-D', ''], [1, qr/^Illegal suboption "fooble=3"$/m, '-o', 'fooble=3'];
    is(run_program("--compat=$profile", '-Q')->{err},
        "memcached: invalid option -- 'Q'\nIllegal argument \"?\"\n", '-Q: as upstream says it');
    refused($profile, 1, qr/Initial hashtable multiplier of 11 is too low/, '-o', 'hashpower=11');
    refused($profile, 1, qr/multiplier of 65 is too high/, '-o', 'hashpower=65');
    refused($profile, 1, qr/Missing $_ argument/, '-o', $_)
        for qw(hashpower tail_repair_time idle_timeout temporary_ttl slab_automove_ratio
        slab_automove_window hash_algorithm hot_lru_pct warm_max_factor watcher_logbuf_size
        worker_logbuf_size lru_crawler_sleep);
    refused($profile, 64, qr/Missing slab_sizes argument/, '-o', 'slab_sizes');
    refused($profile, 1, qr/slab_automove must be between 0 and 2/, '-o', 'slab_automove=3');
    refused($profile, 1, qr/slab_automove_ratio must be > 0/, '-o', 'slab_automove_ratio=0');
    refused($profile, 1, qr/slab_automove_window must be > 2/, '-o', 'slab_automove_window=2');
    refused($profile, 1, qr/less than 10 seconds/, '-o', 'tail_repair_time=9');
    refused($profile, 1, qr/Unknown hash_algorithm/, '-o', 'hash_algorithm=md5');
    refused($profile, 1, qr/between 0 and 1 second/, '-o', 'lru_crawler_sleep=1000001');
    refused($profile, 1, qr/numeric 32bit/, '-o', 'lru_crawler_tocrawl=4294967296');
    refused($profile, 1, qr/hot_lru_pct must be/, '-o', 'hot_lru_pct=80');
    refused($profile, 1, qr/warm_max_factor must be > 0/, '-o', 'warm_max_factor=0');
    refused($profile, 64, qr/more than 80% combined/, '-o', 'hot_lru_pct=41,warm_lru_pct=40');
    refused($profile, 64, qr/requires lru_maintainer/, '-o', 'temporary_ttl=9,no_lru_maintainer');
    refused($profile, 64, qr/slab size 10 is out of valid range/, '-o', 'slab_sizes=10-200');
    refused($profile, 64, qr/slab size 200 cannot be lower/, '-o', 'slab_sizes=300-200');
    refused($profile, 64, qr/slab size 308 must be at least 8/, '-o', 'slab_sizes=300-308');
    refused($profile, 64, qr/slab size  ?is out of valid range/, '-o', 'slab_sizes=');
    refused($profile, 64, qr/too many slab classes/, '-o',
        'slab_sizes=' . join '-', map { 100 + 20 * $_ } 1 .. 63);
    refused($profile, 64, qr/no_chunked_items/, '-o', 'no_chunked_items', '-I', '2m');
    refused($profile, 1, qr/Maxconns setting is too low/, '-c', '10', '-t', '4');
});
refused('1.6', 1, qr/> 2 and < 1800/, '-o', 'slab_automove_window=1801');
refused('1.6', 1, qr/specified in kilobytes/, '-o', 'slab_chunk_max=1025');
shows('1.4', {slab_automove_window => 1800}, '-o', 'slab_automove_window=86400');
shows('1.6', {slab_chunk_max => 1024, item_size_max => 1024}, '-I', '1024', '-o', 'slab_chunk_max=1');

is(run_program('-V', '--', '-Q', '--fooble')->{status}, 0, 'what stands behind -- is no option');

# What harnesses look for in the help.
each_profile(sub ($profile) {
    my $run = run_program("--compat=$profile", '-h');
    has($run, '-h exits 0, -h: first line, -h: sasl, -h: unix-socket', status => 0,
        out => qr/^memcached \Q@{[pick($profile, '1.4' => '1.4.39', '1.6' => '1.6.45')]}\E\n/, out => qr/sasl/i,
        out => qr/unix-socket/);
    unlike($run->{out}, qr/$_/, "-h: no $_")
        for qw(ext_path proxy_config no_drop_privileges), $has_tls ? () : 'ssl';
    is(run_program("--compat=$profile", '--help')->{out}, $run->{out}, '--help: the same');
    my @wide = grep { length > 80 } split /\n/, $run->{out};
    is("@wide", '', '-h: no line is wider than a terminal');
});

# By default -h fits a terminal, and still has what harnesses look for.
{
    my $run = run_program('-h');
    is($run->{status}, 0, '-h exits 0');
    my @lines = split /\n/, $run->{out};
    cmp_ok(scalar(@lines), '<=', 24, '-h: at most 24 lines');
    is((join ' ', grep { length > 80 } @lines), '', '-h: at most 80 columns');
    like($run->{out}, qr/\Amemcached 1\.6\.45\n/, '-h: first line');
    like($run->{out}, qr/$_/, "-h: $_") for 'sasl', 'unix-socket', '--qps-limit', '--help=TOPIC', 'Topics: network, memory, ',
        $has_tls ? 'enable-ssl' : ();
    unlike($run->{out}, qr/$_/, "-h: no $_") for qw(ext_path proxy_config no_drop_privileges), $has_tls ? () : 'ssl';
    my $all = run_program('--help');
    is($all->{status}, 0, '--help exits 0');
    like($all->{out}, qr/^$_:\n/m, "--help: $_") for 'Network', 'Memory', 'LRU and expiry', 'Threads and placement',
        'Quality of service', 'TLS and authentication', 'Commands and statistics', 'Process and help', 'Compatibility';
    like($all->{out}, qr/-o hot_lru_pct=N/, '--help: all options');
    like($all->{out}, qr/^  $_ +file /m, "--help: $_") for 'MEMCACHED_PORT_FILENAME', 'MEMCACHED_SASL_PWDB';
    like($all->{out}, qr/^ +pin workers to CPUs \(off; no value: spread\)$/m, '--help: --pin is off unless given');
    like($run->{out}, qr/^Usage: memcached \[options\]\n.*^All options: --help or memcached\(1\);/ms, '-h: the name of the program');
    like($all->{out}, qr/Manual: memcached\(1\)\.\n\z/, '--help: the manual');
}

# Beside another memcached the packages install it under a name of its own.
{
    my $dir = scratch_dir();
    my ($program) = server_binary();
    symlink $program, "$dir/memcached-qos" or die "symlink: $!";
    like(run_program({command => ["$dir/memcached-qos", '-h']})->{out},
        qr/^Usage: memcached-qos \[options\]\n.*^All options: --help or memcached-qos\(1\);/ms, 'memcached-qos -h has its name');
    like(run_program({command => ["$dir/memcached-qos", '--help']})->{out}, qr/Manual: memcached-qos\(1\)\.\n\z/, 'and --help');
}

# A part of the help.
for my $case (
    [['--help=lru'], qr/\ALRU and expiry:\n.*-o hot_lru_pct=N.*-o temporary_ttl=N/s, qr/--port/],
    [['--help', 'qos'], qr/\AQuality of service:\n  --qps-limit=.*--slo=/s, qr/--pin/],
    [['--help', 'steer'], qr/\A  --steer=rr\|cpu\|reuseport\|napi\|p2c  how/, qr/--pin=/],
    [['--help=-m'], qr/\A  -m, --memory-limit=N +item memory[^\n]*\n\z/, qr/--port/],
) {
    my ($args, $has, $lacks) = @$case;
    my $run = run_program(@$args);
    is($run->{status}, 0, "@$args: exit 0");
    like($run->{out}, $has, '... what was asked for');
    unlike($run->{out}, $lacks, '... and no more');
}
has(run_program("--help=$_"), "--help=$_: exit 64, names the topics, on stderr alone", status => 64,
    err => qr/\Amemcached: no help on "$_"; topics: network, memory, [^\n]+\n\z/, out => '') for 'fooble', '';

done_testing();
