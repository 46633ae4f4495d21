#!/usr/bin/env perl
# `stats` and its groups have the documented names in the documented order and true numbers.
use MCTest;

my @general_14 = qw(pid uptime time version libevent pointer_size rusage_user rusage_system
    curr_connections total_connections connection_structures reserved_fds cmd_get cmd_set
    cmd_flush cmd_touch get_hits get_misses get_expired get_flushed delete_misses delete_hits
    incr_misses incr_hits decr_misses decr_hits cas_misses cas_hits cas_badval touch_hits
    touch_misses auth_cmds auth_errors bytes_read bytes_written limit_maxbytes accepting_conns
    listen_disabled_num time_in_listen_disabled_us threads conn_yields hash_power_level
    hash_bytes hash_is_expanding malloc_fails log_worker_dropped log_worker_written
    log_watcher_skipped log_watcher_sent bytes curr_items total_items expired_unfetched
    evicted_unfetched evictions reclaimed crawler_reclaimed crawler_items_checked
    lrutail_reflocked);
my @settings_14 = qw(maxbytes maxconns tcpport udpport inter verbosity oldest evictions
    domain_socket umask growth_factor chunk_size num_threads num_threads_per_udp
    stat_key_prefix detail_enabled reqs_per_event cas_enabled tcp_backlog binding_protocol
    auth_enabled_sasl item_size_max maxconns_fast hashpower_init slab_reassign slab_automove
    slab_automove_ratio slab_automove_window slab_chunk_max lru_crawler lru_crawler_sleep
    lru_crawler_tocrawl tail_repair_time flush_enabled dump_enabled hash_algorithm
    lru_maintainer_thread lru_segmented hot_lru_pct warm_lru_pct hot_max_factor
    warm_max_factor temp_lru temporary_ttl idle_timeout watcher_logbuf_size
    worker_logbuf_size track_sizes inline_ascii_response);
my @items_14 = qw(number age evicted evicted_nonzero evicted_time outofmemory tailrepairs
    reclaimed expired_unfetched evicted_unfetched crawler_reclaimed crawler_items_checked
    lrutail_reflocked);
my @slabs_14 = qw(chunk_size chunks_per_page total_pages total_chunks used_chunks free_chunks
    free_chunks_end mem_requested get_hits cmd_set delete_hits incr_hits decr_hits cas_hits
    cas_badval touch_hits);
my @zero_at_start = qw(curr_items total_items bytes cmd_get cmd_set get_hits evictions
    get_misses get_expired bytes_written delete_hits delete_misses incr_hits incr_misses
    decr_hits get_flushed decr_misses listen_disabled_num lrutail_reflocked
    time_in_listen_disabled_us);

