#!/usr/bin/env perl
# S3-FIFO in the running server, the default of the native profile: what is read outlives a scan, what
# was evicted not long ago is told from what is new, the policy can be chosen at the start and changed.
use MCTest ':ours';

my $len = 8000;
my $value = 'v' x $len;

sub store_many($s, $prefix, $from, $to) {
    put($s, join '', map { "set $prefix$_ 0 0 $len noreply\r\n$value\r\n" } $from .. $to);
    roundtrip($s, "mn\r\n");
    return;
}

sub count_there($s, $prefix, $from, $to) {
    return scalar grep { (mem_gets($s, "$prefix$_"))[0] ne '' } $from .. $to;
}

# of all classes
sub item_stat($s, $name) {
    my $items = mem_stats($s, 'items');
    my $sum = 0;
    $sum += $items->{$_} for grep { /^items:\d+:\Q$name\E$/ } keys %$items;
    return $sum;
}

sub policy_of(@args) {
    my ($server, $s) = serve('native', @args);
    return join ' ', @{mem_stats($s, 'settings')}{qw(lru_policy lru_segmented lru_maintainer_thread)};
}

{
    my ($server, $s) = serve('native', '-m', 2);
    store_many($s, 'k', 1, 60);
    is(count_there($s, 'k', 1, 60), 60, 'sixty items, read') for 1 .. 2;
    store_many($s, 'scan', 1, 3000);
    cmp_ok(count_there($s, 'k', 1, 60), '>=', 50, 'outlive a scan');
    is(item_stat($s, 'number_warm'), 0, 'nothing is WARM');
    is(item_stat($s, 'number_hot') + item_stat($s, 'number_cold'), mem_stats($s)->{curr_items}, 'all is HOT or COLD');
    cmp_ok(item_stat($s, 'hits_to_cold'), '>', 0, 'reads of the main queue');

    my $before = item_stat($s, 'ghost_hits');
    my ($gone) = grep { (mem_gets($s, "scan$_"))[0] eq '' } reverse 1 .. 3000;
    store_many($s, 'scan', $gone, $gone);
    is(item_stat($s, 'ghost_hits'), $before + 1, 'what was evicted last is known');

    exchange($s, "lru tune 10 20 0.1 2.0\r\n",
        "CLIENT_ERROR lru tune has no effect on s3fifo: say lru mode segmented first\r\n");
    exchange($s, "lru mode segmented\r\n", "OK\r\n");
    exchange($s, "lru tune 10 20 0.1 2.0\r\n", "OK\r\n", 'here it has');
    is(mem_stats($s, 'settings')->{lru_policy}, 'segmented', 'the other policy is told');
    store_many($s, 'n', 1, 300);
    exchange($s, "lru mode s3fifo\r\n", "OK\r\n");
    soon { item_stat($s, 'number_warm') == 0 } 'WARM drains';
    store_many($s, 'n', 1, 300);
    exchange($s, "lru mode flat\r\n", "OK\r\n");
    soon { item_stat($s, 'number_hot') == 0 } 'HOT drains';
    exchange($s, "lru mode lfu\r\n", "ERROR\r\n");
}

{
    my ($server, $s) = serve('1.6');
    exchange($s, "lru mode s3fifo\r\nlru mode segmented\r\n", "ERROR\r\nOK\r\n", '1.6 has no such word');
}

# The policy that options say, and those that are older than it.
is(policy_of(), 's3fifo no yes', 'the default');
is(policy_of('-o', 'lru_policy=segmented'), 'segmented yes yes', 'segmented');
is(policy_of('-o', 'lru_policy=flat'), 'flat no yes', 'flat');
is(policy_of('-o', 'modern'), 's3fifo no yes', 'modern changes nothing');
is(policy_of('-o', 'lru_maintainer'), 'segmented yes yes', 'lru_maintainer: as it was');
is(policy_of('-o', 'no_lru_maintainer'), 'flat no no', 'no_lru_maintainer: as it was');
is(policy_of('-o', 'no_modern'), 'flat no no', 'no_modern: as it was');
is(policy_of('-o', 'no_lru_maintainer,lru_policy=s3fifo'), 's3fifo no yes', 'the last one counts');
has(run_program('-o', 'lru_policy=lfu'), 'another word', err => qr/lru_policy must be s3fifo, segmented or flat/);

# Of short lives. The clock is the test's own.
{
    my ($server, $s) = serve('native', '-o', 'temporary_ttl=61');
    exchange($s, "set a 0 30 1\r\na\r\n", "STORED\r\n");
    is(item_stat($s, 'number_temp'), 1, 'what expires soon is apart');
    exchange($s, "mg a h\r\n", "HD h0\r\n", 'not read');
    exchange($s, "mg a h\r\n", "HD h1\r\n", 'read');
    debugtime($server, 32);
    soon { item_stat($s, 'number_temp') == 0 } 'and goes by itself';
}

# The time of the last read is exact for the first two reads, then to a minute.
{
    my ($server, $s) = serve('native');
    exchange($s, "set a 0 0 1\r\na\r\n", "STORED\r\n");
    exchange($s, "mg a\r\n", "HD\r\n") for 1 .. 2;
    debugtime($server, 30);
    exchange($s, "mg a\r\n", "HD\r\n", 'read again');
    exchange($s, "mg a l\r\n", qr/\AHD l[345]\d\r\n\z/, 'that was within a minute');
    debugtime($server, 70);
    exchange($s, "mg a\r\n", "HD\r\n", 'read after more than one');
    exchange($s, "mg a l\r\n", qr/\AHD l[12]?\d\r\n\z/, 'is told');
}

for my $profile (profiles()) {
    my ($server, $s) = serve($profile);
    ok(!exists mem_stats($s, 'settings')->{lru_policy}, "$profile has none of this");
    exchange($s, "set a 0 0 1\r\na\r\n", "STORED\r\n");
    is(scalar(grep { /ghost_hits/ } keys %{mem_stats($s, 'items')}), 0, "nor of that");
}

done_testing();
