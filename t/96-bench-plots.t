#!/usr/bin/env perl
# The plots of scripts/bench-qos: what is not valid is hollow, and no point of a curve.
use MCTest;

my $folder = "$TOP/scripts/bench";
my $file = scratch_dir() . '/plot.svg';

sub drawn($call) {
    my $run = run_program({command => ['python3', '-B', '-c', "import sys; sys.path.insert(0, sys.argv[1])\n"
                . "import svg, xml.dom.minidom\nsvg.$call\nxml.dom.minidom.parse(sys.argv[2])", $folder, $file]});
    is($run->{status}, 0, 'drawn, and well-formed') or diag($run->{err});
    return read_file($file);
}

my $svg = drawn('KINDS["curves"](sys.argv[2], "a < b", "x", "y", '
    . '{"ours": [(1, 10, True), (2, 20, True), (3, 5000, False)], "theirs": [(1, 30, True)]})');
my @curves = $svg =~ /<polyline points="([^"]*)"/g;
is("@{[map { scalar(() = /,/g) } @curves]}", '2 1', 'curves lead through what is valid');
is(scalar(() = $svg =~ /<circle [^>]*fill="white"/g), 1, '... other points are hollow');
like($svg, qr/hollow: INVALID/, '... which is said');
like($svg, qr/a &lt; b/, '... with a title');

$svg = drawn('KINDS["bars"](sys.argv[2], "t", "us", {"alone": {"ours": (54, True), "theirs": (57, True)}, '
    . '"beside": {"ours": (78, True), "theirs": (948184, False)}})');
is(scalar(() = $svg =~ /<rect x="275"/g), 4, 'bars: a row for each, a bar for each in it');
my %length = map { /width="([\d.]+)" .*\n.*>([\d,]+)(?: INVALID)?</ ? ($2, $1) : () } split /(?=<rect x)/, $svg;
my @by_length = sort { $length{$a} <=> $length{$b} } keys %length;
is("@by_length", '54 57 78 948,184', '... as long as their values are large');
is(scalar(() = $svg =~ /INVALID/g), 1, '... what is not valid says so');
is(scalar(() = $svg =~ /<rect x="275"[^>]*fill="white"/g), 1, '... and is hollow');
unlike(drawn('KINDS["curves"](sys.argv[2], "t", "x", "y", {"ours": [(1, 10, True)]})'), qr/INVALID/,
    'nothing is said where all is valid');

$svg = drawn('KINDS["bars"](sys.argv[2], "t", "%", {"cpu": {"rate": (0, True)}, '
    . '"l3": {"rate": (80, True)}, "mem": {"rate": (40, True)}}, "linear")');
is(join(' ', $svg =~ /<rect x="275"[^>]*width="([\d.]+)"/g), '0.0 255.0 127.5', 'bars on a linear scale begin at 0');
$svg = drawn('KINDS["curves"](sys.argv[2], "t", "x", "y", {str(i): [(1, 1, True)] for i in range(9)})');
is(scalar(() = $svg =~ /<polyline [^>]*stroke-dasharray/g), 1, 'more curves than colours are dashed');
$svg = drawn('KINDS["curves"](sys.argv[2], "t", "x", "y", {"ours": [(1, 10, True), (100, 40, True)]}, "log", "linear")');
like($svg, qr/<polyline points="70\.0,[\d.]+ 530\.0,[\d.]+"/, 'a logarithmic axis ends at powers of ten');
is(join(' ', $svg =~ /text-anchor="end" >([^<]+)</g), '0 10 20 30 40', '... a linear one has round marks from 0');
$svg = drawn('KINDS["grids"](sys.argv[2], "t", "x", "y", {"a": {(10, 10): (True, True), (10, 50): (False, True)}, '
    . '"b": {(10, 10): (True, False), (50, 50): (False, False)}})');
is(join(' ', $svg =~ /<rect x=[^>]*fill="(\S+)"/g), '#1b6ca8 #c8553d white white', 'grids: good, bad and invalid cells');

# A letter of that size is 6 pixels wide at least.
my ($label, $name) = ('gets of 100 KB on many connections, read into a buffer', 'a kernel with a patch: default');
my ($left, $width) = drawn(qq{KINDS["bars"](sys.argv[2], "t", "us", {"$label": {"$name": (1, True)}})})
    =~ /viewBox="(-?\d+) 0 (\d+) /;
cmp_ok(267 - 6 * length $label, '>=', $left, 'a long label is not cut');
cmp_ok(568 + 6 * length $name, '<=', $left + $width, '... nor a long name of the legend');
like(drawn('KINDS["bars"](sys.argv[2], "t", "us", {"alone": {"ours": (1, True)}})'), qr/viewBox="0 0 720 /,
    '... short ones take no room');

done_testing();
