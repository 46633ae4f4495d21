#!/usr/bin/env perl
# --class-memory: what is reserved for a class of requests survives a job that stores 100 times as
# much; a ceiling; whose an item is; the option, the command and the statistics.
use MCTest ':ours';

my ($WEB, $SCAN, $AT_ONCE) = (350, 35_000, 50); # keys of the working set, of the job; of a write
my $ROUNDS = 10;
my $LEN = 1000;
my $value = 'v' x $LEN;

sub classes_of($server) {
    return mem_stats($server->control, 'classes');
}

# How many of the working set are found. What is not is stored, as a cache's client does.
sub read_all($s) {
    my $hits = 0;
    for (my $i = 0; $i < $WEB; $i += $AT_ONCE) {
        my @keys = map { "web:$_" } $i .. $i + $AT_ONCE - 1;
        my %found = map { $_ => 1 } roundtrip($s, join '', map { "get $_\r\n" } @keys) =~ /^VALUE (\S+)/mg;
        $hits += keys %found;
        roundtrip($s, join '', map { "set $_ 0 0 $LEN noreply\r\n$value\r\n" } grep { !$found{$_} } @keys);
    }
    return $hits;
}

# The job stores keys and reads them back.
sub store_and_read($s, $from, $to) {
    for (my $i = $from; $i < $to; $i += $AT_ONCE) {
        my @keys = map { "scan:$_" } $i .. $i + $AT_ONCE - 1;
        roundtrip($s, join '', map({ "set $_ 0 0 $LEN noreply\r\n$value\r\n" } @keys), map { "get $_\r\n" } @keys);
    }
    return;
}

# The share of hits of the working set, which is read again and again, and between that a part of
# the job runs. The order is always the same.
sub hit_ratio($args, $say, $has_job) {
    my ($server) = serve('native', '-m', '2', '-t', '1', @$args);
    my ($web, $job) = map { $server->connect } 1 .. 2;
    exchange($job, "$say\r\n", "OK\r\n") if $say ne '';
    read_all($web);
    my $hits = 0;
    for my $round (1 .. $ROUNDS) {
        store_and_read($job, $SCAN * ($round - 1) / $ROUNDS, $SCAN * $round / $ROUNDS) if $has_job;
        $hits += read_all($web);
    }
    return ($hits / $ROUNDS / $WEB, classes_of($server));
}

my @RULES = ('--class-rule=key:web:=small', '--class-rule=key:scan:=background');
is((hit_ratio([@RULES], '', 0))[0], 1, 'a fifth of the memory holds the working set');
my ($without) = hit_ratio([@RULES], '', 1);
cmp_ok($without, '<', .5, "the other tenant drives it out: $without");
for my $row (['by prefixes', [@RULES, '--class-memory=small:25%'], '', 'small'],
    ['by connections', ['--class-memory=write:25%'], 'qos class background', 'write'],
    ['by the ceiling of the other', ['--class-memory=background:50%max'], 'qos class background', 'write'])
{
    my ($name, $args, $say, $class) = @$row;
    my ($with, $of) = hit_ratio($args, $say, 1);
    cmp_ok($with, '>=', .99, "$name it stays: $with");
    has($of, "... and is the class's", "class_${class}_memory_items" => $WEB,
        "class_${class}_memory_evictions" => 0, "class_${class}_memory_hits" => $ROUNDS * $WEB,
        class_background_memory_evictions => ['>', $SCAN * .9]);
}

# What is counted, and whose it is.
{
    my ($server, $s) = serve('native', '-t', '1', @RULES, '--class-rule=key:b:=bulk', '--class-memory=small:60%,background:10%max');
    my $of = classes_of($server);
    my $each = sub ($what) { join ' ', map { $of->{"class_${_}_memory_$what"} } qw(small write bulk background) };
    is($each->('items'), '0 0 0 0', 'nothing yet');
    ok(!exists $of->{class_control_memory_items}, 'control commands store nothing');
    exchanges($s,
        ["set web:a 0 0 1\r\n1\r\n", "STORED\r\n"], ["set scan:a 0 0 1\r\n1\r\n", "STORED\r\n"],
        ["set a 0 0 1\r\n1\r\n", "STORED\r\n"], ["ms b:a 1\r\n1\r\n", "HD\r\n"],
        ["set large 0 0 10000\r\n" . 'x' x 10000 . "\r\n", "STORED\r\n"],
        ["mg web:b N30 s\r\n", "HD s0 W\r\n"],
        ["ma scan:n N0 J5 v\r\n", "VA 1\r\n5\r\n"], ["get web:a scan:a\r\n", qr/\AVALUE web:a.*VALUE scan:a.*END\r\n\z/s],
        ["get a\r\n", "VALUE a 0 1\r\n1\r\nEND\r\n"], ["get nothing\r\n", "END\r\n"]);
    $of = classes_of($server);
    is($each->('items'), '2 1 2 2', 'by key, by size, by verb');
    cmp_ok($of->{class_small_memory_bytes}, '>', 80, 'bytes');
    is($of->{class_small_memory_bytes} + $of->{class_write_memory_bytes} + $of->{class_bulk_memory_bytes}
        + $of->{class_background_memory_bytes}, mem_stats($s)->{bytes}, '... add up');
    is($each->('hits'), '2 1 0 1', 'hits are those of what was found, or made');
    exchanges($s, ["qos class background\r\n", "OK\r\n"], ["set a 0 0 1\r\n2\r\n", "STORED\r\n"],
        ["append web:a 0 0 1\r\n2\r\n", "STORED\r\n"], ["touch web:a 0\r\n", "TOUCHED\r\n"], ["incr web:a 1\r\n", "13\r\n"]);
    $of = classes_of($server);
    is($each->('items'), '2 0 2 3', 'an overwriting set gives it to its own class, an appending one does not');
    is($each->('would_hit'), '0 0 0 0', 'and no memory is short');
    exchange($s, "flush_all\r\nget web:a a b:a\r\n", "OK\r\nEND\r\n");
}

