#!/usr/bin/env perl
# Chained values under memory pressure: each read gives the last stored value or nothing, and
# when all is deleted no chunk is left behind.
use MCTest;

sub used_chunks($s) {
    my $slabs = mem_stats($s, 'slabs');
    my $sum = 0;
    $sum += $slabs->{$_} for grep { /^\d+:used_chunks$/ } keys %$slabs;
    return $sum;
}

each_profile(sub ($profile) {
    my $is_ref = $profile eq 'ref';
    for my $case ([16, '2m', []], [32, '8m', []],
        [8, '1m', ['-o', 'slab_chunk_max=' . pick($profile, '1.4' => 16384, '1.6' => 16)]],
        [8, '1m', ['-M', '-o', 'slab_chunk_max=' . pick($profile, '1.4' => 65536, '1.6' => 64)]])
    {
        my ($memory, $max, $more) = @$case;
        next if $is_ref && @$more;
        my $what = "-m $memory -I $max @$more";
        my ($server, $s) = serve($profile, '-m', $memory, '-I', $max, @$more);
        my $limit = ($max =~ /(\d+)m/)[0] * 1048576;
        my %model;
        srand 11;
        my ($bad, $oom, $hits, $misses) = (0, 0, 0, 0);
        my @letters = ('a' .. 'z', 'A' .. 'Z');
        for my $round (1 .. 400) {
            my $key = 'k' . int rand 30;
            my $r = rand;
            my $size = rand() < 0.3 ? int rand 2000 : int rand(rand() < 0.5 ? 100_000 : $limit * 0.98);
            my $value = ($letters[rand @letters] . sprintf '%03d', $round) x ($size / 4 + 1);
            $value = substr $value, 0, $size;
            if ($r < 0.5) {
                my $got = roundtrip($s, "set $key 0 0 $size\r\n$value\r\n");
                if ($got eq "STORED\r\n") {
                    $model{$key} = $value;
                } else {
                    $oom++ if $got =~ /^SERVER_ERROR [Oo]ut of memory/;
                    $bad = "set of $size bytes: " . show($got)
                        if $got !~ /^SERVER_ERROR [Oo]ut of memory [\w ]+\r\n\z/;
                    delete $model{$key};
                }
            } elsif ($r < 0.65) {
                my $verb = rand() < 0.5 ? 'append' : 'prepend';
                my $piece = substr $value, 0, 50_000;
                my $n = length $piece;
                my $got = roundtrip($s, "$verb $key 0 0 $n\r\n$piece\r\n");
                if ($got eq "STORED\r\n") {
                    $model{$key} = $verb eq 'append' ? ($model{$key} // '') . $piece
                        : $piece . ($model{$key} // '');
                } elsif ($got !~ /^(NOT_STORED|SERVER_ERROR out of memory storing object)\r\n\z/i) {
                    $bad = "$verb: " . show($got);
                }
            } elsif ($r < 0.72) {
                my $got = roundtrip($s, "delete $key\r\n");
                $bad = "delete: " . show($got) if $got !~ /^(DELETED|NOT_FOUND)\r\n\z/;
                delete $model{$key};
            } else {
                my $got = roundtrip($s, "get $key\r\n");
                if ($got eq "END\r\n") {
                    $misses++;
                    delete $model{$key};
                } else {
                    $hits++;
                    my $want = $model{$key} // '(deleted)';
                    my $n = length $want;
                    $bad = "round $round: get $key is wrong: " . show($got)
                        if $got ne "VALUE $key 0 $n\r\n$want\r\nEND\r\n";
                }
            }
            last if $bad;
        }
        is($bad, 0, "$what: $hits hits are right, $misses misses, $oom refused");
        roundtrip($s, "delete k$_\r\n") for 0 .. 29;
        has(mem_stats($s), "$what: all deleted, no bytes", curr_items => 0, bytes => 0);
        is(used_chunks($s), 0, "$what: no chunk is left in use");

        # a client that leaves in the middle of a large value
        my $count = 0;
        for my $n (1 .. 30) {
            my $c = $server->connect;
            my $len = int($limit * 0.9);
            put($c, "set half 0 0 $len\r\n" . ('h' x ($len * $n / 31)));
            close $c;
            $count++;
        }
        soon { used_chunks($s) == 0 } "$what: nor by $count clients that left while sending"
            or diag(used_chunks($s));
        exchange($s, "set after 0 0 5\r\nafter\r\nget after\r\n",
            "STORED\r\nVALUE after 0 5\r\nafter\r\nEND\r\n", "$what: still serving");
    }
});

done_testing();
