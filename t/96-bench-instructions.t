#!/usr/bin/env perl
# scripts/bench-instructions: the table that it makes, of a few requests; what it counts does not depend
# on how busy the machine is.
use MCTest;

my $PATIENCE = 1000; # seconds, on a machine that is busy with much else
my $script = "$TOP/scripts/bench-instructions";

sub bench(@args) {
    return run_program({command => ['python3', $script, '--build', $ENV{TOP_BUILDDIR}, @args],
        timeout => $PATIENCE});
}

my $unknown = bench('--kinds', 'get,delete');
isnt($unknown->{status}, 0, 'an unknown kind');
like($unknown->{err}, qr/no such kind: delete$/m, '... is named');

my ($binary) = server_binary();
SKIP: {
    skip 'needs valgrind', 5 if system('valgrind --version >/dev/null 2>&1') != 0;
    skip 'of a sanitizer: valgrind cannot run it', 5 if `ldd $binary` =~ /lib[at]san/;
    my $file = scratch_dir() . '/md';
    my $run = bench('--servers', 'ours', '--kinds', 'get,set', '--requests', 100, '--markdown', $file);
    is($run->{status}, 0, 'gets and sets') or diag($run->{err});
    my %counted = $run->{out} =~ /^(\S.*?)  +([\d,]+)  +[\d,]+$/mg;
    is(join('/', sort keys %counted), 'get/set of 200 bytes', '... are counted');
    tr/,//d for values %counted;
    cmp_ok($counted{get}, '>', 100, '... with what a get takes');
    cmp_ok($counted{'set of 200 bytes'}, '>', $counted{get}, '... and a set, which takes more');
    like(read_file($file), qr/^<!-- bench-instructions: begin -->\n\n## Instructions.*^\| get +\| /ms,
        '... in a document');
}
done_testing();
