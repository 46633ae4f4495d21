#!/usr/bin/env perl
# A connection that ends by quit or by a hostile line first gets every reply it has earned,
# also when the client takes them slowly.
use MCTest;

each_profile(sub ($profile) {
    my ($server, $s) = serve($profile, '-m', '64');
    my $value = join '', map { chr(65 + $_ % 26) } 1 .. 900_000;
    exchange($s, "set big 0 0 900000\r\n$value\r\n", "STORED\r\n");
    my $reply = "VALUE big 0 900000\r\n$value\r\nEND\r\n";

    my $c = $server->connect;
    put($c, "get big\r\n" x 20 . "quit\r\nget big\r\n");
    mem_stats($s) for 1 .. 3; # the server is at work meanwhile, and answers others
    expect_eof($c, $reply x 20, '20 large values, then quit');

    $c = $server->connect;
    put($c, "get big\r\n" x 10 . ('x' x 3000));
    expect_eof($c, $reply x 10, '10 large values, then an endless line');

    exchange($s, "get x\r\n", "END\r\n", 'the next is served');
});
done_testing();