each_profile(sub ($profile) {
    my $is_ref = $profile eq 'ref';
    my ($server, $s) = serve($profile, $profile eq '1.6' ? ('-o', 'no_lru_crawler,no_lru_maintainer') : ());
    my @lines = stat_lines($s);
    my @names = map { /^STAT (\S+) / ? $1 : () } @lines;
    my %st = map { /^STAT (\S+) (.*)$/ ? ($1, $2) : () } @lines;
    is(scalar(@names), scalar(@lines), 'every line is STAT name value');
    if ($profile eq '1.4') {
        is(scalar(@names), 59, '[1.4] stats has 59 names');
        is_deeply(\@names, \@general_14, '[1.4] in the documented order');
    } else {
        my %have = map { $_ => 1 } @names;
        is(join(' ', grep { !$have{$_} } @general_14), '', 'no name is missing');
        my @common = do { my %in = map { $_ => 1 } @general_14; grep { $in{$_} } @names };
        is_deeply(\@common, \@general_14, 'the common names are in order') if !$is_ref;
        is(scalar(@names), 84, 'stats has 84 names without background threads') if !$is_ref;
    }
    is($st{$_}, 0, "$_ is 0 at start") for @zero_at_start;
    is($st{pid}, $server->pid, 'pid');
    cmp_ok($st{uptime}, '>=', 2, 'uptime starts at 2 or later') if !$is_ref;
    cmp_ok(abs($st{time} - time), '<=', 5, 'time is the time of day');
    is("VERSION $st{version}\r\n", VERSION_REPLY($profile), 'version');
    is($st{pointer_size}, 64, 'pointer_size');
    like($st{$_}, qr/^\d+\.\d{6}$/, "$_") for qw(rusage_user rusage_system);
    is($st{curr_connections}, 1, 'curr_connections: listener + client - 1') if !$is_ref;
    is($st{total_connections}, 2, 'total_connections: listener + client') if !$is_ref;
    has(\%st, 'at the start', limit_maxbytes => 67108864, threads => 4, reserved_fds => 20,
        accepting_conns => 1, hash_power_level => 16, hash_bytes => 524288, hash_is_expanding => 0);

    # connections are counted
    my $before = mem_stats($s);
    my @more = map { $server->connect } 1 .. 5;
    expect_open($_, 'a further connection') for @more;
    my $after = mem_stats($s);
    is($after->{curr_connections} - $before->{curr_connections}, 5, '5 more are open');
    is($after->{total_connections} - $before->{total_connections}, 5, 'and counted');
    close $_ for @more;
    @more = ();
    soon { mem_stats($s)->{curr_connections} == $before->{curr_connections} }
        'closed connections leave curr_connections';
    is(mem_stats($s)->{total_connections}, $after->{total_connections}, 'but not total_connections');

    # bytes: 48 + 8 + key + 1 + suffix + value + 2
    if ($profile eq '1.4') {
        exchange($s, "set a 0 0 1\r\n1\r\n", "STORED\r\n", {bytes => 67});
        exchange($s, "delete a\r\n", "DELETED\r\n", {bytes => -67});
        exchange($s, "set abc 65535 0 100\r\n" . ('x' x 100) . "\r\n", "STORED\r\n",
            {bytes => 48 + 8 + 3 + 1 + length(" 65535 100\r\n") + 100 + 2});
        exchange($s, "delete abc\r\n", "DELETED\r\n");
    } elsif (!$is_ref) {
        exchange($s, "set a 0 0 1\r\n1\r\n", "STORED\r\n", {bytes => 61});
        exchange($s, "set a 7 0 1\r\n1\r\n", "STORED\r\n", {bytes => 4});
        exchange($s, "delete a\r\n", "DELETED\r\n", {bytes => -65});
    }

    # bytes_read and bytes_written count what went over the wire
    if (!$is_ref) {
        my $c = $server->connect;
        my $b = mem_stats($c);
        put($c, "set abc 0 0 3\r\nabc\r\nget abc\r\n");
        read_bytes($c, length "STORED\r\nVALUE abc 0 3\r\nabc\r\nEND\r\n");
        my $a = mem_stats($c);
        is($a->{bytes_read} - $b->{bytes_read},
            length("set abc 0 0 3\r\nabc\r\nget abc\r\n") + length("stats\r\n"), 'bytes_read');
        cmp_ok($a->{bytes_written}, '>', $b->{bytes_written}, 'bytes_written grows');
    }

    # settings
    @lines = stat_lines($s, 'settings');
    @names = map { /^STAT (\S+)/ ? $1 : () } @lines;
    my $set = mem_stats($s, 'settings');
    if ($profile eq '1.4') {
        is_deeply(\@names, \@settings_14, '[1.4] names of stats settings in order');
        my %want = (maxbytes => 67108864, maxconns => 1024, tcpport => qr/^(-1|0|\d+)$/,
            udpport => qr/^-?\d+$/, inter => '127.0.0.1', verbosity => 0, oldest => 0,
            evictions => 'on', domain_socket => 'NULL', umask => 700, growth_factor => '1.25',
            chunk_size => 48, num_threads => 4, stat_key_prefix => ':', detail_enabled => 'no',
            reqs_per_event => 20, cas_enabled => 'yes', tcp_backlog => 1024,
            auth_enabled_sasl => 'no', item_size_max => 1048576, maxconns_fast => 'no',
            hashpower_init => 0, slab_reassign => 'no', slab_automove => 0,
            slab_automove_ratio => '0.80', slab_chunk_max => 1048576, lru_crawler => 'no',
            lru_crawler_sleep => 100, lru_crawler_tocrawl => 0, tail_repair_time => 0,
            flush_enabled => 'yes', dump_enabled => 'yes', hash_algorithm => qr/^\w+$/,
            lru_maintainer_thread => 'no', lru_segmented => 'no', hot_lru_pct => 20,
            warm_lru_pct => 40, hot_max_factor => '0.20', warm_max_factor => '2.00',
            temp_lru => 'no', temporary_ttl => 61, idle_timeout => 0,
            watcher_logbuf_size => 262144, worker_logbuf_size => 65536, track_sizes => 'no',
            inline_ascii_response => 'yes');
        has($set, '[1.4] settings', %want);
    } else {
        has($set, 'settings', maxconns => 1024, evictions => 'on', cas_enabled => 'yes', domain_socket => 'NULL',
            item_size_max => 1048576, shutdown_command => 'no');
    }
    put($s, "stats  settings\r\n");
    like(read_line($s), qr/^STAT maxbytes 67108864\r\n\z/, 'two blanks in stats settings');
    while (read_line($s) ne "END\r\n") { }

    # items and slabs
    exchange($s, "flush_all\r\n", "OK\r\n");
    ($server, $s) = serve($profile);
    exchange($s, "stats items\r\n", "END\r\n", 'stats items of an empty server');
    is(join(',', stat_lines($s, 'slabs')), 'STAT active_slabs 0,STAT total_malloced 0',
        'stats slabs of an empty server') if !$is_ref;
    exchange($s, "set z 0 0 0\r\n\r\n", "STORED\r\n");
    is(mem_stats($s, 'slabs')->{'1:used_chunks'}, 1, 'one chunk used');
    exchange($s, "set y 0 0 0\r\n\r\n", "STORED\r\n");
    my $slabs = mem_stats($s, 'slabs');
    has($slabs, 'two chunks used',
        '1:used_chunks' => 2, '1:chunk_size' => 96, '1:chunks_per_page' => 10922, '1:total_pages' => 1,
        '1:total_chunks' => 10922, '1:free_chunks' => 10920, active_slabs => 1, '1:cmd_set' => 2);
    if ($profile eq '1.4') {
        is($slabs->{total_malloced}, 1048512, '[1.4] total_malloced');
        is_deeply([stat_names($s, 'slabs')], [(map { "1:$_" } @slabs_14), 'active_slabs', 'total_malloced'],
            '[1.4] names of stats slabs in order');
        is_deeply([stat_names($s, 'items')], [map { "items:1:$_" } @items_14],
            '[1.4] names of stats items in order');
    }
    is(mem_stats($s, 'items')->{'items:1:number'}, 2, 'items:1:number');
    exchange($s, "get z\r\nget y\r\ntouch z 0\r\ndelete y\r\n",
        "VALUE z 0 0\r\n\r\nEND\r\nVALUE y 0 0\r\n\r\nEND\r\nTOUCHED\r\nDELETED\r\n");
    exchange($s, "set n 0 0 1\r\n1\r\nincr n 1\r\nincr n 1\r\ndecr n 1\r\n", "STORED\r\n2\r\n3\r\n2\r\n");
    my ($cas) = mem_gets($s, 'n');
    exchange($s, "cas n 0 0 1 999999\r\n1\r\ncas n 0 0 1 $cas\r\n1\r\n", "EXISTS\r\nSTORED\r\n");
    $slabs = mem_stats($s, 'slabs');
    is($slabs->{"1:$_->[0]"}, $_->[1], "class counter $_->[0]") for ['get_hits', 3], ['touch_hits', 1],
        ['delete_hits', 1], ['incr_hits', 2], ['decr_hits', 1], ['cas_badval', 1], ['cas_hits', 1];

    # 69 sizes: stats slabs and items are complete
    my $bad = 0;
    my @classes;
    for (my ($n, $i) = (2, 0); $i < 69 && $n < 1000000; $n *= 1.2, $i++) {
        my $len = int $n;
        for my $j (0 .. 9) {
            my $got = roundtrip($s, "set s$i.$j 0 0 $len\r\n" . ('x' x $len) . "\r\n", "STORED\r\n");
            $bad++ if $got ne "STORED\r\n";
        }
    }
    is($bad, 0, 'ten items of each of 69 sizes');
    $slabs = mem_stats($s, 'slabs');
    @classes = grep { defined $slabs->{"$_:chunk_size"} } 1 .. 63;
    is(scalar(@classes), $slabs->{active_slabs}, 'active_slabs counts the classes shown');
    is((grep { !defined $slabs->{"$_:touch_hits"} } @classes), 0, 'each is complete');
    if ($profile eq '1.4') {
        my @sizes = (96, 120, 152, 192, 240, 304, 384, 480, 600, 752, 944, 1184, 1480, 1856,
            2320, 2904, 3632, 4544, 5680, 7104, 8880, 11104, 13880, 17352, 21696, 27120, 33904,
            42384, 52984, 66232, 82792, 103496, 129376, 161720, 202152, 252696, 315872, 394840,
            493552, 616944, 771184, 1048576);
        is((grep { $slabs->{"$_:chunk_size"} != $sizes[$_ - 1] } @classes), 0,
            '[1.4] chunk sizes are those of the table');
        is((grep { $slabs->{"$_:chunks_per_page"} != int(1048576 / $sizes[$_ - 1]) } @classes), 0,
            '[1.4] chunks per page likewise');
    }

    # sizes and other groups
    exchange($s, "stats sizes\r\n", "STAT sizes_status disabled\r\nEND\r\n") if !$is_ref;

    # conns
    my $nread = $server->connect;
    expect_open($nread, 'a client');
    put($nread, "set half 0 0 10\r\nabc");
    my @conns;
    soon { @conns = stat_lines($s, 'conns'); grep { /conn_nread/ } @conns }
        'a client in the middle of its data is in conn_nread';
    ok((grep { $_ eq 'STAT ' . ($_ =~ /(\d+):/)[0] . ":addr tcp:127.0.0.1:" . $server->port }
                @conns), "the listener's address");
    my ($listen_fd) = map { /^STAT (\d+):state conn_listening/ ? $1 : () } @conns;
    ok(defined $listen_fd, 'the listener is in conn_listening');
    is((grep { /:state conn_parse_cmd$/ } @conns), 1, 'the asking client is in conn_parse_cmd');
    my @fds = map { /^STAT (\d+):addr/ ? $1 : () } @conns;
    is_deeply(\@fds, [sort { $a <=> $b } @fds], 'descriptors ascend');
    ok((grep { /:secs_since_last_cmd \d+$/ } @conns), 'secs_since_last_cmd');
    if (!$is_ref) {
        debugtime($server, 5);
        @conns = stat_lines($s, 'conns');
        ok((grep { /:secs_since_last_cmd [1-9]\d*$/ } @conns), 'grows with the clock');
    }
    put($nread, "defghij\r\n");
    expect_bytes($nread, "STORED\r\n", 'and the client goes on');

    # reset
    exchange($s, "get half\r\nget nix\r\ndelete nix\r\n",
        "VALUE half 0 10\r\nabcdefghij\r\nEND\r\nEND\r\nNOT_FOUND\r\n");
    my $kept = mem_stats($s);
    exchange($s, "stats reset\r\n", "RESET\r\n");
    my $now = mem_stats($s);
    is($now->{$_}, 0, "$_ is 0 after stats reset")
        for qw(cmd_get cmd_set get_hits get_misses get_expired get_flushed delete_misses
        delete_hits incr_misses incr_hits decr_misses decr_hits cas_misses cas_hits cas_badval
        evictions reclaimed lrutail_reflocked);
    is($now->{$_}, $kept->{$_}, "$_ stays")
        for qw(curr_items curr_connections threads limit_maxbytes hash_power_level bytes
        accepting_conns);

    # -C
    ($server, $s) = serve($profile, '-C');
    is(mem_stats($s, 'settings')->{cas_enabled}, 'no', '-C shows in settings');
    exchange($s, "set a 0 0 1\r\n1\r\n", "STORED\r\n",
        $is_ref ? {} : {bytes => pick($profile, '1.4' => 59, '1.6' => 53)});
    exchange($s, "gets a\r\n", "VALUE a 0 1 0\r\n1\r\nEND\r\n", 'gets prints 0 with -C');
    exchange($s, "cas a 0 0 1 5\r\n2\r\n",
        pick($profile, '1.4' => "STORED\r\n", '1.6' => "EXISTS\r\n"), 'cas with -C');
    exchange($s, "cas nix 0 0 1 5\r\n2\r\n", "NOT_FOUND\r\n");
});

