#!/usr/bin/env perl
# scripts/three-servers: its options, its end, and what is behind nutcracker is what is in the servers.
# That each gets a part of the items, and the command's output, the recipe in doc/guide.md shows.
use MCTest ':ours';
use Cwd qw(abs_path);

my $script = "$TOP/scripts/three-servers";
$ENV{MEMCACHED} = join ' ', map { abs_path($_) // $_ } server_binary();
$ENV{MCLOAD} = abs_path($ENV{MCLOAD} // './loadgen/mcload');

sub three_servers(@args) {
    return run_program({command => [$script, @args], timeout => 300});
}

my $first = free_ports(4);
has(three_servers(@$_), "@$_", status => 2, err => qr/^usage: |is the number of a port/)
    for ['--bogus'], ['--first'], ['--first', 'x'], ['--first', 123456], ['--first', ''];
is(three_servers('--first', $first, 'false')->{status}, 1, 'the status is that of the command');
is(three_servers('--first', $first, 'sh', '-c', 'exit 7')->{status}, 7, 'any');
{
    my $taken = IO::Socket::INET->new(LocalAddr => '127.0.0.1', LocalPort => $first + 1, Listen => 1, ReuseAddr => 1);
    has(three_servers('--first', $first, 'true'), 'a port is in use', status => 1, err => qr/no server on port @{[$first + 1]}/);
}
SKIP: {
    skip 'no TLS here', 2 if $ENV{MCTEST_TLS};
    my ($other, $s) = serve();
    has(three_servers('--first', $other->port, 'true'), 'another server has the port', status => 1, err => qr/another server has port|no server on port/);
    exchange($s, "get 1\r\n", "END\r\n");
    is(mem_stats($s)->{curr_items}, 0, 'it gets no items');
}
SKIP: {
    skip 'no nutcracker here', 1 if system('PATH=$PATH:/usr/sbin command -v nutcracker >/dev/null') != 0;
    my $run = three_servers('--first', $first, $ENV{MCLOAD}, '-s', '127.0.0.1:' . ($first + 3), '-r', 3000,
        '--noload', '-t', 100, '--until=n:1000');
    like($run->{out}, qr/^Hits = 100\.00%/m, 'nutcracker looks for a key where mcload has put it') or diag($run->{err});
}
for my $port ($first .. $first + 3) {
    ok(!IO::Socket::INET->new(PeerAddr => "127.0.0.1:$port"), "nothing is left on port $port");
}
done_testing();
