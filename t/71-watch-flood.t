#!/usr/bin/env perl
# A watcher that does not read skips lines and learns how many; the server does not wait.
use MCTest;

my $GETS = 80000;
my $BATCH = 400;

each_profile(sub ($profile) {
    plan skip_all => 'of this server' if $profile eq 'ref';
    my ($server, $s) = serve($profile, '-o', 'watcher_logbuf_size=8');
    is(mem_stats($s, 'settings')->{watcher_logbuf_size}, 8192, 'in bytes');
    my $w = $server->connect;
    put($w, "watch fetchers\r\n");
    is(read_line($w), "OK\r\n", 'watch');

    my $key = 'k' x 180;
    my $bad = 0;
    for my $i (1 .. $GETS / $BATCH) {
        put($s, join '', map { "get $key$i.$_\r\n" } 1 .. $BATCH);
        $bad++ if read_bytes($s, 5 * $BATCH) ne "END\r\n" x $BATCH;
    }
    is($bad, 0, "$GETS gets while the watcher does not read");
    my $st;
    soon {
        $st = mem_stats($s);
        return $st->{log_worker_written} + $st->{log_worker_dropped} == $GETS
            && $st->{log_watcher_sent} + $st->{log_watcher_skipped} == $st->{log_worker_written};
    } 'each is dropped, skipped or sent';
    cmp_ok($st->{log_watcher_skipped}, '>', 0, 'some were skipped');

    # All that was sent, then what tells of the last ones that were skipped.
    my ($lines, $skipped, $after, $other) = (0, 0, 0, 0);
    my $follows = 0;
    while ($lines < $st->{log_watcher_sent}) {
        my $line = read_line($w);
        if ($line =~ /^skipped=(\d+)\n\z/) {
            $skipped += $1;
            $follows = 1;
            next;
        }
        if ($line !~ /^ts=\d+\.\d+ gid=\d+ type=item_get key=k+\d+\.\d+ status=not_found /) {
            $other++;
            diag(show($line));
            last;
        }
        $lines++;
        $after += $follows;
        $follows = 0;
    }
    is($other, 0, 'nothing but whole lines');
    cmp_ok($skipped, '>', 0, 'skipped= comes in between');
    cmp_ok($after, '>', 0, 'and a regular line after it');
    put($s, "get last\r\n");
    is(read_line($s), "END\r\n", 'one more get');
    my $line = read_line($w);
    if ($line =~ /^skipped=(\d+)\n\z/) {
        $skipped += $1;
        $line = read_line($w);
    }
    like($line, qr/ type=item_get key=last /, 'is told');
    is($skipped, $st->{log_watcher_skipped}, 'all skipped lines are accounted for');

    # A watcher that leaves with lines waiting harms nobody.
    my $second = $server->connect;
    put($second, "watch fetchers\r\n");
    is(read_line($second), "OK\r\n", 'another watcher');
    put($s, join '', map { "get $key$_\r\n" } 1 .. 5000);
    close $second;
    is(read_bytes($s, 5 * 5000), "END\r\n" x 5000, 'leaves in the middle of it');
});

done_testing();
