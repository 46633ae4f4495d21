#!/usr/bin/env perl
# A listener whose protocol is fixed by -l proto[...]: is no way around authentication.
use MCTest ':ours';
use MCBinary;

my $dir = scratch_dir();
write_file(@$_) for ["$dir/tokens", "me:secret\n"], ["$dir/passwords", "me:secret:\n"];

# Everything the server sends until it closes or stays silent.
sub tells($server, $bytes) {
    my $s = $server->connect;
    put($s, $bytes);
    my ($got) = read_until_eof($s, 1);
    return $got;
}

my $set = request(1, 'k', "\0" x 8, 'v');
my $get = request(0, 'k', '', '');

# -Y, and a listener that speaks binary
my $server = serve('1.6', '-l', 'proto[binary]:127.0.0.1', '-p', '-1', '-Y', "$dir/tokens", {listen => 0, debug => 0});
for my $case (['set', $set], ['get', $get], ['plain', request(0x21, 'PLAIN', '', "\0me\0secret") . $set],
        ['text', "set a 0 0 9\r\nme secret\r\nget a\r\n"]) {
    my ($name, $bytes) = @$case;
    my $got = tells($server, $bytes);
    my $ok = length $got < 24 || unpack('x6n', $got) != 0;
    ok($ok, "-Y and proto[binary]: $name is not served") or diag(show($got));
    unlike($got, qr/VALUE/, "-Y and proto[binary]: $name tells nothing");
}
$server->stop;

# -S, and a listener that speaks text
$server = serve('1.6', '-l', 'proto[ascii]:127.0.0.1', '-p', '-1', '-S', {listen => 0, debug => 0, env => {MEMCACHED_SASL_PWDB => "$dir/passwords"}});
is(tells($server, $_->[0]), '', '-S and proto[ascii]: ' . show($_->[0]) . ' is not answered') for ["get a\r\n"],
    ["version\r\n"], ["set a 0 0 9\r\nme secret\r\nget a\r\n"], [$set];

done_testing();
