#!/usr/bin/env perl
# scripts/bench-hits: where all fits, a server has exactly the hits of a cache without bounds; its
# tables; what it says of words that it does not know. Policies have t/unit/check_hits.c.
use JSON::PP;
use MCTest;

my $PATIENCE = 1000; # seconds, on a machine that is busy with much else
my $script = "$TOP/scripts/bench-hits";
my $dir = scratch_dir();

sub bench(@args) {
    return run_program({command => ['python3', $script, '--build', $ENV{TOP_BUILDDIR}, @args],
        timeout => $PATIENCE});
}

my @servers = ('memcached-qos', '--compat=1.6', grep { $_ eq 'Redis' && -x '/usr/bin/redis-server' } 'Redis');
my $run = bench('--scale', '0.005', '--recordings', 'etc,twitter:23,scan,shift', '--megabytes', 100,
    '--servers', join(',', @servers), '--policies', 'lru;belady', '--json', "$dir/json", '--markdown', "$dir/md");
is($run->{status}, 0, 'four recordings') or diag($run->{err});
for my $result (@{decode_json(read_file("$dir/json"))->{results}}) {
    my ($lru, $belady, @scores) = @{$result->{scores}}{'lru', 'belady', @servers};
    my $of = join '/', @{$lru}{qw(gets hits bytes hit_bytes)};
    isnt($lru->{hits}, 0, "$result->{recording}: some hit");
    for my $i (0 .. $#servers) {
        is(join('/', @{$scores[$i]}{qw(gets hits bytes hit_bytes)}), $of, "... as many of $servers[$i]");
        is($scores[$i]{refused}, 0, '... and nothing is refused');
    }
    is($belady->{hits}, $lru->{hits}, '... by any policy');
}
like($run->{out}, qr/^etc +100 +(0\.\d{3}) +\1 /m, 'a table of ratios');
like(read_file("$dir/md"), qr/^<!-- bench-hits: begin -->\n\n## Hit ratio.*^\| etc +\| +100 \|.*<!-- bench-hits: end -->$/ms,
    '... in a document');

$run = bench('--scale', '0.05', '--recordings', 'zipf-1.0', '--servers', 'none', '--json', "$dir/json");
is($run->{status}, 0, 'simulated only') or diag($run->{err});
my $scores = decode_json(read_file("$dir/json"))->{results}[0]{scores};
my @policies = sort { $scores->{$a}{hits} <=> $scores->{$b}{hits} } keys %$scores;
is("@policies[0, -1]", 'LRU Belady', 'LRU is the least, Belady the most');
is(scalar(@policies), 7, '... of seven');

# What a file has stays there when a run goes on, also of recordings that are not wanted, or come later.
my @again = ('--resume', '--scale', '0.05', '--servers', 'none', '--json', "$dir/json");
my $had = decode_json(read_file("$dir/json"));
write_file("$dir/json", encode_json({%$had, results => [map { {%{$had->{results}[0]}, recording => $_} } 'zipf-1.0', 'scan']}));
$run = bench(@again, '--recordings', 'loop,zipf-1.0');
is($run->{status}, 0, 'a run that goes on') or diag($run->{err});
is(join(' ', sort map { $_->{recording} } @{decode_json(read_file("$dir/json"))->{results}}), 'loop scan zipf-1.0', '... drops nothing');

for my $case (
    [['--recordings', 'nothing'], qr/there is no recording 'nothing'/],
    [['--recordings', 'etc', '--servers', 'Varnish'], qr/no such server: Varnish; there are memcached-qos,/],
    [['--recordings', 'etc', '--scale', '0.01', '--servers', 'none', '--policies', 'fifo'],
        qr/there is no policy 'fifo'/]) {
    my $refused = bench(@{$case->[0]});
    isnt($refused->{status}, 0, "@{$case->[0]}: refused");
    like($refused->{err}, $case->[1], '... with a sentence');
}
done_testing();
