#!/usr/bin/env perl
# Every admin command with and without noreply: whether it answers, and that it is done either way.
use MCTest ':ours';

my $OK = "OK\r\n";
my $ERROR = "ERROR\r\n";
my $FORMAT = "CLIENT_ERROR bad command line format\r\n";
my $BADCLASS = "BADCLASS invalid class id\r\n";
my $DISABLED = 'shutdown not enabled';

# [command, reply in 1.4, in 1.6, reply to it with noreply in 1.4]: that is none where it is left
# out, and never any in 1.6.
my @commands = (
    ['flush_all', $OK, $OK],
    ['flush_all 0', $OK, $OK],
    ['flush_all 99999999999999999999', $FORMAT, "CLIENT_ERROR invalid exptime argument\r\n"],
    ['verbosity 0', $OK, $OK],
    ['verbosity x', $OK, $FORMAT],
    ['cache_memlimit 64', $OK, $OK],
    ['cache_memlimit 7', ("MEMLIMIT_TOO_SMALL cannot set maxbytes to less than 8m\r\n") x 2],
    ['cache_memlimit x', $ERROR, $ERROR],
    ['watch nonsense', $ERROR, $ERROR],
    ['slabs', $ERROR, $ERROR, $ERROR],
    ['slabs nonsense', $ERROR, $ERROR, $ERROR],
    ['slabs reassign', $ERROR, $ERROR, $ERROR],
    ['slabs reassign 2', $ERROR, $ERROR, "NOSPARE source class has no spare pages\r\n"],
    ['slabs reassign 2 1', ("NOSPARE source class has no spare pages\r\n") x 2, $ERROR],
    ['slabs reassign 1 1', ("SAME src and dst class are identical\r\n") x 2, $ERROR],
    ['slabs reassign 1 70', ("BADCLASS invalid src or dst class id\r\n") x 2, $ERROR],
    ['slabs automove', $ERROR, $ERROR],
    ['slabs automove 0', $OK, $OK],
    ['slabs automove 3', $ERROR, $ERROR],
    ['slabs automove x', $OK, $FORMAT],
    ['slabs automove ratio', $ERROR, $ERROR],
    ['slabs automove ratio 0.5', $OK, $OK],
    ['slabs automove ratio x', $ERROR, $ERROR],
    ['slabs automove window 10', $OK, $OK],
    ['slabs automove freeratio 0.5', $OK, $OK],
    ['lru', $ERROR, $ERROR],
    ['lru nonsense', $ERROR, $ERROR],
    ['lru tune 20 40 0.2 2.0', $OK, $OK],
    ['lru tune 41 40 0.2 2.0', ("ERROR hot and warm pcts must not exceed 80\r\n") x 2],
    ['lru tune 20 40 0 2.0', ("ERROR hot/warm age factors must be greater than 0\r\n") x 2],
    ['lru tune 20 40 0.2', $ERROR, $ERROR],
    ['lru mode', $ERROR, $ERROR],
    ['lru mode flat', $OK, $OK],
    ['lru mode segmented', $OK, $OK],
    ['lru mode nonsense', $ERROR, $ERROR],
    ['lru temp_ttl', $ERROR, $ERROR],
    ['lru temp_ttl -1', $OK, $OK],
    ['lru temp_ttl x', $ERROR, $ERROR],
    ['lru_crawler', $ERROR, $ERROR, $ERROR],
    ['lru_crawler nonsense', $ERROR, $ERROR, $ERROR],
    ['lru_crawler enable', ("ERROR failed to start lru crawler thread\r\n") x 2, $ERROR],
    ['lru_crawler tocrawl', $ERROR, $ERROR, $FORMAT],
    ['lru_crawler tocrawl 0', $OK, $OK, $ERROR],
    ['lru_crawler tocrawl x', $FORMAT, $FORMAT, $ERROR],
    ['lru_crawler sleep', $ERROR, $ERROR, $FORMAT],
    ['lru_crawler sleep 100', $OK, $OK, $ERROR],
    ['lru_crawler sleep 1000001', ("CLIENT_ERROR sleep must be one second or less\r\n") x 2, $ERROR],
    ['lru_crawler crawl', $ERROR, $ERROR, $BADCLASS],
    ['lru_crawler crawl 63', "NOTSTARTED no items to crawl\r\n", $OK, $ERROR],
    ['lru_crawler crawl 64', $BADCLASS, $BADCLASS, $ERROR],
    ['lru_crawler metadump', $ERROR, $ERROR, $BADCLASS],
    ['lru_crawler metadump 63', "NOTSTARTED no items to crawl\r\n", "OK\r\nEND\r\n", $ERROR],
    ['lru_crawler metadump 64', $BADCLASS, $BADCLASS, $ERROR],
    ['lru_crawler mgdump 63', $ERROR, "OK\r\nEN\r\n", $ERROR],
    ['lru_crawler disable', $OK, $OK, $ERROR],
    ['refresh_certs', $ERROR, $ERROR, $ERROR],
    ['shutdown', "ERROR: $DISABLED\r\n", "SERVER_ERROR: $DISABLED\r\n"],
    ['shutdown graceful', $ERROR, "SERVER_ERROR: $DISABLED\r\n", $ERROR],
);

