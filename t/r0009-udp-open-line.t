#!/usr/bin/env perl
# What a datagram's unfinished line of keys has found is not sent to anybody.
use MCTest ':ours';

my $READ_TIMEOUT = 60;

each_profile(sub ($profile) {
    my $server = serve($profile, '-l', '127.0.0.1', '-p', '-1', '-U', '-1', '-t', '1', {listen => 0});
    my ($entry) = grep { $_->[0] eq 'UDP INET' } @{$server->{ports}};
    my ($one, $other) = map {
        IO::Socket::INET->new(PeerAddr => '127.0.0.1', PeerPort => $entry->[1],
            Proto => 'udp') || die "udp: $!"
    } 1 .. 2;
    my $header = sub { return pack 'n4', $_[0], 0, 1, 0; };
    exchange($server->connect, "set k 0 0 6\r\nsecret\r\n", "STORED\r\n", "$profile: a value");

    # longer than a buffer, so that its first keys are looked up; and it never ends
    send $one, $header->(1) . 'get k ' . 'x' x 200 . ' y' x 9000, 0;
    send $other, $header->(7) . "get none\r\n", 0;
    ok(IO::Select->new($other)->can_read($READ_TIMEOUT), "$profile: an answer");
    recv $other, my $got, 2000, 0;
    is(show($got), show($header->(7) . "END\r\n"), "$profile: nothing of another client's");
});

done_testing();
