#!/usr/bin/env perl
# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 the memcached-qos authors
#
# Traces replayed: what reaches the server is what was recorded, in its order, and when.
use MCTest;
use List::Util qw(sum);
use MCLoad;
use MCTestd;

my $dir = scratch_dir();

sub write_trace($name, @lines) {
    return write_file("$dir/$name", map {"$_\n"} @lines);
}

# It ran to the end of the trace; whether the machine was quiet enough is another matter.
# ---- what arrives -----------------------------------------------------------------------

# Counters have keys of their own.
my @VERBS = qw(get get set get gets add get delete get replace get append get prepend get incr
    get decr get cas get set);
my (@trace, %sent, %of_key);
for my $i (0 .. 1199) {
    my $verb = $VERBS[$i % @VERBS];
    my $key = ($verb =~ /cr$/ ? 'count:' : 'key:') . ($i * 7 % 40);
    push @trace, join ',', 1000 + int($i / 600), $key, length($key), 1 + $i % 9, $i % 13, $verb, 0;
    $sent{$verb}++;
    push @{$of_key{$key}}, $verb;
}
my $twitter = write_trace('twitter', @trace);

sub counts_of($server) {
    my $stats = mem_stats($server->connect);
    return {
        gets => $stats->{cmd_get},
        sets => $stats->{cmd_set},
        (map { $_ => $stats->{"${_}_hits"} + $stats->{"${_}_misses"} } qw(delete incr decr)),
    };
}

