#!/usr/bin/env perl
# /stats.json: what "stats" and its groups say, as JSON, whatever bytes are in it.
use MCTest ':ours';
use JSON::PP;

my $dir = scratch_dir();
my $path = "$dir/admin";

sub fetch($query = '') {
    my $s = IO::Socket::UNIX->new(Peer => $path) or die "connect: $!";
    $s->blocking(0);
    put($s, "GET /stats.json$query HTTP/1.1\r\nHost: x\r\n\r\n");
    my ($all) = read_until_eof($s);
    return split /\r\n\r\n/, $all, 2;
}

my $unix = "$dir/server";
my ($server, $s) = serve("--admin=unix:$path", '-s', $unix, '-t', '2', '-o', 'track_sizes', {path => $unix});
exchange($s, "set a 0 0 1\r\n1\r\nget a\r\n", "STORED\r\nVALUE a 0 1\r\n1\r\nEND\r\n");
# A client of a name that is no UTF-8, with what JSON has to escape.
my $odd = IO::Socket::UNIX->new(Local => "$dir/odd \"\\\xff\x01", Peer => $unix) or die "socket: $!";
put($odd, "get a\r\n");
is(read_bytes($odd, 17), "VALUE a 0 1\r\n1\r\nE", 'a client of an odd name is served');

# A line of them is there from the first time on that a worker's load is known.
soon { defined mem_stats($s)->{qos_headroom_pct} } 'all lines are there';
my ($head, $text) = fetch();
like($head, qr{^HTTP/1\.1 200 OK\r\n.*^Content-Type: application/json\r$}ms, 'the type');
my $json = decode_json($text);
is($json->{schema}, 'memcached-qos-stats/1', 'the schema');
is(join(' ', sort grep { ref $json->{$_} } keys %$json),
    'classes fair general items latency pin qos resctrl settings slabs', 'groups by default');
my $settings = mem_stats($s, 'settings');
is_deeply($json->{settings}, {map { $_ => $settings->{$_} =~ /^-?\d[\d.]*$/ ? 0 + $settings->{$_} : $settings->{$_} }
    keys %$settings}, 'settings are those of "stats settings"');
is(join(' ', sort keys %{$json->{general}}), join(' ', sort keys %{mem_stats($s)}), 'all lines of "stats"');
is($json->{general}{curr_items}, 1, 'a counter');
like($text, qr/"curr_items": 1,/, 'numbers are numbers');
like($text, qr/"version": "1\.6\.45"/, 'what is none is a string');
is($json->{items}{1}{number}, 1, 'items: an object for each slab class');
is($json->{slabs}{1}{used_chunks}, 1, 'slabs likewise');
is($json->{slabs}{active_slabs}, 1, 'and what is of all');
is($json->{classes}{class_small_served}, mem_stats($s, 'classes')->{class_small_served}, 'classes');

(undef, $text) = fetch('?groups=all');
$json = decode_json($text);
my ($addr) = grep { /odd/ } map { $_->{addr} // '' } values %{$json->{conns}};
is($addr, "unix:$dir/odd_\"\\\xff_", 'any bytes are valid JSON');
is((grep { $_ == 1 } values %{$json->{sizes}}), 1, 'sizes');

(undef, $text) = fetch('?groups=qos,general');
$json = decode_json($text);
is(join(' ', sort grep { ref $json->{$_} } keys %$json), 'general qos', 'those chosen');
for my $query ('groups=qos%2cgeneral', 'groups=qos%2Cgeneral&x=%', 'x&y=1&gro&groups=%71os,general&groups=all') {
    (undef, $text) = fetch("?$query");
    is(join(' ', sort grep { ref $json->{$_} } keys %{$json = decode_json($text)}), 'general qos', "?$query");
}
($head, $text) = fetch('?groups=qos,nothing');
like($head, qr{^HTTP/1\.1 400 }, 'a group that there is not');
like($text, qr/^\?groups= takes a list of: all, general, .*conns$/, 'says which there are');

done_testing();
