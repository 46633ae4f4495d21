#!/usr/bin/env perl
# mcload allocates nothing for a request: a run that is three times as long makes as many
# allocations, with each protocol and each way of sending. t/preload/fail_alloc.c counts them.
use strict;
use warnings;
use FindBin;
use lib "$FindBin::Bin/lib";
use Test::More;
use MCLoad;
use MCTest;

my $library = ($ENV{TOP_BUILDDIR} // '.') . '/t/preload/fail_alloc.so';
my $control = scratch_dir() . '/control';
plan skip_all => 'no library to preload' if !-e $library;

# What the main thread may need for more looks at a longer run.
my $SLACK = 40;

# Allocations and requests of a run.
sub cost_of {
    my @args = @_;
    open my $fh, '>', $control or die "$control: $!";
    binmode $fh;
    syswrite $fh, pack 'q4', 0, 0, 0, 0;
    close $fh;
    local $ENV{LD_PRELOAD} = $library;
    local $ENV{FAIL_ALLOC} = $control;
    local $ENV{ASAN_OPTIONS} = join ':', grep { defined && $_ ne '' } $ENV{ASAN_OPTIONS},
        'verify_asan_link_order=0';
    my $run = mcload(@args);
    open $fh, '<', $control or die "$control: $!";
    binmode $fh;
    sysread $fh, my $bytes, 32;
    close $fh;
    my ($requests) = $run->{out} =~ /^Total QPS = \S+ \((\d+) /m;
    diag("@args: $run->{out}$run->{err}") if !$requests;
    return ((unpack 'q4', $bytes)[0], $requests // 0);
}

my $server = start_server();
my $at = '127.0.0.1:' . $server->port;
my @common = ('-s', $at, '-r', '200', '-c', '4', '--warmup=0', '--progress=none');
for my $load (
    ['-d', 1],
    ['-d', 16, '-u', '0.3', '--verify=1'],
    ['--protocol=meta', '--getcount=4'],
    ['--protocol=binary', '--ops=get:5,set:2,delete:1,touch:1,incr:1'],
    ['-q', 2000, '--arrivals=exponential'],
) {
    my ($short, $few) = cost_of(@common, @$load, '-t', '0.3');
    my ($long, $many) = cost_of(@common, @$load, '-t', '0.9');
    cmp_ok($short, '>', 0, "@$load: allocations are counted");
    cmp_ok($many, '>', $few + 10 * $SLACK, "@$load: three times as long, more requests");
    cmp_ok($long - $short, '<=', $SLACK, "@$load: and no more allocations");
}
$server->stop;
done_testing();
