#!/usr/bin/env perl
# Random commands, pipelined and cut at random, are answered as a small model of a store in
# this test answers them.
use MCTest;

my %store; # key => [flags, value, expires at (0: never), version]
my $now = 0;
my $version = 0;

sub live($key) {
    my $item = $store{$key};
    if ($item && $item->[2] && $item->[2] <= $now) {
        delete $store{$key};
        return undef;
    }
    return $item;
}

# (request, reply) of one random command
sub command {
    my $key = 'key' . int rand 12;
    my $item = live($key);
    my $noreply = rand() < 0.15 ? ' noreply' : '';
    my $say = sub { return $noreply ? '' : $_[0] };
    my $r = rand;
    if ($r < 0.25) {
        my @keys = map { 'key' . int rand 14 } 0 .. (rand() < 0.2 ? int rand 40 : int rand 4);
        my $reply = '';
        for my $k (@keys) {
            my $it = live($k) or next;
            $reply .= "VALUE $k $it->[0] " . length($it->[1]) . "\r\n$it->[1]\r\n";
        }
        return ('get ' . join(' ', @keys) . "\r\n", $reply . "END\r\n");
    }
    if ($r < 0.60) {
        my $verb = (qw(set set set add replace append prepend))[rand 7];
        my $flags = int rand 65536;
        my $exptime = (0, 0, 0, 1000, -1)[rand 5];
        my $value = rand() < 0.5 ? int rand 10 ** int rand 15
            : rand() < 0.9 ? 'v' x int rand 100 : join '', map { chr int rand 256 } 1 .. rand 30000;
        my $line = "$verb $key $flags $exptime " . length($value) . "$noreply\r\n$value\r\n";
        my $expires = $exptime < 0 ? -1 : $exptime ? $now + $exptime : 0;
        my $fresh = [$flags, $value, $expires, ++$version];
        if ($verb eq 'set' || ($verb eq 'add' && !$item) || ($verb eq 'replace' && $item)) {
            $store{$key} = $fresh;
            return ($line, $say->("STORED\r\n"));
        }
        return ($line, $say->("NOT_STORED\r\n")) if !$item || $verb eq 'add';
        $store{$key} = [$item->[0], $verb eq 'append' ? $item->[1] . $value : $value . $item->[1],
            $item->[2], ++$version];
        return ($line, $say->("STORED\r\n"));
    }
    if ($r < 0.75) {
        my $verb = rand() < 0.5 ? 'incr' : 'decr';
        my $delta = int rand 10 ** int rand 10;
        my $line = "$verb $key $delta$noreply\r\n";
        return ($line, $say->("NOT_FOUND\r\n")) if !$item;
        if ($item->[1] !~ /^(\d{1,15}) *$/) {
            if ($item->[1] =~ /^[\s\d]/) { # leave the corners of number parsing to other tests
                return ("touch $key 0\r\n", do { $item->[2] = 0; "TOUCHED\r\n" });
            }
            return ($line, $say->("CLIENT_ERROR cannot increment or decrement non-numeric value\r\n"));
        }
        my $number = $verb eq 'incr' ? $1 + $delta : $1 > $delta ? $1 - $delta : 0;
        my $len = length $item->[1];
        $item->[1] = length($number) <= $len ? sprintf('%-*s', $len, $number) : "$number";
        $item->[3] = ++$version;
        return ($line, $say->("$number\r\n"));
    }
    if ($r < 0.85) {
        delete $store{$key};
        return ("delete $key$noreply\r\n", $say->($item ? "DELETED\r\n" : "NOT_FOUND\r\n"));
    }
    if ($r < 0.90) {
        $item->[2] = $now + 1000 if $item;
        return ("touch $key 1000$noreply\r\n", $say->($item ? "TOUCHED\r\n" : "NOT_FOUND\r\n"));
    }
    if ($r < 0.94) {
        my $line = "gat 0 $key\r\n";
        return ($line, "END\r\n") if !$item;
        $item->[2] = 0;
        return ($line, "VALUE $key $item->[0] " . length($item->[1]) . "\r\n$item->[1]\r\nEND\r\n");
    }
    if ($r < 0.95) {
        %store = ();
        return ("flush_all$noreply\r\n", $say->("OK\r\n"));
    }
    return ("nonsense $key\r\n", "ERROR\r\n");
}

my $seed = $ENV{MCTEST_SEED} || 1;
each_profile(sub ($profile) {
    my $is_ref = $profile eq 'ref';
    my $server = serve($profile, '-m', '128');
    my @socks = map { $server->connect } 1 .. 3;
    srand $seed;
    %store = ();
    $now = 0;
    my $bad = 0;
    my $count = 0;
    for my $round (1 .. 1500) {
        my $s = $socks[rand @socks];
        if (!$is_ref && rand() < 0.03) {
            debugtime($server, 600);
            $now += 600;
        }
        my ($send, $want) = ('', '');
        for (0 .. (rand() < 0.3 ? int rand 60 : int rand 4)) {
            my ($request, $reply) = command();
            $send .= $request;
            $want .= $reply;
            $count++;
        }
        my $at = 0;
        while ($at < length $send) {
            my $n = rand() < 0.7 ? length $send : 1 + int rand 3000;
            put($s, substr $send, $at, $n);
            $at += $n;
        }
        my $got = roundtrip($s, '', undef);
        # roundtrip reads up to the reply of its own version command
        next if $got eq $want;
        my $i = 0;
        $i++ while $i < length $want && substr($got, $i, 1) eq substr($want, $i, 1);
        $bad = "round $round differs at byte $i of the reply";
        diag('    sent: ' . show($send));
        diag('    want: ' . show(substr $want, $i > 40 ? $i - 40 : 0));
        diag('    got:  ' . show(substr $got, $i > 40 ? $i - 40 : 0));
        last;
    }
    is($bad, 0, "$count random commands (seed $seed)");
    is(mem_stats($socks[0])->{curr_items} >= scalar(grep { live($_) } keys %store) ? 1 : 0, 1,
        "curr_items is not less than the model's");
});

done_testing();
