#!/usr/bin/env perl
# Each line of "stats qos", "pin", "classes" and "latency" is in doc/protocol.md, and what is there is
# told; the numbers are numbers.
use strict;
use warnings;
use FindBin;
use lib "$FindBin::Bin/lib";
use Test::More;
use MCTest;

if (!is_ours()) {
    plan skip_all => 'needs memcached-qos';
}

# By group, the first cells of its table: name => pattern.
sub documented {
    my (%patterns, $group);
    open my $fh, '<', "$FindBin::Bin/../doc/protocol.md" or die "protocol.md: $!";
    while (my $line = <$fh>) {
        $group = $line =~ /^### [\d.]+ stats (qos|pin|classes|latency)$/ ? $1 : undef if $line =~ /^#/;
        next if !$group || $group eq 'latency' && $line !~ /^\| latency_/ || $line !~ /^\| ([a-z][^|]*?) \|/ || $1 eq 'line' || $line =~ /^\| resctrl_/;
        $patterns{$group}{$_} = pattern_of($_) for names_of($1);
    }
    return \%patterns;
}

# "a_b_p50_us, _p95_us" are two names, the second with the beginning of the first.
sub names_of {
    my ($cell) = @_;
    my (@names, $full);
    for my $name (split /, /, $cell) {
        $name = "qps_*what*_CLASS" if $name =~ s/ and so on$//;
        if ($name eq '...') {
            $name = $full =~ s/_p50_us$/_*quantile*_us/r;
        } elsif ($name =~ /^_\w+_us$/) {
            $name = $full =~ s/_[^_]+_us$/$name/r;
        } elsif ($name =~ /^_/) {
            $name = ($full =~ /^(.*\*)/ ? $1 : $full =~ s/_[^_]*$//r) . $name;
        } else {
            $full = $name;
        }
        push @names, $name;
    }
    return @names;
}

sub pattern_of {
    my ($name) = @_;
    $name =~ s/\*\w+\*/\\w+/g;
    $name =~ s/_(?:CLASS|N)\b/_\\w+/;
    $name =~ s/_N_/_\\d+_/;
    return qr/\A$name\z/;
}

my $patterns = documented();
my $server = start_server(args => ['-t', '2', '--pin=none', '--balance', '--slo=p95:100s', '--qps-limit=10m']);
my $s = $server->connect;
exchange($s, "set a 0 0 1\r\n1\r\nget a\r\n", "STORED\r\nVALUE a 0 1\r\n1\r\nEND\r\n");
for my $group (qw(qos pin classes latency)) {
    my %stats = %{mem_stats($server->control, $group)};
    my %known = %{$patterns->{$group} // {}};
    %known = (%known, %{$patterns->{pin}}) if $group eq 'qos'; # "as in stats pin"
    my @unknown = grep { my $name = $_; !grep { $name =~ $_ } values %known } sort keys %stats;
    is("@unknown", '', "stats $group: each line is documented");
    my @missing = grep { my $name = $_; !grep { $_ =~ $patterns->{$group}{$name} } keys %stats }
        sort keys %{$patterns->{$group}};
    is("@missing", '', "stats $group: what is documented is there");
    my @odd = grep { /_(?:us|pct|count|served|turns)$/ && $stats{$_} !~ /\A\d+(?:\.\d+)?\z/ } sort keys %stats;
    is("@odd", '', "stats $group: numbers");
}

done_testing();
