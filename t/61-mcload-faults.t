#!/usr/bin/env perl
# mcload counts every kind of wrong answer and of silence as what it is, never as a hit, and
# calls the run invalid. The servers here are scripts that misbehave.
use MCTest;
use IO::Socket::INET;
use MCLoad;

my $dir = scratch_dir();

sub key_of($line) {
    return (split ' ', $line)[1];
}

sub hit($key) {
    return "VALUE $key 0 3\r\nabc\r\nEND\r\n";
}

# Runs mcload without loading against a script; gives its output and numbers of its JSON.
sub attack($code, @args) {
    my $file = "$dir/run.json";
    my $port = fake_server($code);
    my @briefly = grep({ $_ eq '-t' } @args) ? () : @BRIEFLY;
    my $run = mcload('-s', "127.0.0.1:$port", '--noload', '-r', '100', '--json', $file, @briefly, @args);
    ok(json_of($file), 'the JSON is valid') or diag($run->{err});
    $run->{json} = do { local (@ARGV, $/) = $file; <> };
    return $run;
}

sub number($run, $name) {
    my ($value) = $run->{json} =~ /"\Q$name\E":\s*(-?[\d.e+]+|null|true|false)/;
    return defined $value ? $value : 'missing';
}

sub is_invalid($run, $why, $name) {
    has($run, "$name: status 3, the verdict says why", status => 3, out => qr/^INVALID: .*$why/m);
}

# ---- error replies -----------------------------------------------------------------------

for my $reply ('ERROR', 'CLIENT_ERROR bad command line format', 'SERVER_ERROR out of memory') {
    my ($kind) = map { lc } $reply =~ /^(\w+)/;
    # Every third request is answered so.
    my $run = attack(sub { $_[2] % 3 ? hit(key_of($_[0])) : "$reply\r\n" }, '-c', '2');
    is_invalid($run, 'errors', $kind);
    cmp_ok(number($run, $kind), '>', 0, "$kind: counted as such");
    is(number($run, 'hits'), number($run, 'gets'), "$kind: not counted as hits");
    like($run->{out}, qr/^Errors = \d+ \($kind \d+\)$/m, "$kind: named in the report");
    is(number($run, 'disconnect'), 0, "$kind: the connection goes on");
    like($run->{err}, qr/\Amcload: first error: 127\.0\.0\.1:\d+ answered \Q$reply\E\n\z/, "$kind: the first one is quoted, once");
}

my $run = attack(sub { "STORED\r\n" });
is_invalid($run, 'errors', 'STORED to a get');
cmp_ok(number($run, 'unexpected'), '>', 0, 'STORED to a get: unexpected');
like($run->{err}, qr/^mcload: first error: \S+ answered STORED$/m, 'STORED to a get: quoted');
is(number($run, 'hits'), 0, 'STORED to a get: no hit');

# ---- replies that are none ---------------------------------------------------------------

for my $row (
    ['garbage', sub { "what?\r\n" }],
    ['another key', sub { hit('0' x 29 . 'x') }],
    ['two values for one key', sub { "VALUE " . key_of($_[0]) . " 0 1\r\na\r\n" . hit(key_of($_[0])) }],
    ['a value longer than said', sub { "VALUE " . key_of($_[0]) . " 0 3\r\nabcd\r\nEND\r\n" }],
    ['two replies', sub { hit(key_of($_[0])) . "END\r\n" }],
    ['a bare line feed', sub { "END\n" }],
) {
    my ($name, $code) = @$row;
    $run = attack($code);
    is_invalid($run, 'errors', $name);
    cmp_ok(number($run, 'desync'), '>', 0, "$name: out of step");
}

# ---- connections lost --------------------------------------------------------------------

$run = attack(sub { $_[2] % 5 ? hit(key_of($_[0])) : undef }, '-c', '2', '-d', '2');
is_invalid($run, 'errors', 'disconnects');
cmp_ok(number($run, 'disconnect'), '>', 1, 'disconnects: counted, and connected again');
cmp_ok(number($run, 'lost'), '>=', number($run, 'disconnect'), 'disconnects: requests lost');
cmp_ok(number($run, 'hits'), '>', 0, 'disconnects: the rest is served');

$run = attack(sub { "VALUE " . key_of($_[0]) . " 0 100\r\nabc" }, '--timeout=0.1', '--until=n:3');
is_invalid($run, 'no request was answered', 'half a reply');
cmp_ok(number($run, 'timeout'), '>', 0, 'half a reply: given up in time');
is(number($run, 'gets'), 0, 'half a reply: no get was answered');

# ---- silence -----------------------------------------------------------------------------

