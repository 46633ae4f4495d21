#!/usr/bin/env perl
# Words of the command line, each by what it does: seen in what the server holds, in the
# report, or in the message that refuses it.
use strict;
use warnings;
use FindBin;
use lib "$FindBin::Bin/lib";
use Test::More;
use MCLoad;
use MCTest;

my $server = start_server();
my $at = '127.0.0.1:' . $server->port;
my $s = $server->connect;

sub first_line {
    my ($key) = @_;
    put($s, "get $key\r\n");
    my $line = read_line($s);
    while ($line =~ /^VALUE/ && read_line($s) ne "END\r\n") { }
    return $line;
}

# One line, and the status of a wrong command line.
sub refuses {
    my ($like, @args) = @_;
    my $run = mcload('-s', $at, '-r', '10', '-t', '0.1', @args);
    is($run->{status}, 1, "@args: refused");
    like($run->{err}, qr/\Amcload: [^\n]*$like[^\n]*\n\z/, '... in a line');
}

sub stores {
    my (@args) = @_;
    my $run = mcload('-s', $at, '--loadonly', @args);
    is($run->{status}, 0, "@args: stored") or diag($run->{err});
}

# ---- keys and values ---------------------------------------------------------------------

stores('-r', '300', '-K', '6', '--key-prefix=d', '--key-format=decimal', '--flags=0');
is(first_line('d00255'), "VALUE d00255 0 200\r\n", 'a decimal key');
stores('-r', '300', '-K', '6', '--key-prefix=h', '--key_format=hex', '--flags=4294967295');
is(first_line('h0012b'), "VALUE h0012b 4294967295 200\r\n", 'a hexadecimal key, and flags');
for my $protocol (qw(binary meta)) {
    stores('-r', '3', '-K', '6', '--key-prefix=f', "--protocol=$protocol", '--flags=77');
    is(first_line('f00002'), "VALUE f00002 77 200\r\n", "flags in the words of $protocol");
}
stores('-r', '66000', '-K', '6', '-V', '1', '--key-prefix=b', '--key-format=binary', '--binary');
my $run = mcload_json('-s', $at, '-r', '66000', '-K', '6', '-V', '1', '--key-prefix=b',
    '--key-format=binary', '--binary', '--noload', '--verify=1', '-t', '0.3');
is($run->{json}{'totals.misses'}, 0, 'keys of any byte are found');
is($run->{json}{'errors.wrong_value'}, 0, '... with their values');
refuses('binary', '--key-format=binary');
refuses('decimal, hex or binary', '--key-format=octal');
refuses('4294967295', '--flags=4294967296');

# ---- mcperf's multigets ------------------------------------------------------------------

# A share of the gets has so many keys: between one and all of them.
for my $case (['0', 1, 1], ['1', 10, 10], ['0.5', 2, 9]) {
    my ($share, $least, $most) = @$case;
    my $json = mcload_json('-s', $at, '-r', '50', '-t', '0.3', '--getq_size=10',
        "--getq_freq=$share")->{json};
    my $mean = $json->{'totals.keys'} / ($json->{'totals.gets'} || 1);
    ok($mean >= $least && $mean <= $most, "--getq_freq=$share: $mean keys a get");
}
my $json = mcload_json('-s', $at, '-r', '50', '-t', '0.3', '--getq-freq=1')->{json};
is($json->{'totals.keys'}, 100 * $json->{'totals.gets'}, '--getq-freq alone: 100 keys');
refuses('between 0 and 1', '--getq-freq=1.5');

# ---- times -------------------------------------------------------------------------------

# Numbers are seconds; units may say otherwise.
for my $args (['--time=300ms', '--timeout=1s', '--warmup=0.1s', '--warmup-drain=50ms',
        '--wait=10ms', '--interval=100ms'], ['-t', '0.3', '-w', '100000us', '-W', '0.01']) {
    $run = mcload_json('-s', $at, '-r', '50', @$args, '--schedule=const', '-q', '1000');
    is($run->{json}{'load.time'}, '0.3', "@$args: its time");
    is($run->{json}{'load.warmup'}, '0.1', '... and its warm-up');
}
refuses('above 0', $_) for '--time=0s', '--timeout=1x', '--timeout=';
refuses('0 or more', $_) for '--warmup=soon', '--wait=-1', '--warmup-drain=x';
refuses('0\.01', $_) for '--interval=1us', '--server-stats=s';

# ---- arrivals ----------------------------------------------------------------------------

for my $scope (qw(total agent thread connection)) {
    $run = mcload('-s', $at, '-r', '50', '-t', '0.3', '-q', '500', '-i', 'fixed',
        "--arrival-scope=$scope");
    like($run->{out}, qr/^Offered = /m, "--arrival-scope=$scope");
}
refuses('agent', '--arrival-scope=host');

done_testing();
