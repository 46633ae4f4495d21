#!/usr/bin/env perl
# A listener whose protocol is fixed by -l proto[...]: is no way around authentication.
use strict;
use warnings;
use FindBin;
use lib "$FindBin::Bin/lib";
use Test::More;
use MCTest;

plan skip_all => 'needs memcached-qos' if !is_ours();

my $dir = scratch_dir();
for my $file (["$dir/tokens", "me:secret\n"], ["$dir/passwords", "me:secret:\n"]) {
    open my $fh, '>', $file->[0] or die;
    print $fh $file->[1];
    close $fh;
}

sub binary {
    my ($opcode, $key, $extras, $value) = @_;
    return pack('CCnCCnNNNN', 0x80, $opcode, length $key, length $extras, 0, 0,
        length($extras) + length($key) + length $value, 0, 0, 0) . $extras . $key . $value;
}

# Everything the server sends until it closes or stays silent.
sub ask {
    my ($server, $bytes) = @_;
    my $s = $server->connect;
    put($s, $bytes);
    my ($got) = read_until_eof($s, 1);
    return $got;
}

my $set = binary(1, 'k', "\0" x 8, 'v');
my $get = binary(0, 'k', '', '');

# -Y, and a listener that speaks binary
my $server = start_server(profile => '1.6', listen => 0, debug => 0,
    args => ['-l', 'proto[binary]:127.0.0.1', '-p', '-1', '-Y', "$dir/tokens"]);
for my $case (['set', $set], ['get', $get], ['plain', binary(0x21, 'PLAIN', '', "\0me\0secret") . $set],
        ['text', "set a 0 0 9\r\nme secret\r\nget a\r\n"]) {
    my ($name, $bytes) = @$case;
    my $got = ask($server, $bytes);
    my $ok = length $got < 24 || unpack('x6n', $got) != 0;
    ok($ok, "-Y and proto[binary]: $name is not served") or diag(show($got));
    unlike($got, qr/VALUE/, "-Y and proto[binary]: $name tells nothing");
}
$server->stop;

# -S, and a listener that speaks text
$server = start_server(profile => '1.6', listen => 0, debug => 0,
    env => {MEMCACHED_SASL_PWDB => "$dir/passwords"},
    args => ['-l', 'proto[ascii]:127.0.0.1', '-p', '-1', '-S']);
for my $case (["get a\r\n"], ["version\r\n"], ["set a 0 0 9\r\nme secret\r\nget a\r\n"],
        [$set]) {
    is(ask($server, $case->[0]), '', '-S and proto[ascii]: ' . show($case->[0]) . ' is not answered');
}
$server->stop;

done_testing();
