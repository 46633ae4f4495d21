#!/usr/bin/env perl
# --hlog, HdrHistogram's log of intervals: taken apart here by what its format says, and
# compared with the JSON of the same run.
use MCTest;
use Compress::Zlib ();
use MIME::Base64;
use POSIX qw(ceil);
use MCLoad;
use MCSwarm;

my $dir = scratch_dir();
my $server = serve();
my $log = "$dir/run.hlog";
my @base = ('-s', $server->at, '-r', 500, '--hlog', $log);
my @at = (@base, '-t', 100, '--until=n:300');

my $probe = mcload(@at);
plan skip_all => 'built without zlib' if $probe->{err} =~ /no zlib/;

# Counts by bucket, of a histogram as text.
sub counts_of {
    my ($text) = @_;
    my ($cookie, $len, $packed) = unpack 'N N a*', decode_base64($text);
    is($cookie, 0x1c849314, 'histogram: its cookie') or return {};
    is(length $packed, $len, '... its length');
    my ($inner, $payload_len, $shift, $digits, $unit, $most, $ratio, $payload) =
        unpack 'N N N N Q> Q> d> a*', Compress::Zlib::uncompress($packed);
    is(sprintf('%x', $inner), '1c849313', '... the cookie within');
    is(length $payload, $payload_len, '... the length of its counts');
    is("$shift $digits $unit $ratio", '0 3 1 1', '... three digits from 1 on');
    my ($bucket, @bytes, %counts) = (0, unpack 'C*', $payload);
    while (@bytes) {
        my ($number, $bits) = (0, 0);
        while (1) {
            my $byte = shift @bytes;
            $number |= ($bits == 56 ? $byte : $byte & 0x7f) << $bits;
            $bits += 7;
            last if $byte < 0x80 || $bits == 63;
        }
        if ($number & 1) {
            $bucket += ($number + 1) >> 1;
        } else {
            $counts{$bucket} = $number >> 1 if $number;
            $bucket++;
        }
    }
    return \%counts;
}

# The middle of a bucket: 2048 of width 1, then 1024 for each power of two.
sub value_of {
    my ($bucket) = @_;
    return $bucket if $bucket < 2048;
    my $shift = int($bucket / 1024) - 1;
    return (1024 + $bucket % 1024 + 0.5) * 2**$shift;
}

sub total_of($counts) {
    my $sum = 0;
    $sum += $_ for values %$counts;
    return $sum;
}

sub quantile($counts, $share) {
    my $left = ceil($share * total_of($counts));
    for my $bucket (sort { $a <=> $b } keys %$counts) {
        $left -= $counts->{$bucket};
        return value_of($bucket) if $left <= 0;
    }
    return 0;
}

# All lines of a log, and the sum of counts for each tag ('': none).
sub read_log($name) {
    open my $fh, '<', $log or die "$log: $!";
    my @head = map { scalar <$fh> } 1 .. 5;
    like($head[0], qr/^#\[Logged with mcload [\d.]+\]$/, "$name: who logged");
    is($head[1], "#[Histogram log format version 1.3]\n", '... in which version');
    my ($start) = $head[2] =~ /^#\[StartTime: (\d+\.\d{3}) \(seconds since epoch\), \w.* UTC \d{4}\]$/;
    my ($base) = $head[3] =~ /^#\[BaseTime: (\d+\.\d{3}) \(seconds since epoch\)\]$/;
    ok(defined $start && defined $base && $start == $base, '... when');
    cmp_ok(abs(time - ($start // 0)), '<', 120, '... which is now');
    is($head[4], '"StartTimestamp","Interval_Length","Interval_Max",'
        . "\"Interval_Compressed_Histogram\"\n", '... names of columns');
    my (@rows, %sums);
    while (my $line = <$fh>) {
        my ($tag, $from, $length, $max, $text) =
            $line =~ /^(?:Tag=([^,]+),)?(\d+\.\d{3}),(\d+\.\d{3}),(\d+\.\d{3}),([A-Za-z0-9+\/=]+)$/;
        ok(defined $text, 'a line') or diag($line) or next;
        my $counts = counts_of($text);
        push @rows, {tag => $tag // '', from => $from, length => $length, counts => $counts};
        $sums{$tag // ''}{$_} += $counts->{$_} for keys %$counts;
        my ($top) = sort { $b <=> $a } keys %$counts;
        my $highest = defined $top ? value_of($top) / 1e6 : 0;
        cmp_ok(abs($max - $highest), '<=', $highest / 1000 + 0.001, '... its largest, ms');
    }
    return (\@rows, \%sums);
}

sub agrees($counts, $json, $of, $name) {
    is(total_of($counts), $json->{"$of.count"}, "$name: all answers are in it");
    # The shares are of others where some were not answered.
    return if $json->{"$of.censored"} > 0;
    for my $point (['p50', 0.5], ['p95', 0.95], ['p99', 0.99]) {
        my $there = $json->{"$of.pct.$point->[0]"};
        my $here = quantile($counts, $point->[1]);
        cmp_ok(abs($here - $there), '<=', 0.002 * $there + 1, "... $point->[0]");
    }
}

# ---- a run ------------------------------------------------------------------------------

my $run = mcload_json(@at, '-q', '2k', '-c', 4, '-u', 0.2, '--interval=0.25');
my ($rows, $sums) = read_log('a run');
is(join(' ', sort keys %$sums), '', 'one class has no tag');
agrees($sums->{''}, $run->{json}, 'latency.intended', 'a run');
cmp_ok(scalar @$rows, '>=', 1, 'it has intervals');
my $ends = 0;
my $in_a_row = 1;
for my $row (@$rows) {
    $in_a_row &&= abs($row->{from} - $ends) < 0.003;
    $ends = $row->{from} + $row->{length};
}
ok($in_a_row, '... one behind the other');
cmp_ok($ends, '>', $run->{json}{'totals.seconds'} - 0.003, '... to the end of the run');

# ---- classes ----------------------------------------------------------------------------

$run = mcload_json(@at, '--noload', '--interval=0.5', '--class=small:{--qps=500}',
    '--class=large:{--qps=300 --update=1}');
($rows, $sums) = read_log('classes');
is(join(' ', sort keys %$sums), 'large small', 'a class is a tag');
my %number;
$number{$_->{tag}}++ for @$rows;
is($number{small}, $number{large}, '... with a line each interval');
agrees($sums->{$_}, $run->{json}, "classes.$_.latency.intended", "class $_") for qw(small large);

# ---- several runs, and a swarm ----------------------------------------------------------

$run = mcload(@at, '--noload', '-q', 1000, '--repeat=2', '--interval=0.1');
($rows, $sums) = read_log('repeats');
cmp_ok(scalar @$rows, '>=', 2, 'two runs in one log');
cmp_ok($rows->[-1]{from}, '>=', 0.2, '... the second behind the first');

my $agent = start_agent('127.0.0.2');
$run = mcload_json(@base, '-t', 1, '--noload', '-a', $agent, '-q', 1000, '--interval=0.5');
($rows, $sums) = read_log('a swarm');
agrees($sums->{''} // {}, $run->{json}, 'latency.intended', 'a swarm');

# ---- refused ----------------------------------------------------------------------------

$run = mcload(@at, '--noload', '--hlog', "$dir/no/such");
is($run->{status}, 1, 'a log that cannot be written: usage');
like($run->{err}, qr/^mcload: cannot write \Q$dir\E\/no\/such/, '... and says so');

done_testing();