# A cas is a gets, and a cas of what it found: sets in the server's own count.
sub expect_counts($server, $json, $name) {
    my $found = $json->{'totals.ops.cas.done'};
    my %expected = (
        gets => $sent{get} + $sent{gets} + $sent{cas},
        sets => $found + sum(@sent{qw(set add replace append prepend)}),
        map { $_ => $sent{$_} } qw(delete incr decr),
    );
    is_deeply(counts_of($server), \%expected, "$name: what the server has counted");
    is($json->{"totals.ops.$_.done"}, $sent{$_}, "$name: $_") for grep { !/get|cas/ } keys %sent;
    is($json->{'totals.errors.' . $_} // 0, 0, "$name: no $_") for qw(client_error server_error);
}

for my $case (
    ['Twitter', "--trace=$twitter", '-T', 2, '-c', 3, '-d', 4],
    ['meta', "--trace=$twitter", '--trace-time=scaled:4', '--protocol=meta', '-c', 2],
    ['binary', "--trace=$twitter", '--trace-time=scaled:4', '--binary', '-c', 2, '-d', 2],
    ['at a rate', "--trace=$twitter", '-q', 2000, '-c', 4],
    ['as fast as can be', "--trace=$twitter", '--trace-time=rate', '-T', 2, '-c', 2, '-d', 3],
) {
    my ($name, @args) = @$case;
    my $server = serve();
    my $run = mcload_json('-s', $server->at, '-t', 250, @args);
    ran_ok($run, $name);
    expect_counts($server, $run->{json}, $name);
    cmp_ok($run->{json}{'totals.seconds'}, '<', 30, "$name: it ended with the trace");
}

{
    my @verbs = qw(get delete get touch get incr decr);
    my (@lines, %expected, %seen);
    for my $i (0 .. 999) {
        my ($verb, $key) = ($verbs[$i * $i % 11 % 7], 'key' . $i % 17);
        push @lines, "$i,$key,$verb";
        push @{$expected{$key}}, $verb;
    }
    my $ordered = write_trace('ordered', @lines);
    my $log = scratch_file('scribe');
    open my $out, '>', $log or die "$log: $!";
    my $port = fake_server(sub ($line, @) {
        my ($verb, $key) = split ' ', $line;
        syswrite $out, "$verb $key\n";
        return $verb eq 'get' ? "END\r\n" : "NOT_FOUND\r\n";
    });
    my $run = mcload_json('-s', "127.0.0.1:$port", '-t', 250, "--trace=$ordered",
        '--trace-format=csv:time_us,key,op', '--trace-time=scaled:0.002', '-T', 2, '-c', 3, '-d', 4);
    ran_ok($run, 'order');
    for (split /\n/, read_file($log)) {
        my ($verb, $key) = split;
        push @{$seen{$key}}, $verb;
    }
    is_deeply(\%seen, \%expected, 'each key sees its requests in their order');
}

# ---- when ---------------------------------------------------------------------------------

# Two groups with a pause between them.
my $pause = write_trace('pause', map({"$_,k$_,get,1"} 0 .. 9), map({(500 + $_) . ",k$_,get,1"} 0 .. 9));
for my $case (['original', 0.5], ['scaled:0.5', 1]) {
    my ($time, $gap) = @$case;
    my $testd = start_testd('--value=50');
    my $run = mcload_json('-s', "127.0.0.1:$testd->{port}", "--trace=$pause",
        '--trace-format=csv:time_ms,key,op,size', "--trace-time=$time", '-c', 2, '-t', 250, "--save=$dir/starts");
    ran_ok($run, $time);
    is(scalar @{stop_testd($testd)->{rows}}, 20, "$time: all have come");
    # When they were due: whoever had to wait for a CPU was late.
    my @due = sort { $a <=> $b } map { (split)[0] } split /\n/, read_file("$dir/starts");
    cmp_ok(abs($due[10] - $due[9] - 0.982 * $gap), '<', 0.004 * $gap, "$time: the pause is there");
    has($run, "$time: all were offered, an open loop", 'totals.offered' => 20, 'load.mode' => '"open"');
}

# Time ends before the trace.
{
    my $server = serve();
    my $long = write_trace('long', map {"$_,k,get,1"} 0 .. 600);
    my $run = mcload_json('-s', $server->at, "--trace=$long", '--trace-format=csv:time,key,op,size', '-t', 0.5);
    ran_ok($run, 'a long trace');
    cmp_ok($run->{json}{'totals.offered'}, '<=', 1, 'a long trace: what was due in half a second');
    is($run->{json}{'totals.seconds'}, 0.5, 'a long trace: -t is the time');
}

# The trace ends before anything is measured.
{
    my $server = serve();
    my $short = write_trace('short', map {"k$_,get,1"} 1 .. 3);
    my $run = mcload('-s', $server->at, "--trace=$short", '--trace-format=csv:key,op,size',
        '--trace-time=rate', '-q', 1000, '-w', 0.3, '-t', 250);
    has($run, 'a trace that the warm-up takes: status 3, it says so', status => 3, out => '',
        err => qr/^mcload: \Q$short\E: the trace ended within the warm-up, [^\n]*: shorten --warmup\n\z/);
}

# ---- servers ------------------------------------------------------------------------------

# One of two goes away: what it was to be asked is given up, all else is asked.
for my $args ([], ['-q', 4000]) {
    my $many = write_trace('many', map {"k$_,get,1"} 1 .. 2000);
    my ($gone, $stays) = (start_testd('--fault=refuse', '--from=30', '--value=10'),
        start_testd('--value=10'));
    my $run = mcload_json('-s', "127.0.0.1:$gone->{port}", '-s', "127.0.0.1:$stays->{port}", '--hash=jump',
        "--trace=$many", '--trace-format=csv:key,op,size', '--trace-time=rate', '-c', 2, '-t', 250, @$args);
    cmp_ok($run->{json}{'totals.seconds'}, '<', 30, "one gone: the trace comes to its end (@$args)");
    cmp_ok(scalar @{stop_testd($stays)->{rows}}, '>', 800, "one gone: the other is asked all (@$args)");
    stop_testd($gone);
    is($run->{json}{'totals.offered'}, 2000, 'one gone: all were offered') if @$args;
}

# ---- misses -------------------------------------------------------------------------------

# The trace says how long the value is: what it says nothing of is not stored.
{
    my $server = serve();
    my $gets = write_trace('gets', map({"a$_,get,$_"} 1 .. 50), map({"b$_,get,0"} 1 .. 50));
    my @args = ('-s', $server->at, "--trace=$gets", '--trace-format=csv:key,op,size',
        '--trace-time=rate', '-q', 500, '-t', 250);
    ran_ok(mcload_json(@args, '--on-miss=set'), 'misses');
    my $sock = $server->connect;
    is(mem_stats($sock)->{cmd_set}, 50, 'misses: those of known size are stored');
    mem_get_is($sock, 'a17', '00000000000000001', 'misses: a short value is a number of that length');
    is(mcload_json(@args)->{json}{'totals.hits'}, 50, 'misses: they are found then');
}

# ---- loading ------------------------------------------------------------------------------

# Each key that the trace asks for is there, once, as long as the trace says; nothing is missed.
{
    my (@lines, %len);
    for my $i (0 .. 2999) {
        my $k = $i * 3 % 700;
        $len{"key$k"} = 30 + $k;
        push @lines, "$i,key$k," . ($i % 5 ? 'get' : 'gets') . ',' . ($i < 700 && $k % 2 ? 0 : 30 + $k);
    }
    push @lines, '3000,nobody,get,0'; # its length is not told
    my $gets = write_trace('load', @lines);
    my @args = ("--trace=$gets", '--trace-format=csv:time_us,key,op,size', '--trace-load', '-t', 250);
    my $one = serve();
    my $run = mcload_json('-s', $one->at, @args, '-T', 2, '-c', 3, '-d', 4, '--trace-order=client');
    ran_ok($run, 'loaded');
    is($run->{json}{'totals.loaded'}, 700, 'loaded: the result says how many');
    is($run->{json}{'totals.ops.get.done'} + $run->{json}{'totals.ops.gets.done'}, 3001, 'loaded: all are sent');
    my $sock = $one->connect;
    my $stats = mem_stats($sock);
    is_deeply([@$stats{qw(cmd_set curr_items get_misses)}], [700, 700, 1],
        'loaded: each key is stored once, only what has no length is missed');
    my %found;
    for my $key (sort keys %len) {
        put($sock, "get $key\r\n");
        $found{$key} = read_line($sock) =~ /^VALUE \S+ 0 (\d+)/ ? $1 : 'none';
        read_bytes($sock, $found{$key} + 2 + 5);
    }
    is_deeply(\%found, \%len, 'loaded: with the lengths that the trace says');

    $run = mcload_json('-s', $one->at, @args, '--noload');
    is($run->{json}{'totals.loaded'}, 0, 'noload: nothing is stored');
    is(mem_stats($sock)->{cmd_set}, 700, 'noload: nor has the server seen it');

    for my $case (
        [[], 700, 700],
        [['-R'], 700, 700],
        [['-R', '-T', 1], 700, 700],
        [['--hash=jump'], 700],
        [['--trace-load=100'], 100, 100],
        [['--class=a:{threads=2}', '--class=b:{trace-time=scaled:2}'], 700, 700],
        [['--class=a:{threads=2}', '--class=b:{key-prefix=b:}'], 1400, 1400],
    ) {
        my ($more, @counts) = @$case;
        my @servers = (start_server(), start_server());
        $run = mcload((map { ('-s', $_->at) } @servers), @args, '-T', 3, '-c', 2, '--loadonly', @$more);
        is($run->{status}, 0, "loadonly @$more") or diag($run->{err});
        my @sets = map { mem_stats($_->connect)->{cmd_set} } @servers;
        is_deeply(@counts > 1 ? \@sets : [sum(@sets)], \@counts, "loadonly @$more: what each server has stored");
        like($run->{err}, qr/^mcload: ${\sum(@counts)} records stored$/m, "loadonly @$more: it says so");
        my $is_cut = $run->{err} =~ /^mcload: \Q$gets\E: only the first 100 keys are stored, there are more/m;
        is(!!$is_cut, "@$more" =~ /trace-load=/, "loadonly @$more: whether it says that there are more");
    }

    # A counter can be counted up.
    my $run_incr = mcload_json('-s', $one->at, '-t', 250, '--trace-load',
        '--trace=' . write_trace('counters', map {"1,c$_,3,4,1,incr,0"} 1 .. 20));
    is($run_incr->{json}{'totals.ops.incr.done'}, 20, 'counters: all are counted up');
    is(mem_stats($sock)->{incr_hits}, 20, 'counters: ... and found');
}

# One value is too large for the server, and nobody waits for what its thread was to store.
{
    my $small = serve('-I', '64k');
    my $large = write_trace('large', 'k,get,100000', map {"k$_,get,3"} 1 .. 200_000);
    my $run = mcload('-s', $small->at, "--trace=$large", '--trace-format=csv:key,op,size',
        '--trace-time=rate', '--trace-load', '-T', 2, '-t', 1);
    has($run, 'refused: status 2, says what', status => 2,
        err => qr/^mcload: loading: \S+ answered SERVER_ERROR object too large for cache instead of STORED\n\z/);
    my $bad = write_trace('badload', map({"k$_,get,3"} 1 .. 10), ',,');
    $run = mcload('-s', $small->at, "--trace=$bad", '--trace-format=csv:key,op,size', '--trace-time=rate',
        '--trace-load', '--loadonly');
    has($run, 'a bad line while loading: status 2, which', status => 2, err => qr/badload, line 11: /);
    my $bare = write_trace('bare', map {"k$_,get"} 1 .. 10);
    $run = mcload('-s', $small->at, "--trace=$bare", '--trace-format=csv:key,op', '--trace-time=rate',
        '--trace-load', '--loadonly');
    is($run->{err}, "mcload: $bare: nothing is stored: it tells no lengths of values (--trace-load)\n"
            . "mcload: 0 records stored\n", 'no lengths: it says so');
}

# ---- other forms ----------------------------------------------------------------------------

my $cachelib = write_trace('cachelib', 'op_time,key,key_size,op,op_count,size,cache_hits,ttl,usecase',
    map {"5,$_,30,GET,3,100,3,0,9"} 1 .. 50);
for my $case (
    ['binary', $twitter, "$dir/twitter.bin", 1200, 1200],
    ['zstd', $twitter, "$dir/twitter.zst", 1200, 1200],
    ['zstd again', "$dir/twitter.zst", "$dir/again.bin", 1200, 1200],
    ['cachelib', $cachelib, "$dir/cachelib.bin", 50, 150],
) {
    my ($name, $in, $out, $records, $requests) = @$case;
    next if !-e $in; # as zstd was not there to make it
    my $run = mcload('convert', 'trace', $in, $out);
    if ($run->{err} =~ /has no zstd/) {
        is($run->{status}, 2, "$name: not in this build");
        next;
    }
    has($run, "$name: converted, so many records", status => 0, err => "mcload: $records records\n");
    my $server = serve();
    $run = mcload_json('-s', $server->at, "--trace=$out", '-t', 250, '--trace-time=rate', '-q', 2000, '-c', 4);
    ran_ok($run, $name);
    is($run->{json}{'totals.offered'}, $requests + $run->{json}{'totals.ops.cas.done'}, "$name: all were offered");
    expect_counts($server, $run->{json}, $name) if $name ne 'cachelib';
}
SKIP: {
    skip 'zstd is not in this build', 1 if !-e "$dir/again.bin";
    is(read_file("$dir/again.bin"), read_file("$dir/twitter.bin"), 'there and back is the same');
}

# What has no times has none afterwards; times are as fine as the finest line.
{
    my $plain = write_trace('plain', map {"k$_,get"} 1 .. 5);
    my $converted = mcload('convert', '--trace-format=csv:key,op', 'trace', $plain, "$dir/plain.bin");
    is($converted->{status}, 0, 'no times: converted') or diag($converted->{err});
    my $run = mcload('-s', '127.0.0.1:1', "--trace=$dir/plain.bin");
    has($run, 'no times: none afterwards, it says so', status => 2, err => qr/it has no times/);
    my $fine = write_trace('fine', '1,a,1,1,1,get,0', '1.125,a,1,1,1,get,0', '1.25,a,1,1,1,get,0');
    mcload('convert', 'trace', $fine, "$dir/fine.bin");
    is(unpack('Q<', substr(read_file("$dir/fine.bin"), 16, 8)), 1000000, 'the finest times are kept');
    my $link = "$dir/null";
    symlink '/dev/null', $link or die "$link: $!";
    $run = mcload('convert', 'trace', write_trace('wrong', '1,a,1,1,1,get,0', 'x'), $link);
    ok(-l $link, 'a link is left alone when it fails');
}

# ---- what is wrong --------------------------------------------------------------------------

my $server = serve();
my @to = ('-s', $server->at, '-t', 250);
my $bad = write_trace('bad', @trace[0 .. 9], 'no request', @trace[10 .. 19]);
my $run = mcload(@to, "--trace=$bad");
has($run, 'a bad line: status 2', status => 2, err => qr/\Q$bad\E, line 11: fields are missing\n/);
my $empty = write_trace('empty');
$run = mcload(@to, "--trace=$empty");
has($run, 'an empty file: status 2, it says so', status => 2, err => "mcload: $empty: there is no request in it\n",
    out => '');
$run = mcload_json(@to, "--trace=$bad", '--trace-bad=skip', '--trace-time=scaled:4');
ran_ok($run, 'bad lines passed over');
like($run->{err}, qr/: 1 lines that make no sense were passed over/, 'bad lines passed over: it says so');
$run = mcload('convert', 'trace', $bad, "$dir/bad.bin");
has($run, 'converting a bad line: status 2, which', status => 2, err => qr/line 11/);
ok(!-e "$dir/bad.bin", 'converting a bad line: nothing is left');

my $unknown = write_trace('unknown', @trace[0 .. 9], '1000,k,1,1,1,lock,0', '1000,k,1,1,1,lock,0');
$run = mcload_json(@to, "--trace=$unknown", '--trace-time=scaled:4');
ran_ok($run, 'unknown verbs');
like($run->{err}, qr/: 2 requests were left out: unknown verb lock\n/, 'unknown verbs are counted by name');

if (-s "$dir/twitter.bin") {
    write_file("$dir/cut.bin", substr(read_file("$dir/twitter.bin"), 0, 700));
    $run = mcload(@to, "--trace=$dir/cut.bin", '--trace-time=scaled:4');
    has($run, 'a cut file: status 2, it says so', status => 2, err => qr/it is cut/);
}
for my $case (
    ["--trace=$dir/nowhere", 2, qr/nowhere: No such file/],
    ['--trace=/dev/null', 2, qr/not a plain file/],
    ["--trace=$twitter --trace-time=later", 1, qr/original, scaled:F or/],
    ["--trace=$twitter --trace-time=scaled:0", 1, qr/F above 0/],
    ["--trace=$twitter --trace-time=original -q 5", 1, qr/--qps needs --trace-time=rate/],
    ["--trace=$twitter --trace-format=csv:op", 1, qr/needs a column with the key/],
    ["--trace=$twitter --trace-format=xml", 1, qr/the format of a trace is/],
    ["--trace=$twitter --trace-remap=5", 1, qr/mod:N/],
    ["--trace=$twitter --trace-order=age", 1, qr/a key or a client/],
    ["--trace=$twitter --trace-spread=jam", 1, qr/spread exponential, uniform or none/],
    ["--trace=$twitter --update=0.5", 1, qr/--trace says what is asked for/],
    ["--trace=$twitter --think=1", 1, qr/--trace says when/],
    ["--trace=$twitter --verify=1", 1, qr/nothing to --verify/],
    ["--trace=$twitter --getq-freq=0.5", 1, qr/--trace says what is asked for/],
    ["--trace=$twitter --getq-freq=0", 1, qr/--trace says what is asked for/],
    ["--trace=$twitter --qps-warmup=1:5", 1, qr/--qps-warmup contradicts/],
    ["--trace=$twitter --transport=udp", 1, qr/a trace is not sent in datagrams/],
    ["--trace=$twitter --loadonly", 1, qr/--loadonly with a trace requires/],
    ["--trace=$twitter --search=99:1000", 1, qr/a rate needs --trace-time=rate/],
    ["--trace=$twitter --trace-load=0", 1, qr/the number of keys is between/],
    ["--trace=$twitter --trace-load=many", 1, qr/the number of keys is between/],
    ['--trace-load', 1, qr/needs a trace/],
    (map { [$_, 1, qr/needs a trace/] } '--trace-time=rate', '--trace-order=client', '--trace-spread=none', '--trace-bad=skip'),
    ["--trace=$twitter --trace-time=rate -q 5 --qps-warmup=1:5", 1, qr/--qps-warmup contradicts/],
) {
    my ($args, $status, $says) = @$case;
    $run = mcload(@to, split ' ', $args);
    is($run->{status}, $status, "$args: status $status");
    like($run->{err}, $says, "$args: says why");
}

done_testing;