# [command, group of statistics, name, value behind it]: those of the upper part in both profiles
my @effects = (
    ['verbosity 1', 'settings', 'verbosity', 1],
    ['verbosity 0', 'settings', 'verbosity', 0],
    ['cache_memlimit 72', 'settings', 'maxbytes', 72 << 20],
    ['slabs automove 1', 'settings', 'slab_automove', 1],
    ['slabs automove ratio 0.25', 'settings', 'slab_automove_ratio', '0.25'],
    ['lru tune 21 41 0.25 2.5', 'settings', 'hot_lru_pct', 21],
    ['lru temp_ttl 77', 'settings', 'temporary_ttl', 77],
    ['lru mode flat', 'settings', 'lru_segmented', 'no'],
    ['lru mode segmented', 'settings', 'lru_segmented', 'yes'],
);
my @effects_16 = (
    ['slabs automove window 17', 'settings', 'slab_automove_window', 17],
    ['lru_crawler disable', 'settings', 'lru_crawler', 'no'],
    ['lru_crawler enable', 'settings', 'lru_crawler', 'yes'],
    ['lru_crawler sleep 123', 'settings', 'lru_crawler_sleep', 123],
    ['lru_crawler tocrawl 456', 'settings', 'lru_crawler_tocrawl', 456],
);

for my $profile ('1.4', '1.6') {
    my $is_16 = $profile eq '1.6';
    # In 1.6 no thread of its own looks after the crawler that the test switches on and off.
    my ($server, $s) = serve($profile, '-o', 'slab_reassign,lru_maintainer,lru_crawler,no_slab_automove');
    for (@commands) {
        my ($command, $reply_14, $reply_16, $with_noreply_14) = @$_;
        exchange($s, "lru_crawler enable\r\n", qr/^/) if $command =~ /^lru_crawler (disable|enable)/;
        exchange($s, "$command\r\n", $is_16 ? $reply_16 : $reply_14);
        exchange($s, "$command noreply\r\n", $is_16 ? '' : $with_noreply_14 // '');
    }
    exchange($s, "lru_crawler enable\r\n", qr/^/);
    for (@effects, $is_16 ? @effects_16 : ()) {
        my ($command, $group, $name, $value) = @$_;
        exchange($s, "$command noreply\r\n", '');
        is(mem_stats($s, $group)->{$name}, $value, "[$profile] $command noreply: $name");
    }

    # what has no noreply, and a key of that name
    exchanges($s, ["version noreply\r\n", $is_16 ? VERSION_REPLY($profile) : $ERROR],
        ["stats reset noreply\r\n", "RESET\r\n"], ["mn noreply\r\n", "MN\r\n"],
        ["delete noreply\r\n", $is_16 ? '' : "NOT_FOUND\r\n"],
        ["set noreply 0 0 1\r\n1\r\ndelete noreply\r\nget noreply\r\n",
            $is_16 ? "STORED\r\nEND\r\n" : "STORED\r\nDELETED\r\nEND\r\n"],
        ["set noreply 0 0 1\r\n1\r\ndelete noreply noreply\r\nget noreply\r\n", "STORED\r\nEND\r\n"]);
    $server->stop;

    $server = start_server(profile => $profile, args => ['-A']); # that it ends: 02-life
    $s = $server->connect;
    exchange($s, "shutdown nonsense\r\n", $is_16 ? "CLIENT_ERROR invalid shutdown mode\r\n" : $ERROR);
    exchange($s, "shutdown nonsense noreply\r\n", $is_16 ? '' : $ERROR);
    put($s, "shutdown noreply\r\n");
    expect_eof($s, '', "[$profile] -A: shutdown noreply closes without a word");
}

done_testing();