# All are censored: the table says "above", the JSON null, and no parser chokes.
$run = attack(sub { '' }, '-q', '200', '-c', '2', '-t', '0.4', "--plot=$dir/plot");
is_invalid($run, 'no request was answered', 'silence');
like($run->{err}, qr{^mcload: no plot in \Q$dir\E/plot/cdf\.svg: a run has no latencies: all requests$}m, 'silence: nothing to be drawn');
ok(!-e "$dir/plot/cdf.svg", 'silence: ... and no file without anything in it');
cmp_ok(number($run, 'unanswered'), '<=', 2, 'silence: two on their way');
is(number($run, 'unanswered') + number($run, 'unsent'), number($run, 'offered'), 'silence: the others never sent');
like($run->{out}, qr/^read +0\.0 +0\.0 +0\.0 +>\d+\.\d/m, 'silence: percentiles are bounds');
like($run->{json}, qr/"p50":\s*null/, 'silence: null in the JSON');
my ($row) = $run->{out} =~ /read([\s\d\.]*)/;
is(scalar(split ' ', $row), 3, 'silence: parsers get the numbers before the bounds');

$run = attack(sub { '' }, '-t', '0.3', '--search=p99:1ms');
is_invalid($run, 'no request was answered', 'silence, a search');
like($run->{out}, qr/^The search found no rate with p99 <= 1000 us: no request was answered in a closed loop \(1 runs in /m,
    'silence, a search: there was no rate to be tried');

# The first hundred are answered: low percentiles are numbers, high ones bounds.
$run = attack(sub { $_[2] <= 100 ? hit(key_of($_[0])) : '' }, '-q', '300', '-c', '4', '-t', '100',
    '--until=n:100');
has($run, 'late silence: first numbers, then bounds, the same in the JSON',
    out => qr/^read +[\d.]+ +[\d.]+ +[\d.]+ +[\d.]+ .*>[\d.]+$/m, json => qr/"p1":\s*\d+.*?"p99":\s*null/s);
cmp_ok(number($run, 'achieved'), '<=', 100, 'late silence: no answers but those that came');

# ---- a stall -----------------------------------------------------------------------------

# The server does nothing for 0.4 s. All requests that should have started then have waited,
# though only the one on its way noticed: the latency from the intended start shows it. The run goes on
# until they are answered.
$run = attack(sub { select undef, undef, undef, 0.4 if $_[2] == 50; hit(key_of($_[0])) },
    '-q', '500', '-i', 'fixed', '-t', '100', '--until=n:300', '-T', '1', '-c', '1');
is(number($run, 'offered'), number($run, 'sent') + number($run, 'unsent'), 'a stall: no request is left out');
my ($intended, $issue) = $run->{json} =~ /"mean":\s*([\d.e+]+)/g;
cmp_ok($intended, '>', 50e6, 'a stall: it is in the latency from the intended start');
cmp_ok($intended, '>', 2 * $issue, 'a stall: from issue it can hardly be seen');

# ---- whole replies in small pieces -------------------------------------------------------

# A server that never sends more than one byte at a time is slow, not wrong.
{
    my $listener = IO::Socket::INET->new(LocalAddr => '127.0.0.1', Listen => 4, Proto => 'tcp')
        or die "listen: $!";
    my $pid = in_child(sub {
        $SIG{PIPE} = 'IGNORE';
        while (my $client = $listener->accept) {
            $client->sockopt(Socket::TCP_NODELAY(), 1);
            setsockopt $client, Socket::IPPROTO_TCP(), Socket::TCP_NODELAY(), 1;
            while (my $line = <$client>) {
                syswrite $client, $_ for split //, hit(key_of($line));
            }
        }
    });
    my $out = run_program({command => [$MCLOAD, '-v', '-s', '127.0.0.1:' . $listener->sockport,
        '--noload', '-r', '100', @BRIEFLY, '--getcount=1'], timeout => 120});
    has($out, 'single bytes: no errors, all hits', out => qr/^Errors = 0$/m, out => qr/^Misses = 0 /m);
}

# ---- connections that nobody serves ------------------------------------------------------

{
    # More than the server admits: they wait to be accepted, and no byte comes.
    my $full = serve('-c', '20', '-t', '1', '-o', 'no_maxconns_fast');
    my @many = ('-s', $full->at, '-c', '40', '--timeout=60');
    my $loaded = mcload('-s', $full->at, '-r', '100', '--loadonly');
    is($loaded->{status}, 0, 'records are stored') or diag($loaded->{err});
    # As many as it takes for each connection to be asked.
    for my $args (['--until=n:50'], ['-q', '2000', '--until=n:500']) {
        my $file = "$dir/full.json";
        $run = mcload(@many, '--noload', '-r', '100', '-t', '100', '--json', $file, @$args);
        $run->{json} = do { local (@ARGV, $/) = $file; <> };
        is_invalid($run, '\\d+ connections had no answer', "unserved @$args");
        my $unserved = number($run, 'unserved');
        ok($unserved > 19 && $unserved < 40, "unserved @$args: $unserved of 40");
        like($run->{out}, qr/^Connections without any answer = $unserved of 40 opened/m,
            "unserved @$args: told");
    }
    # Given up when nothing comes in time, they are no better served.
    $run = mcload_json('-s', $full->at, '-c', '40', '--noload', '-r', '100', @BRIEFLY, '--timeout=0.8');
    my $in_vain = $run->{json}{'totals.unserved'} // 0;
    ok($in_vain > 0 && $in_vain < 40, "unserved, and given up: $in_vain of 40") or diag($run->{out});
    $run = mcload(@many, '--noload', '-r', '100', '-t', '0.6', '--check=unserved_connections:off');
    unlike($run->{out}, qr/^INVALID: .*had no answer/m, 'unserved: a check like others');
    has(mcload(@many, '--timeout=1', '-r', '4000'), 'unserved while loading: status 2, told', status => 2,
        err => qr/no answer in time, \d+ records left: none at all on \d+ of 40 connections$/m);
}

# What was served, was lost, and waits in vain for an answer at the end has been served.
sub serves_once {
    my $listener = IO::Socket::INET->new(LocalAddr => '127.0.0.1', Listen => 4, Proto => 'tcp')
        or die "listen: $!";
    my $pid = in_child(sub {
        my @silent;
        alarm 120; # whatever becomes of the test
        my $first = $listener->accept;
        syswrite $first, hit(key_of(scalar <$first>));
        close $first;
        while (my $client = $listener->accept) {
            push @silent, $client;
            scalar <$client>;
            write_file("$dir/asked");
        }
    });
    return '127.0.0.1:' . $listener->sockport;
}

{
    my $at = serves_once();
    my $pid = in_child(sub {
        open STDOUT, '>', '/dev/null';
        open STDERR, '>', '/dev/null';
        exec $MCLOAD, '-s', $at, '--noload', '-r', 100, '-t', 100, '-c', 1, '--timeout=60', '--json', "$dir/once";
    });
    soon { -e "$dir/asked" } 'served and lost: it asks again';
    kill 'INT', $pid;
    waitpid $pid, 0;
    my $json = json_of("$dir/once");
    is($json->{'totals.unanswered'} // -1, 1, '... and another one waits at the end');
    is($json->{'totals.unserved'} // -1, 0, '... it was served');
}

# ---- several runs ------------------------------------------------------------------------

# A server for one connection, which answers so many requests; whoever else comes is refused.
sub serves_one($requests) {
    my $listener = IO::Socket::INET->new(LocalAddr => '127.0.0.1', Listen => 4, Proto => 'tcp')
        or die "listen: $!";
    my $at = '127.0.0.1:' . $listener->sockport;
    in_child(sub {
        alarm 120; # whatever becomes of the test
        my $client = $listener->accept;
        close $listener;
        while ($requests-- > 0 && defined(my $line = <$client>)) {
            syswrite $client, hit(key_of($line));
        }
    });
    close $listener;
    return $at;
}

# The second run has a connection of its own.
$run = mcload_json('-s', serves_one(1e9), '--noload', '-r', 100, @BRIEFLY, '--repeat=3');
has($run, 'gone between two runs: status 2, the first is reported', status => 2, err => qr/^mcload: cannot connect to /m,
    out => qr/^Repeats = 1: QPS .*\nINVALID: [12] of 2 runs\n\z/m, runs => qr/^\[\{.*\}\]\z/);
$run = mcload_json('-s', '127.0.0.1:1', '--noload', @BRIEFLY, '--repeat=3');
has($run, 'never there: status 2, nothing to report', status => 2, out => '', err_lines => 1);
ok(!-e $run->{file}, 'never there: ... nor a file');

# Whichever run is the first that has to connect again: those before it are told.
$run = mcload_json('-s', serves_one(1), '--noload', '-r', 100, '-t', 1, '--search=p99:1ms');
has($run, 'gone within a search: what it knows is reported', out => qr/^(?:Search =|The search found no rate with) /m,
    'search.runs' => ['>=', 1], status => $run->{err} =~ /cannot connect/ ? 2 : 3);

# A run that is worth nothing is worse than one that misses an objective, whichever comes first.
{
    my @off = map { "$_:off" } qw(adherence_1ms achieved_rate arrivals little lateness steal cpu_wait client_cpu
        stationarity);
    my @scan = ('--scan=200:400:200', '--slo=p50:1ns', '--assert', '--check=' . join(',', @off));
    $run = attack(sub { $_[2] == 1 ? "ERROR\r\n" : hit(key_of($_[0])) }, @scan);
    has($run, 'a scan, INVALID and then missed: status 3', status => 3, err => qr{^mcload: 200/s: INVALID: 1 errors}m);
    $run = attack(sub { hit(key_of($_[0])) }, @scan);
    is($run->{status}, 4, 'a scan, missed twice: status 4') or diag($run->{err});
}

# ---- loading -----------------------------------------------------------------------------

# One thread cannot connect: the other one, which nobody answers, is not waited for.
{
    my $silent = fake_server(sub { '' });
    $run = mcload('-s', "127.0.0.1:$silent", '-s', '127.0.0.1:1', '-R', '-T', 2, '-r', 100, '--timeout=600');
    has($run, 'one of two threads fails: status 2, its reason', status => 2,
        err => qr/\Amcload: cannot connect to 127\.0\.0\.1:1: [^\n]+\n\z/, out => '');
}


for my $case (
    ['an error', sub { $_[0] =~ /^set/ ? '' : "SERVER_ERROR out of memory storing object\r\n" },
        qr/SERVER_ERROR/],
    ['NOT_STORED', sub { $_[0] =~ /^set/ ? '' : "NOT_STORED\r\n" }, qr/NOT_STORED/],
    ['a line that is no reply', sub { "too many clients\r\n" }, qr/answered too many clients instead of STORED$/],
    ['bytes that are none', sub { "\1\2\3\r\n" }, qr/answered something that is no reply instead of STORED$/],
    ['an HTTP server', sub { "HTTP/1.1 400 Bad Request\r\n" }, qr/speaks another protocol: try --protocol=http$/],
    ['a Redis', sub { "-ERR unknown command\r\n" }, qr/speaks another protocol: try --protocol=redis$/],
    ['a disconnect', sub { $_[2] > 50 ? undef : $_[0] =~ /^set/ ? '' : "STORED\r\n" }, qr/closed the connection while records were stored \(\d+ so far, by a thread\): see its log$/],
    ['a disconnect at once', sub { undef }, qr/closed the connection: does it speak ascii over tcp\?$/],
    ['silence', sub { '' }, qr/no answer in time, 100 records left: none at all from 127\.0\.0\.1:\d+$/, '--timeout=0.5'],
) {
    my ($name, $code, $message, @args) = @$case;
    my $port = fake_server($code);
    has(run_program({command => [$MCLOAD, '-s', "127.0.0.1:$port", '-r', '100', '-t', '0.1', @args],
        timeout => 120}), "loading, $name: status 2, a line says so, no table", status => 2,
        err => qr/^mcload: loading: [^\n]*$message[^\n]*\n\z/m, out => '');
}

# ---- dropped when late -------------------------------------------------------------------

$run = attack(sub { select undef, undef, undef, 0.05; hit(key_of($_[0])) }, '-q', '200',
    '-t', '100', '--until=n:10', '--late=drop');
is_invalid($run, 'sent within 1 ms', 'late requests dropped');
my ($skipped) = $run->{out} =~ /^Skipped TXs = (\d+) /m;
cmp_ok($skipped, '>', 0, 'late requests dropped: counted');
is(number($run, 'skipped'), $skipped, 'late requests dropped: in the JSON too');

# ---- interrupted -------------------------------------------------------------------------

{
    my $port = fake_server(sub { hit(key_of($_[0])) });
    my $pid = in_child(sub {
        open STDOUT, '>', "$dir/interrupted";
        open STDERR, '>', "$dir/progress";
        exec $MCLOAD, '-v', '-s', "127.0.0.1:$port", '--noload', '-r', '100', '-t', '600',
            '--progress=always';
    });
    # The first progress line says that it runs.
    wait_until(sub { -s "$dir/progress" && `cat $dir/progress` =~ m{/600 s} }, 60);
    kill 'INT', $pid;
    waitpid $pid, 0;
    is($? >> 8, 3, 'interrupted: status 3');
    like(`cat $dir/progress`, qr{\d/600 s  \d+/s .*  errors 0}, 'interrupted: progress went to stderr');
    my $text = `cat $dir/interrupted`;
    unlike($text, qr/\e/, 'interrupted: and only there');
    like($text, qr/^Total QPS = [1-9]/m, 'interrupted: reports what it has');
    like($text, qr/^INVALID: .*interrupted/m, 'interrupted: and says so');
}

done_testing();
