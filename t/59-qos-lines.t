#!/usr/bin/env perl
# Each line of "stats qos", "pin", "classes" and "latency" is in doc/protocol.md, and what is there is
# told; the numbers are numbers.
use MCTest ':ours';

# By group, the first cells of its table: name => pattern.
sub documented {
    my (%patterns, $group);
    for my $line (split /^/, read_file("$TOP/doc/protocol.md")) {
        $group = $line =~ /^### [\d.]+ stats (qos|pin|classes|latency)$/ ? $1 : undef if $line =~ /^#/;
        next if !$group || $group eq 'latency' && $line !~ /^\| latency_/ || $line !~ /^\| ([a-z][^|]*?) \|/ || $1 eq 'line' || $line =~ /^\| resctrl_/;
        $patterns{$group}{$_} = pattern_of($_) for names_of($1);
    }
    return \%patterns;
}

# "a_b_p50_us, _p95_us" are two names, the second with the beginning of the first.
sub names_of($cell) {
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

sub pattern_of($name) {
    $name =~ s/\*\w+\*/\\w+/g;
    $name =~ s/_(?:CLASS|N)\b/_\\w+/;
    $name =~ s/_N_/_\\d+_/;
    return qr/\A$name\z/;
}

# ---- qos, qos help -----------------------------------------------------------------------

# The usages in the order of doc/protocol.md.
sub usages {
    my ($block) = read_file("$TOP/doc/protocol.md") =~ /^### 1\.1 qos\n\n((?:    .*\n)+)/m;
    return map { s/^ +//r } split /\n/, $block;
}

sub lines_of($s, $command) {
    put($s, "$command\r\n");
    my @lines;
    while (1) {
        my $line = read_line($s) // die "$command: no END";
        last if $line eq "END\r\n";
        $line =~ s/\r\n\z// or fail("$command: line without its end");
        push @lines, $line;
    }
    return @lines;
}

each_profile(sub ($profile) {
    my ($server, $s) = serve($profile, '--qps-limit=2,bulk=1000,burst=7', '--qps-limit-peer=100',
        '--slo=p95:500us,bulk=p99.9:20ms', '--qps-limit-action=delay:50ms+error', '--cpu-limit=40%', '--balance');
    like($server->err, qr/^memcached: warning: --qps-limit=2 lets 16 requests through at once after a pause; burst=N behind it sets another number\n/, 'a burst above the limit is told at the start');
    my @help = lines_of($s, 'qos help');
    my @usages = usages();
    is_deeply([map { s/  .*//r } @help], \@usages, 'qos help: the usages of the document');
    like($_, qr/\Aqos \S.*  +[a-z][^.]+\z/, '... one has a meaning') for @help;
    my @now = ('limit 2 (burst 16), bulk 1000 (burst 7), peer 100 (burst 16), cpu 40%; action delay:50ms+error, unit cmd',
        'slo p95:500us, bulk p99.9:20000us', 'classes on; steer rr, sched default, balance on');
    is_deeply([lines_of($s, 'qos')], [@now, @help], 'qos: what is set now, and the same');
    for my $usage (@usages) {
        my ($word) = $usage =~ /^qos (\w+)/;
        is_deeply([lines_of($s, "qos help $word")], [grep { /^qos $word\b/ } @help], "qos help $word");
    }
    my $words = join '|', map { /^qos (\w+)/ } @usages;
    exchange($s, "$_\r\n", "CLIENT_ERROR usage: qos $words ...\r\n", "$_") for 'qos help fooble', 'qos fooble';
    exchange($s, "qos help show me\r\n", "CLIENT_ERROR usage: qos help [word]\r\n", 'two words');
    exchange($s, "qos $_\r\n", "OK\r\n", "qos $_") for 'qps_limit 9 3', 'qps_limit bulk off', 'peer off',
        'slo off', 'slo bulk off', 'action miss', 'unit key', 'dry_run on', 'cpu_limit off';
    is_deeply([(lines_of($s, 'qos'))[0, 1]], ['limit 9 (burst 3); action miss, unit key, dry run', 'slo off'],
        'qos: after changes');
    exchange($s, "qos qps_limit off\r\n", "OK\r\n", 'lifted');
    is((lines_of($s, 'qos'))[0], 'limit off; action miss, unit key, dry run', 'qos: without a limit');
});

my $patterns = documented();
my ($server, $s) = serve('-t', '2', '--pin=none', '--balance', '--slo=p95:100s', '--qps-limit=10m');
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
