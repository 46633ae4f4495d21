#!/usr/bin/env perl
# mcload over datagrams: replies are put together in any order, and what gets lost, comes
# twice or too late is counted as that, without the requests beside it.
use MCTest;
use Socket ();
use Time::HiRes qw(time);
use MCLoad;
use MCTestd;

my @kinds = qw(error client_error server_error unexpected wrong_value desync disconnect timeout
    connect late duplicate);

sub errors_of($run) {
    return join ' ', map { "$_ " . $run->{json}{"errors.$_"} } grep { $run->{json}{"errors.$_"} } @kinds;
}

sub clean($run, $name) {
    my $json = $run->{json};
    cmp_ok($json->{'totals.gets'} // 0, '>', 0, "$name: gets") or diag($run->{err}, $run->{out});
    is($json->{'totals.hits'}, $json->{'totals.keys'}, "$name: all hits");
    is(errors_of($run), '', "$name: no errors");
}

# ---- this server ---------------------------------------------------------------------------

each_profile(sub ($profile) {
    my $port = free_port();
    my $server = serve($profile, '-U', $port, {port => $port});
    my $at = "udp://127.0.0.1:$port";
    clean(mcload_json('-s', $at, "--protocol=$_", '-r', 50, @BRIEFLY, '-u', '0.2', '-c', 2, '-d', 4,
        '--verify=1', '--key-prefix', $_), "$_") for qw(ascii meta binary);
    clean(mcload_json('-s', $at, '-r', 50, @BRIEFLY, '-V', 5000, '--getcount=3', '-q', 200,
        '-c', 2, '--verify=1', '-d', 2), 'replies of several datagrams');
});

# ---- loading --------------------------------------------------------------------------------

{
    # Far more than a socket's buffer holds, were all of it sent at once.
    my $port = free_port();
    my $server = serve('-U', $port, '-m', '100');
    my $run = mcload('-s', "udp://127.0.0.1:$port", '-r', 400, '-V', 60000, '-c', 4, '-T', 2, '--loadonly');
    is($run->{status}, 0, 'values of 60 KB are stored') or diag($run->{err});
    has(mem_stats($server->control), '... all of them', curr_items => 400, evictions => 0);
}

# What is lost is sent again.
{
    my $socket = IO::Socket::INET->new(LocalAddr => '127.0.0.1', Proto => 'udp') or die "udp: $!";
    my $pid = in_child(sub {
        my $count = 0;
        alarm 120; # whatever becomes of the test
        while (defined(my $from = $socket->recv(my $datagram, 65536))) {
            next if ++$count % 7 == 0;
            $socket->send(substr($datagram, 0, 8) . "STORED\r\n", 0, $from);
        }
    });
    my $run = mcload('-s', 'udp://127.0.0.1:' . $socket->sockport, '-r', 200, '-c', 2, '--loadonly');
    is($run->{status}, 0, 'a server that loses each seventh: all is stored') or diag($run->{err});
    like($run->{err}, qr/^mcload: 200 records stored$/m, '... once');
    kill 'KILL', $pid;
    waitpid $pid, 0;
}

# What is answered later than it is sent again is stored by that answer, too.
{
    my $socket = IO::Socket::INET->new(LocalAddr => '127.0.0.1', Proto => 'udp') or die "udp: $!";
    my $pid = in_child(sub {
        my @waiting;
        alarm 120; # whatever becomes of the test
        while (1) {
            vec(my $readable = '', fileno $socket, 1) = 1;
            select $readable, undef, undef, @waiting ? 0.02 : undef;
            while (defined(my $from = $socket->recv(my $datagram, 65536, Socket::MSG_DONTWAIT()))) {
                push @waiting, [time + 0.6, substr($datagram, 0, 8), $from];
            }
            while (@waiting && $waiting[0][0] <= time) {
                my (undef, $header, $to) = @{shift @waiting};
                $socket->send("${header}STORED\r\n", 0, $to);
            }
        }
    });
    my $run = mcload('-s', 'udp://127.0.0.1:' . $socket->sockport, '-r', 100, '-c', 2, '--timeout=4',
        '--loadonly');
    is($run->{status}, 0, 'a server that answers after 0.6 s: all is stored') or diag($run->{err});
    like($run->{err}, qr/^mcload: 100 records stored$/m, '... once');
    kill 'KILL', $pid;
    waitpid $pid, 0;
}

# ---- a server of known behaviour -------------------------------------------------------------

sub measure($server, @args) {
    my $testd = start_testd('--udp', '--value=3000', @$server);
    my $run = mcload_json('-s', "127.0.0.1:$testd->{port}", '--transport=udp', '--noload', '-r',
        100, '-t', 100, '--until=n:600', '-c', 2, '-d', 4, '-V', 3000, @args);
    return ($run, stop_testd($testd));
}

my ($run, $did) = measure(['--fault=reverse:2', '--delay=100']);
clean($run, 'fragments in the other order');
cmp_ok($did->{faults}{reverse}, '>', 0, 'fragments in the other order: they were');

# Fault, its counter, how often it counts each time (a reply is three datagrams), and how many
# of them may come behind the last reply that is waited for: each connection has one such; of those
# that are lost, each of the 8 that are on their way at the end.
for my $row (
    ['lose', 'timeout', 1, 8],
    ['lose-part', 'timeout', 1, 8],
    ['duplicate', 'duplicate', 3, 2],
    ['foreign-part', 'duplicate', 1, 0],
    ['garbage', 'desync', 1, 0],
    ['error', 'server_error', 1, 0],
) {
    my ($fault, $counter, $times, $behind) = @$row;
    # Longer than anybody stands still.
    ($run, $did) = measure(["--fault=$fault:50", '--delay=200'], '--timeout=' . ($counter eq 'timeout' ? 4 : 60));
    my $done = $did->{faults}{$fault};
    my $seen = $run->{json}{"errors.$counter"} // 0;
    cmp_ok($done, '>', $behind, "$fault: the server did so");
    ok($seen <= $times * $done && $seen >= $times * ($done - $behind),
        "$fault: $seen of $times x $done counted as $counter") or diag($run->{out});
    is(errors_of($run), "$counter $seen", "$fault: and as nothing else");
    cmp_ok($run->{json}{'totals.hits'}, '>', 10 * $done, "$fault: the others are answered");
}

# Longer values than were asked for do not fit into any reply: that is said once for each, and
# not again for each of its other datagrams.
($run, $did) = measure(['--value=20000', '--delay=200'], '-V', 100);
my $long = $run->{json}{'errors.desync'};
cmp_ok($long, '>', 0, 'too long: no replies');
is(errors_of($run), "desync $long", 'too long: and nothing else');
cmp_ok($long, '<=', scalar @{$did->{rows}}, 'too long: once each');

# What comes after the time-out is late, and answers nothing. Where either side stands still,
# those four on their way are given up too, as often as it does, or else answered. Fifteen that are late
# hold up four places three times, until the first of them have come.
($run, $did) = measure(['--fault=late:20', '--late=600', '--delay=200'], '--timeout=0.3', '-d', 2, '--until=n:300');
my ($late, $given_up) = ($did->{faults}{late}, $run->{json}{'errors.timeout'});
cmp_ok($late, '>', 0, 'late: the server did so');
ok($given_up > 0 && $given_up >= $late - 8, "late: $given_up given up of $late");
is($run->{json}{'totals.lost'}, $given_up, 'late: nothing else was lost');
has($run, 'late: noticed when they came', 'errors.late' => ['>', 0], 'errors.duplicate' => 0);

# Silence ends in time, and is censored.
($run, $did) = measure(['--fault=lose'], '-q', 200, '--timeout=5', '-t', '0.6', '-v');
like($run->{out}, qr/^INVALID: no request was answered/m, 'silence: the verdict');
is($run->{json}{'totals.unanswered'} + $run->{json}{'totals.unsent'},
    $run->{json}{'totals.offered'}, 'silence: every request is accounted for');

# ---- what does not go ------------------------------------------------------------------------

for my $case (
    ['values that are too long', 'do not fit', '-V', 70000],
    ['another protocol', 'ascii, meta and binary', '--protocol=redis'],
    ['binary gets of several keys', 'one request in ascii only', '--protocol=binary', '-G', 2],
    ['meta gets of several keys', 'one request in ascii only', '--protocol=meta', '-G', 'uniform:1,2'],
    ['a password', 'no authentication', '-U', 'a', '-P', 'b'],
) {
    my ($name, $message, @args) = @$case;
    my $refused = mcload('-s', 'udp://127.0.0.1:9', '-r', 10, '-t', '0.1', @args);
    has($refused, "$name: status 2, a line says so", status => 2, err => qr/^mcload: [^\n]*$message[^\n]*\n\z/);
}

done_testing();