# The item's class is known after a restart.
{
    my @args = ('-t', '1', '-m', '44', '-e', scratch_file('items'), @RULES, '--class-memory=small:60%');
    my ($server, $s) = serve('native', @args);
    exchange($s, "set web:a 0 0 1\r\n1\r\nset scan:a 0 0 1\r\n1\r\n", "STORED\r\n" x 2);
    $server->stop('USR1');
    ($server, $s) = serve('native', @args);
    has(classes_of($server), 'after a restart', class_small_memory_items => 1, class_background_memory_items => 1);
    exchange($s, "get web:a\r\n", "VALUE web:a 0 1\r\n1\r\nEND\r\n");
}

# The command.
{
    my ($server, $s) = serve('native');
    my $now = sub { mem_stats($s, 'qos')->{class_memory} };
    is($now->(), 'off', 'off by default');
    exchange($s, "qos class_memory background:10%max,small:60.5%\r\n", "OK\r\n");
    is($now->(), 'small:60.5%,background:10%max', 'told as the option would be');
    has(mem_stats($s, 'qos'), 'and by class', class_small_memory_pct => '60.5', class_write_memory_pct => '0.0',
        class_background_memory_pct => '10.0');
    exchanges($s, ["qos class_memory write:5%\r\n", "OK\r\n"],
        ["qos class_memory\r\n", "CLIENT_ERROR usage: qos class_memory <class:N%[max],...|off>\r\n"],
        ["qos class_memory small:60\r\n",
            "CLIENT_ERROR class-memory must be like small:60%,background:10%max, in percent from 0.1, or off\r\n"],
        ["qos class_memory small:60%,write:41%\r\n", "CLIENT_ERROR class-memory adds up to more than 100 percent\r\n"]);
    is($now->(), 'write:5%', 'what is refused changes nothing');
    exchange($s, "qos help class_memory\r\n", qr/\Aqos class_memory <class:N%\[max\],\.\.\.\|off>/);
    exchange($s, "qos class_memory off\r\n", "OK\r\n");
    is($now->(), 'off', 'off');
}
for my $profile ('1.4', '1.6') {
    my ($server, $s) = serve($profile);
    exchange($s, "qos class_memory small:60%\r\n", "CLIENT_ERROR class-memory needs --compat=native\r\n");
    exchange($s, "qos class_memory off\r\n", "OK\r\n");
}

# The option.
my $FORM = qr/class-memory must be like small:60%,background:10%max, in percent from 0\.1, or off/;
my $NAMES = qr/class-memory: the classes that store are small, write, bulk and background/;
for my $row (
    ['small', $FORM], ['', $FORM], ['small:', $FORM], ['small:60', $FORM], ['small:%', $FORM], ['small:x%', $FORM],
    ['small:0%', $FORM], ['small:0.04%', $FORM], ['small:101%', $FORM], ['small:-1%', $FORM], ['small:nan%', $FORM],
    ['small:10%min', $FORM], ['small:10%maxx', $FORM], ['small:10%,', $FORM], ['small=10%', $FORM], [':10%', $NAMES],
    ['large:10%', $NAMES], ['control:10%', $NAMES], ['Small:10%', $NAMES],
    ['small:10%,small:20%', qr/class-memory: one class is given twice/],
    ['small:60%,write:40.1%', qr/class-memory adds up to more than 100 percent/])
{
    my ($text, $error) = @$row;
    has(run_program("--class-memory=$text", '--check-config'), "'$text'", status => 64, err => $error, err_lines => 1);
}
for my $row (
    [['--compat=1.6'], qr/class-memory needs --compat=native/], [['--compat=1.4'], qr/class-memory needs --compat=native/],
    [['--classes=off'], qr/class-memory needs --classes=on/], [['-M'], qr/class-memory needs evictions: leave out -M/])
{
    my ($args, $error) = @$row;
    has(run_program('--class-memory=small:60%', @$args, '--check-config'), "@$args", status => 64, err => $error);
}
for my $text ('small:0.1%', 'small:100%', 'write:50%max,bulk:50%max', 'off') {
    has(run_program("--class-memory=$text", '--check-config', @AS_ROOT), $text, status => 0);
}
has(run_program('--compat=1.6', '--class-memory=off', '--check-config', @AS_ROOT), 'off in any profile', status => 0);

done_testing();
