#!/usr/bin/env perl
# What colocation saves, by the model of scripts/lab tco: the paper's own figures, then others.
use JSON::PP;
use MCTest;

my $lab = "$TOP/scripts/lab";

sub tco(@args) { return run_program({command => ['python3', $lab, 'tco', @args]}) }

sub cases(@args) {
    my $run = tco('--json', @args);
    is($run->{status}, 0, "tco @args") or diag($run->{err});
    my $all = decode_json($run->{out});
    return wantarray ? @{$all->{cases}} : $all;
}

sub near($seen, $want, $by, $name) {
    ok(abs($seen - $want) <= $by, $name) or diag("$seen, not $want");
}

sub percents($key, @cases) {
    return join '/', map { sprintf '%.0f', 100 * $_->{$key} } @cases;
}

# ---- the paper: prices, table 2, its two scenarios ----------------------------------------

my $all = cases();
near($all->{server}{$_->[0]}, $_->[1], 0.01, "a server at $_->[0]: \$$_->[1]")
    for ['0', 3050.15], ['0.5', 3575.22], ['1', 4100.30];
my @cases = @{$all->{cases}};
my @published = (52, 29, 18, 11, 18);
near(100 * $cases[$_]{improvement}, $published[$_], 1, "at $cases[$_]{load}: $published[$_] %") for 0 .. 4;
is(percents('improvement', cases('--rows')), '52/29/18/10/17', "the means of the paper's rows");

my ($perl) = cases('--at', '10%:74.1%');
is($perl->{batch_servers}, 8892, '12,000 servers and perlbench: 8,892 for it alone');
my ($mean) = cases('--at', '0.1:0.754');
is($mean->{batch_servers}, 9048, 'the mean: 9,048');
is(percents('discount', $mean), 34, '... at a discount of 34 %');
my ($google) = cases('--at', '50%:30%');
near(100 * $google->{improvement}, 17.19, 0.005, 'half of the cluster idle, 3,600 servers of it used: 17.19 %');
is($google->{batch_servers}, 3600, '... which are 3,600');

# ---- other inputs -------------------------------------------------------------------------

my ($none) = cases('--at', '100%:0');
near($none->{improvement}, 0, 1e-9, 'no batch work beside a busy service: nothing is saved');
my ($free) = cases('--energy', '0', '--at', '0:1');
near($free->{improvement}, 1, 1e-9, 'energy for nothing: a second cluster costs as much again');
my ($one) = cases('--servers', '1', '--server', '0', '--static', '0', '--at', '50%:50%');
near($one->{improvement}, 0, 1e-9, 'power alone, all of it dynamic: no difference');
near((cases('--years', '6', '--server', '0', '--at', '0:0'))[0]{together},
    2 * (cases('--server', '0', '--at', '0:0'))[0]{together}, 1e-3, 'twice the years, twice the energy');

my $run = tco('--at', '10%:74.1%');
like($run->{out}, qr/^ +10% +74\.1% +12,000\+8,892 .* \+51\.0% +33\.8%$/m, 'as a table');

for my $case ([['--at', '10%'], 'is not LOAD:BATCH, such as 30%:47%'], [['--at', 'x:y'], 'is not LOAD:BATCH'],
    [['--at', '1.5:1'], 'is not from 0 to 1'], [['--at', 'nan:1'], 'is not from 0 to 1'],
    [['--servers', '0'], 'is not a number from 1'], [['--servers', '1' . '0' x 400], 'is not a number from 1'],
    [['--servers', '1e400'], 'is not a number from 1'], [['--watts', '1e308', '--years', '1e308'], 'cost more than a number can say'], [['--watts', '-1'], 'is not a number from 0'],
    [['--watts', 'inf'], 'is not a number from 0'], [['--static', '50'], 'is not from 0 to 1'],
    [['--at', '0:1', '--rows'], 'not allowed with argument'], [['--server', '0', '--energy', '0'], 'cost nothing']) {
    my $bad = tco(@{$case->[0]});
    is($bad->{status}, 2, "@{$case->[0]}: status 2");
    like($bad->{err}, qr/\Q$case->[1]/, '... with the reason');
    unlike($bad->{err}, qr/Traceback/, '... in a sentence');
}

done_testing();
