#!/usr/bin/env perl
# The example for Kubernetes in doc/operations.md: the server takes its arguments, the probes find
# what they ask for, and the image's stop signal keeps the items for the next container.
use MCTest ':ours';
use IO::Socket::INET;

my ($example) = read_file("$TOP/doc/operations.md") =~ /^```yaml\n(.*?)^```$/ms;
my ($list) = $example =~ /^ *args: \[(.*)\]$/m;
my ($signal) = read_file("$TOP/scripts/packaging/build-image") =~ /--stop-signal SIG(\w+)/;
my %port = map { /name: (\w+), containerPort: (\d+)/ ? ($1, $2) : () } $example =~ /(name: \w+, containerPort: \d+)/g;
is_deeply(\%port, {memcache => 11211, admin => 9151}, 'ports of the container');
like($example, qr/^  ports: \[\{name: memcache, port: 11211\}\]$/m, 'the port of the service');
my ($mount) = $example =~ /mountPath: (\S+?)\}/;

# Its addresses, memory and volume are here those of a test.
my $dir = scratch_dir();
my $admin = free_port();
my @args = map { s/^"(.*)"$/$1/r } split /, /, $list;
s/\b0\.0\.0\.0:$port{admin}\b/127.0.0.1:$admin/, s/^0\.0\.0\.0$/127.0.0.1/, s/^1024$/64/, s/^\Q$mount\E\//$dir\//
    for @args;

sub status_of($path) {
    my $s = IO::Socket::INET->new(PeerAddr => '127.0.0.1', PeerPort => $admin) or return "connect: $!";
    $s->blocking(0);
    put($s, "GET $path HTTP/1.1\r\nHost: x\r\n\r\n");
    return (read_until_eof($s))[0] =~ s/\r\n.*//sr;
}

for my $found ("END\r\n", "VALUE key 0 5\r\nvalue\r\nEND\r\n") {
    my $server = start_server(args => ['-p', '-1', @args], listen => 0, is_scoped => 1);
    my $s = $server->connect;
    exchange($s, "get key\r\n", $found, 'what it has at the start');
    exchange($s, "set key 0 0 5\r\nvalue\r\n", "STORED\r\n", 'stored');
    for my $probe (qw(readiness liveness)) {
        my ($path, $at) = $example =~ /^ *${probe}Probe: \{httpGet: \{path: (\S+), port: (\w+)\}/m;
        is($at, 'admin', "$probe: the port");
        is(status_of($path), 'HTTP/1.1 200 OK', "$probe: $path");
    }
    $server->stop($signal);
}
like($example, qr/^kind: PodDisruptionBudget\n(?:.*\n)*  maxUnavailable: 1$/m, 'one server at a time');
done_testing();
