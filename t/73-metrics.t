#!/usr/bin/env perl
# /metrics: each row of memcached/admin/metrics.def is what "stats" says of it, in both formats;
# names, types and histograms are as Prometheus and OpenMetrics want them.
use MCTest ':ours';

my $SRC = $ENV{TOP_SRCDIR} // '..';
my $OPENMETRICS = 'application/openmetrics-text';
my %SCALE = (ONE => 1, PERCENT => 0.01, MICROSECONDS => 1e-6, NANOSECONDS => 1e-9);
my $NUMBER = qr/-?\d+(?:\.\d+)?(?:e[-+]?\d+)?/;
my $LABELS = qr/\{(?:\w+="(?:[^"\\\n]|\\["\\n])*",?)+\}/;

sub fetch($path, $accept = undef) {
    my $s = IO::Socket::UNIX->new(Peer => $path) or die "connect: $!";
    $s->blocking(0);
    put($s, "GET /metrics HTTP/1.1\r\nHost: x\r\n" . ($accept ? "Accept: $accept\r\n" : '') . "\r\n");
    my ($all) = read_until_eof($s);
    return split /\r\n\r\n/, $all, 2;
}

# {series => value} of the text, and the series in their order.
sub series_of($text) {
    my (%value, @order);
    for my $line (grep { !/^#/ } split /\n/, $text) {
        my ($name, $value) = $line =~ /^(\w+(?:$LABELS)?) ($NUMBER)$/;
        if (!defined $name) {
            fail("a sample: $line");
            next;
        }
        fail("$name is there twice") if exists $value{$name};
        $value{$name} = $value;
        push @order, $name;
    }
    return (\%value, \@order);
}

# What is wrong with families: "# HELP", "# TYPE", samples of this family alone, in this order.
sub families_are_right($text, $is_openmetrics) {
    my ($family, $type, %seen, @wrong);
    for my $line (split /\n/, $text) {
        if ($line =~ /^# HELP (\w+) (\S.*)$/) {
            push @wrong, "$1 again" if $seen{$1}++;
            ($family, $type) = ($1, '');
        } elsif ($line =~ /^# TYPE (\w+) (\w+)$/) {
            push @wrong, "$1: type of another" if $1 ne $family;
            $type = $2;
            push @wrong, "$family: a counter's name" if $type eq 'counter' && ($family =~ /_total$/) == $is_openmetrics;
            push @wrong, "$family: not a counter's name" if $type ne 'counter' && $family =~ /_total$/;
        } elsif ($line =~ /^(\w+)/) {
            my %suffix = (counter => $is_openmetrics ? '_total' : '', gauge => '', histogram => '_(?:bucket|sum|count)');
            push @wrong, "$line in $family" if $1 !~ /^$family$suffix{$type}$/;
        } else {
            push @wrong, $line if !$is_openmetrics || $line ne '# EOF';
        }
    }
    return is(join("\n", @wrong), '', 'families, ' . ($is_openmetrics ? 'OpenMetrics' : 'text'));
}

sub histograms_are_right($value, $order) {
    my (%last, @wrong);
    for my $name (@$order) {
        if ($name =~ /^(\w+)_bucket\{(.*?),?le="(.*)"\}$/) {
            my ($of, $le) = ("$1\{$2}", $3 eq '+Inf' ? 9e99 : $3);
            my $before = $last{$of} // [0, -1];
            push @wrong, $name if $value->{$name} < $before->[0] || $le <= $before->[1];
            $last{$of} = [$value->{$name}, $le];
        }
    }
    for my $of (sort keys %last) {
        my ($name, $labels) = $of =~ /^(\w+)(\{.*\})$/;
        $labels = '' if $labels eq '{}';
        push @wrong, "$of: no +Inf" if $last{$of}[1] != 9e99;
        push @wrong, "$of: count" if $value->{"${name}_count$labels"} != $last{$of}[0];
        push @wrong, "$of: sum" if !defined $value->{"${name}_sum$labels"};
    }
    return is("@wrong", '', 'histograms: ' . keys %last);
}

my @rows;
for my $line (split /\n/, read_file("$SRC/memcached/admin/metrics.def")) {
    next if $line !~ /^(?:COUNTER|GAUGE)\(/;
    my @row = $line =~ /^(\w+)\("(.*?)", "(.*?)", "(.*?)", (NULL|".*?"), (NULL|".*?"), (\w+), "(.*)"\)$/;
    ok(@row == 8, 'a row') or diag($line);
    s/^"|"$//g for @row[4, 5];
    push @rows, \@row;
}
cmp_ok(scalar @rows, '>', 120, 'rows');

# Name, and series, of each line of the stats that is one of the row.
sub lines_of($row, $stats) {
    my (undef, $group, $line, $metric, $label, $more) = @$row;
    my ($head, $tail) = split /\*/, $line, -1;
    my %is_class = map { $_ => 1 } qw(control small write bulk background);
    my @found;
    for my $name (sort keys %{$stats->{$group}}) {
        my $value;
        if (defined $tail) {
            next if $name !~ /^\Q$head\E(.+)\Q$tail\E$/;
            $value = $1;
            next if $label eq 'class' ? !$is_class{$value} : $label ne 'scope' && $value =~ /\D/;
        } elsif ($name ne $line) {
            next;
        }
        my @labels = (defined $value ? qq($label="$value") : (), $more eq 'NULL' ? () : map { /(.*)=(.*)/; qq($1="$2") } split /,/, $more);
        push @found, [$name, $metric . (@labels ? '{' . join(',', @labels) . '}' : '')];
    }
    return @found;
}

sub number($row, $stats, $name) {
    my $value = $stats->{$row->[1]}{$name};
    return { yes => 1, on => 1, no => 0, off => 0 }->{$value} if $value =~ /^[a-z]+$/;
    $value =~ s/%$//;
    return $value * $SCALE{$row->[6]};
}

sub all_stats($s) {
    return {map { $_ => mem_stats($s, $_) } '', qw(settings items slabs classes qos pin)};
}

each_profile(sub ($profile) {
    my $path = scratch_dir() . "/metrics.$profile";
    my ($server, $s) = serve($profile, "--admin=unix:$path", '-t', '2', '--qps-limit=90k,bulk=5k', '--cpu-limit=500%',
        $profile eq '1.4' ? () : ('-o', 'temporary_ttl=10'));
    exchanges($s, ["set a 0 0 1\r\n1\r\nget a\r\nget b\r\ntouch a 0\r\ntouch b 0\r\nincr a 1\r\ndecr b 1\r\n",
            "STORED\r\nVALUE a 0 1\r\n1\r\nEND\r\nEND\r\nTOUCHED\r\nNOT_FOUND\r\n2\r\nNOT_FOUND\r\n"],
        ["set big 0 0 20000\r\n" . 'x' x 20000 . "\r\ncas a 0 0 1 1000000\r\n1\r\ncas no 0 0 1 1\r\n1\r\ndelete no\r\n",
            "STORED\r\nEXISTS\r\nNOT_FOUND\r\nNOT_FOUND\r\n"],
        ['get ' . join(' ', map { "key$_" } 1 .. 50) . "\r\n", "END\r\n"], ["delete big\r\n", "DELETED\r\n"], ["set grows 0 0 1\r\n1\r\n", "STORED\r\n"]);
    my ($unique) = roundtrip($s, "mg grows c\r\n") =~ /^HD c(\d+)/;
    exchange($s, "cas grows 0 0 5000 $unique\r\n" . 'x' x 5000 . "\r\n", "STORED\r\n", 'cas changes a slab class');

    my $before = all_stats($s);
    my ($head, $text) = fetch($path);
    my $after = all_stats($s);
    like($head, qr{^HTTP/1\.1 200 OK\r\n.*^Content-Type: text/plain; version=0\.0\.4; charset=utf-8\r$}ms, 'text by default');
    my ($value, $order) = series_of($text);
    families_are_right($text, 0);
    histograms_are_right($value, $order);
    is($value->{'memcached_version{version="' . $before->{''}{version} . '"}'}, 1, 'the version');
    is($value->{memcached_up}, 1, 'up');
    # No bound beyond what a histogram tells apart.
    my ($waits, $delays) = map { my $metric = $_; join ' ', grep { /^memcached_qos_${metric}_seconds_bucket\{.*le="17\.179869183"/ } keys %$value }
        qw(queue_delay limit_delay);
    is($waits, '', 'waits of 10 s and more are above all bounds');
    isnt($delays, '', '... those for a limit are known up to 100 s');

    # Counters between what "stats" says before and after; gauges where both say the same.
    my ($checked, @wrong) = (0);
    my %steady = map { $_ => 1 } qw(memcached_limit_bytes memcached_max_connections memcached_qos_reserved_connections);
    for my $row (grep { $SCALE{$_->[6]} } @rows) {
        for my $line (lines_of($row, $before)) {
            my ($name, $series) = @$line;
            my ($low, $is, $high) = (number($row, $before, $name), $value->{$series}, number($row, $after, $name));
            if (!defined $is) {
                push @wrong, "$series is missing";
            } elsif ($row->[0] eq 'COUNTER' ? $is < $low - 1e-9 || $is > $high + 1e-9
                : $steady{$row->[3]} && $is != $low) {
                push @wrong, "$series: $is, not $low to $high";
            }
            $checked++;
        }
    }
    is(join("\n", @wrong), '', 'they are what stats says');
    cmp_ok($checked, '>', 180, 'series compared');
    is($value->{'memcached_commands_total{command="set",status="hit"}'}, 3, 'sets without cas');
    my @sets = grep { $_ } map { /^memcached_slab_commands_total\{slab="\d+",command="set"/ ? $value->{$_} : () } @$order;
    is("@sets", '2 1', 'sets of slab classes, without cas');
    is($value->{'memcached_commands_total{command="cas",status="badval"}'}, 1, 'cas');
    is($value->{'memcached_qos_limit_requests_per_second{scope="bulk"}'}, 5000, 'the limit of a class');
    is($value->{memcached_qos_cpu_limit_ratio}, 5, 'the limit of CPU time, in CPUs');
    cmp_ok($value->{'memcached_qos_limit_tokens{scope="bulk"}'}, '<=', $value->{'memcached_qos_limit_burst_requests{scope="bulk"}'},
        'tokens');
    cmp_ok($value->{'memcached_qos_queue_delay_seconds_count{class="bulk"}'}, '>=', 1, 'a get of many keys was queued');

    ($head, my $open) = fetch($path, "$OPENMETRICS;version=1.0.0,text/plain;version=0.0.4;q=0.5");
    like($head, qr{^Content-Type: $OPENMETRICS; version=1\.0\.0; charset=utf-8\r$}m, 'OpenMetrics by Accept');
    like($open, qr/\n# EOF\n\z/, 'it ends in EOF');
    families_are_right($open, 1);
    my (undef, $again) = series_of($open);
    is("@$again", "@$order", 'the same series in the same order');
});

done_testing();