# ---- what 1.6 has more ------------------------------------------------------------------

my @general_16 = qw(pid uptime time version libevent pointer_size rusage_user rusage_system
    max_connections curr_connections total_connections rejected_connections
    connection_structures response_obj_oom response_obj_count response_obj_bytes
    read_buf_count read_buf_bytes read_buf_bytes_free read_buf_oom reserved_fds cmd_get
    cmd_set cmd_flush cmd_touch cmd_meta get_hits get_misses get_expired get_flushed
    delete_misses delete_hits incr_misses incr_hits decr_misses decr_hits cas_misses cas_hits
    cas_badval touch_hits touch_misses store_too_large store_no_memory auth_cmds auth_errors
    bytes_read bytes_written limit_maxbytes accepting_conns listen_disabled_num
    time_in_listen_disabled_us threads conn_yields hash_power_level hash_bytes
    hash_is_expanding slab_reassign_rescues slab_reassign_chunk_rescues
    slab_reassign_inline_reclaim slab_reassign_busy_items slab_reassign_busy_deletes
    slab_reassign_busy_nomem slab_reassign_last_busy_status slab_reassign_running slabs_moved
    lru_crawler_running lru_crawler_starts lru_maintainer_juggles malloc_fails
    log_worker_dropped log_worker_written log_watcher_skipped log_watcher_sent log_watchers
    unexpected_napi_ids round_robin_fallback bytes curr_items total_items
    slab_global_page_pool expired_unfetched evicted_unfetched evicted_active evictions
    reclaimed crawler_reclaimed crawler_items_checked lrutail_reflocked moves_to_cold
    moves_to_warm moves_within_lru direct_reclaims lru_bumps_dropped);
