#!/usr/bin/env perl
# What the monitoring programs of the field read is there, and has the type they parse.
use MCTest;

my $NUMBER = qr/^\d+$/;

# prometheus/memcached_exporter: these must be there, else memcached_up is 0
my @exporter_needs = qw(version cmd_set cas_misses cas_hits cas_badval);
my @exporter_needs_of_slab = qw(cmd_set cas_hits cas_badval);
# ... these are optional, but must be numbers
my @exporter = qw(uptime time cmd_flush get_hits get_misses delete_hits delete_misses incr_hits
    incr_misses decr_hits decr_misses cas_hits cas_misses touch_hits touch_misses bytes
    limit_maxbytes curr_items total_items bytes_read bytes_written curr_connections
    total_connections conn_yields listen_disabled_num evictions reclaimed
    crawler_items_checked crawler_reclaimed accepting_conns);
my @exporter_16 = qw(rejected_connections store_too_large store_no_memory lru_crawler_starts
    direct_reclaims moves_to_cold moves_to_warm moves_within_lru);
my @exporter_items = qw(number age evicted evicted_nonzero evicted_time evicted_unfetched
    expired_unfetched outofmemory tailrepairs);
my @exporter_items_16 = qw(mem_requested number_hot number_warm number_cold age_hot age_warm
    hits_to_hot hits_to_warm hits_to_cold hits_to_temp);
my @exporter_slabs = qw(chunk_size chunks_per_page total_pages total_chunks used_chunks
    free_chunks free_chunks_end get_hits cmd_set delete_hits incr_hits decr_hits cas_hits
    cas_badval touch_hits);
my @exporter_settings = qw(maxconns lru_crawler_sleep lru_crawler_tocrawl hot_lru_pct
    warm_lru_pct);

# telegraf, inputs.memcached
my @telegraf = qw(accepting_conns auth_cmds auth_errors bytes bytes_read bytes_written
    cas_badval cas_hits cas_misses cmd_flush cmd_get cmd_set cmd_touch conn_yields
    connection_structures curr_connections curr_items decr_hits decr_misses delete_hits
    delete_misses evicted_unfetched evictions expired_unfetched get_expired get_flushed
    get_hits get_misses hash_bytes hash_is_expanding hash_power_level incr_hits incr_misses
    limit_maxbytes listen_disabled_num reclaimed threads total_connections total_items
    touch_hits touch_misses uptime);
my @telegraf_16 = qw(evicted_active max_connections);

# collectd, plugin memcached
my @collectd = qw(threads curr_items bytes limit_maxbytes curr_connections total_connections
    bytes_read bytes_written cmd_get cmd_set cmd_flush cmd_touch get_hits get_misses incr_hits
    incr_misses decr_hits decr_misses evictions listen_disabled_num);

# munin, plugins memcached_*
my @munin = qw(bytes bytes_read bytes_written cmd_get cmd_set curr_connections curr_items
    evictions get_hits get_misses limit_maxbytes total_connections total_items);

sub expect_numbers($stats, $name, @names) {
    local $Test::Builder::Level = $Test::Builder::Level + 1;
    is(join(' ', grep { ($stats->{$_} // '') !~ $NUMBER } @names), '',
        "$name: no name is missing or not a number");
}

each_profile(sub ($profile) {
    my $server = serve($profile);
    my $is_16 = $profile eq '1.6';
    my $s = $server->connect;
    exchange($s, "set a 0 0 1\r\n1\r\nget a\r\nget b\r\n", "STORED\r\nVALUE a 0 1\r\n1\r\nEND\r\nEND\r\n");
    my $st = mem_stats($s);
    my $settings = mem_stats($s, 'settings');
    my $items = mem_stats($s, 'items');
    my $slabs = mem_stats($s, 'slabs');

    ok(defined $st->{$_}, "exporter needs $_") for @exporter_needs;
    ok(defined $slabs->{"1:$_"}, "exporter needs $_ of slabs") for @exporter_needs_of_slab;
    like($st->{$_}, qr/^\d+\.\d+$/, "exporter and collectd: $_") for qw(rusage_user rusage_system);
    expect_numbers($st, 'exporter, stats', @exporter, $is_16 ? @exporter_16 : ());
    expect_numbers($items, 'exporter, items', map { "items:1:$_" } @exporter_items,
        $is_16 ? @exporter_items_16 : ());
    expect_numbers($slabs, 'exporter, slabs', 'total_malloced', map { "1:$_" } @exporter_slabs);
    expect_numbers($settings, 'exporter, settings', @exporter_settings);
    like($settings->{$_}, qr/^(yes|no)$/, "exporter, settings: $_ is a word")
        for qw(lru_crawler lru_maintainer_thread);
    like($settings->{$_}, qr/^\d+\.\d+$/, "exporter, settings: $_") for qw(hot_max_factor warm_max_factor);
    expect_numbers($st, 'telegraf', @telegraf, $is_16 ? @telegraf_16 : ());
    expect_numbers($st, 'collectd', @collectd);
    expect_numbers($st, 'munin', @munin);

    # Lines that their parsers choke on: anything but three fields; names with colons whose
    # numbers are missing.
    for my $group ('', qw(settings items slabs)) {
        my @lines = stat_lines($s, $group);
        is((grep { !/^STAT \S+ .*$/ } @lines), 0, "stats $group: lines of three fields");
        my @colons = map { /^STAT (\S*:\S*)/ ? $1 : () } @lines;
        is((grep { !/^\d+:[^:]+$/ && !/^[^:]+:\d+:[^:]+$/ } @colons), 0,
            "stats $group: names with colons have numbers");
    }
});

done_testing();
