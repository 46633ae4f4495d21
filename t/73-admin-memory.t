#!/usr/bin/env perl
# No memory for a page: it is whole, or 503, or there is none, and the server serves on. The n-th
# allocation fails, once or with all that follow, for one n after the other (t/preload/fail_alloc.c).
use MCTest ':ours';
use JSON::PP;
use MCPreload;

my $FOR_EVER = 1 << 62;
my ($control, $path) = map { scratch_dir() . "/$_" } qw(control admin);
my %environment = (preloaded('fail_alloc'), FAIL_ALLOC => $control);
plan skip_all => 'the server runs under something else' if (() = server_binary()) > 1;

# From now on number $first to $last fail; 0: none.
sub fail_from($first, $last) { control_put($control, 0, $first, $last, 0); }

sub allocations { return (control_of($control))[0]; }

# The content of a page; '' when there is none, and the status otherwise.
sub page($name) {
    my $s = IO::Socket::UNIX->new(Peer => $path) or die "connect: $!";
    $s->blocking(0);
    put($s, "GET $name HTTP/1.1\r\nHost: x\r\nAccept: application/openmetrics-text\r\n\r\n");
    my ($all) = read_until_eof($s);
    my ($head, $content) = split /\r\n\r\n/, $all, 2;
    my ($status) = ($head // '') =~ m{^HTTP/1\.1 (\d+) };
    return !defined $status ? '' : $status == 200 ? $content : $status;
}

my %is_whole = (
    '/' => sub { $_[0] =~ m{^<!doctype html>.*</html>\n\z}s },
    '/history.json' => sub { my $json = eval { decode_json($_[0]) }; $json && $json->{samples}{classes}{background} },
    '/health' => sub { $_[0] eq "ok\n" },
    '/metrics' => sub { $_[0] =~ /^memcached_up 1$/m && $_[0] =~ /\n# EOF\n\z/ && $_[0] !~ /^(?!# |\w+(?:\{.*\})? \S+$).*$/m },
    '/stats.json?groups=all' => sub { my $json = eval { decode_json($_[0]) }; $json && keys %$json == 15 && $json->{general}{pid} },
);

fail_from(0, 0);
my $server = serve("--admin=unix:$path", '-t', '2', {env => \%environment});
mem_stats($server->control);
for my $name (sort keys %is_whole) {
    page($name);
    fail_from(0, 0);
    ok($is_whole{$name}->(page($name)), "$name is whole");
    my $count = allocations();
    for my $is_lasting (0, 1) {
        my @wrong;
        for my $n (1 .. $count) {
            fail_from($n, $is_lasting ? $FOR_EVER : $n);
            my $got = page($name);
            push @wrong, $n if $got ne '' && $got ne '503' && !$is_whole{$name}->($got);
        }
        is("@wrong", '', "$name when one of $count allocations fails" . ($is_lasting ? ' and all that follow' : ''));
    }
    fail_from(0, 0);
    ok($is_whole{$name}->(page($name)), "$name is whole again");
}
serves($server);

done_testing();