my @items_16 = qw(number number_hot number_warm number_cold age_hot age_warm age mem_requested
    evicted evicted_nonzero evicted_time outofmemory tailrepairs reclaimed expired_unfetched
    evicted_unfetched evicted_active crawler_reclaimed crawler_items_checked
    lrutail_reflocked moves_to_cold moves_to_warm moves_within_lru direct_reclaims hits_to_hot
    hits_to_warm hits_to_cold hits_to_temp);
my %of_threads = map { $_ => 1 } qw(lru_crawler_running lru_crawler_starts
    lru_maintainer_juggles evicted_active moves_to_cold moves_to_warm moves_within_lru
    direct_reclaims lru_bumps_dropped);

if (is_ours()) {
    my ($server, $s) = serve('1.6');
    is_deeply([stat_names($s)], \@general_16, '[1.6] names of stats by default, in order');
    exchange($s, "set z 0 0 0\r\n\r\n", "STORED\r\n");
    is_deeply([stat_names($s, 'items')], [map { "items:1:$_" } @items_16],
        '[1.6] names of stats items, in order');
    is_deeply([stat_names($s, 'slabs')], [(map { "1:$_" } grep { $_ ne 'mem_requested' } @slabs_14),
        'active_slabs', 'total_malloced'], '[1.6] names of stats slabs, in order');
    my @tls = run_program('-h')->{out} =~ /enable-ssl/
        ? map { "ssl_$_" } qw(enabled chain_cert key verify_mode keyformat ciphers ca_cert wbuf_size
        session_cache kernel_tls min_version) : ();
    my %after = (umask => ['shutdown_command'], auth_enabled_sasl => ['auth_enabled_ascii'],
        worker_logbuf_size => ['read_buf_mem_limit'],
        inline_ascii_response => [@tls, qw(num_napi_ids memory_file client_flags_size)]);
    my @settings_16 = map { ($_, @{$after{$_} || []}) } @settings_14;
    is_deeply([grep { $_ ne 'drop_privileges' } stat_names($s, 'settings')], \@settings_16,
        '[1.6] names of stats settings, in order');

    # the two counts that upstream's suites assert
    ($server, $s) = serve('1.6', '-I', '1024', '-o', 'slab_chunk_max=1,no_lru_crawler,no_lru_maintainer');
    is_deeply([stat_names($s)], [grep { !$of_threads{$_} } @general_16], '[1.6] without background threads');
    is(scalar(stat_names($s)), 84, '[1.6] that are 84 names');
    put($s, "set large 0 0 2048\r\n" . ('x' x 2048) . "\r\n");
    is(read_line($s), "SERVER_ERROR object too large for cache\r\n", '[1.6] an item beyond -I');
    is(mem_stats($s)->{store_too_large}, 1, '[1.6] store_too_large');

    # 1.4 with everything switched on
    ($server, $s) = serve('1.4', '-o', 'slab_reassign,slab_automove,lru_crawler,lru_maintainer,'
                . 'maxconns_fast,idle_timeout=100,temporary_ttl=30');
    my %in_14 = map { $_ => 1 } @general_14, keys %of_threads,
        qw(rejected_connections idle_kicks slab_global_page_pool slabs_moved),
        map { "slab_reassign_$_" } qw(rescues chunk_rescues evictions_nomem inline_reclaim
        busy_items busy_deletes running);
    is_deeply([sort(stat_names($s))], [sort keys %in_14], '[1.4] names with everything on');
    exchange($s, "set z 0 0 0\r\n\r\n", "STORED\r\n");
    is(mem_stats($s, 'items')->{'items:1:number_temp'}, 0, '[1.4] a TEMP list is told of');
    my $set = mem_stats($s, 'settings');
    is($set->{$_->[0]}, $_->[1], "[1.4] settings $_->[0] follows its option") for ['slab_reassign', 'yes'],
        ['slab_automove', 1], ['lru_crawler', 'yes'], ['lru_maintainer_thread', 'yes'], ['lru_segmented',
        'yes'], ['maxconns_fast', 'yes'], ['idle_timeout', 100], ['temp_lru', 'yes'], ['temporary_ttl', 30];
    exchanges($s, ["lru_crawler disable\r\n", "OK\r\n"], ["lru tune 10 25 0.1 2.0\r\n", "OK\r\n"],
        ["slabs automove 0\r\n", "OK\r\n"], ["verbosity 1\r\nverbosity 0\r\n", "OK\r\nOK\r\n"]);
    $set = mem_stats($s, 'settings');
    is($set->{$_->[0]}, $_->[1], "[1.4] settings $_->[0] follows a command")
        for ['lru_crawler', 'no'], ['hot_lru_pct', 10], ['warm_lru_pct', 25],
        ['hot_max_factor', '0.10'], ['warm_max_factor', '2.00'], ['slab_automove', 0];
}

done_testing();
