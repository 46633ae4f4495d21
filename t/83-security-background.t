#!/usr/bin/env perl
# Statistics by prefix without bounds, dumps and watchers whose client stalls or leaves, and more
# watchers than there may be: the server lives, serves the others and is in sync.
use MCTest;

each_profile(sub ($profile) {
    my $six = $profile ne '1.4';
    my ($server, $s) = serve($profile, qw(-m 64 -c 512 -t 2));
    my $unharmed = canary($server, $s);

    # 9.2: stats detail with many and long prefixes, huge output of stats
    exchange($s, "stats detail on\r\n", "OK\r\n");
    my $noise = $server->connect;
    for my $block (0 .. 9) {
        put($noise, join '', map { "get p$block.$_:k\r\n" } 1 .. 2000);
        read_bytes($noise, 5 * 2000);
    }
    put($noise, join '', map { 'get ' . ('p' x (40 + $_)) . ":k\r\n" } 1 .. 200);
    is(read_bytes($noise, 5 * 200), "END\r\n" x 200, 'long prefixes');
    put($s, "stats detail dump\r\n");
    my $last = '';
    my $lines = 0;
    while (($last = read_line($s)) =~ /^PREFIX \S+ get \d+ hit \d+ set \d+ del \d+\r\n\z/) {
        $lines++;
    }
    is($last, "END\r\n", "stats detail dump of $lines prefixes is whole");
    cmp_ok($lines, '>=', 20_200, 'and complete');
    exchange($s, "stats detail off\r\nstats reset\r\n", "OK\r\nRESET\r\n");

    # 7eeac6e9a: a dump whose client does not read, or leaves
    for my $i (1 .. 100) {
        put($noise, join '', map { 'set ' . ('#' x 200) . ".$i.$_ 0 0 1 noreply\r\n1\r\n" } 1 .. 100);
    }
    exchange($noise, "get x\r\n", "END\r\n", 'items to dump');
    exchange($s, "lru_crawler enable\r\n", qr/^(?:OK|ERROR[^\r]*)\r\n\z/);
    for my $dump ('metadump all', $six ? ('metadump hash', 'mgdump all') : ()) {
        my $c = $server->connect;
        put($c, "lru_crawler $dump\r\n");
        my $line = read_line($c);
        like($line, qr/^(?:OK|key=|BUSY)/, "$dump begins");
        close $c;
        $unharmed->("a client that leaves $dump");
        my @stuck = map { my $d = $server->connect; put($d, "lru_crawler $dump\r\n"); $d } 1 .. 3;
        read_line($stuck[0]);
        $unharmed->("clients that do not read $dump");
        close $_ for @stuck;
        wait_until(sub {
            my $d = $server->connect;
            put($d, "lru_crawler crawl all\r\n");
            return read_line($d) =~ /^(?:OK|NOTSTARTED)/;
        });
    }

    # watchers: more than there may be, that do not read, that leave while flooded
    {
        my @watchers = map { my $c = $server->connect; put($c, "watch fetchers mutations\r\n"); $c } 1 .. 25;
        my %said;
        $said{read_line($_)}++ for @watchers;
        has(\%said, 'twenty watchers', "OK\r\n" => 20, "WATCHER_TOO_MANY log watcher limit reached\r\n" => 5);
        my $key = '#' x 250;
        for my $round (1 .. 20) {
            put($noise, "get $key\r\nset w 0 0 1\r\n1\r\n" x 200 . "set big 0 0 1048577\r\n" . 'x' x 1_048_577 . "\r\n");
            my $n = 200 * (5 + 8) + length "SERVER_ERROR object too large for cache\r\n";
            my $got = read_bytes($noise, $n);
            is(length $got, $n, "flood $round") if length $got != $n;
            close shift @watchers if @watchers;
        }
        close $_ for @watchers;
        $unharmed->('watchers');
        my $c = $server->connect;
        put($c, "watch evictions\r\n");
        soon {
            my $line = read_line($c);
            return 1 if $line eq "OK\r\n";
            $c = $server->connect;
            put($c, "watch evictions\r\n");
            return 0;
        } 'a place is free again';
        close $c;
    }
});

done_testing();
