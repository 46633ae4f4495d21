#!/usr/bin/env perl
# The live page of --admin and /history.json behind it. What the page makes of it in a browser:
# scripts/packaging/check-page; the policy of its steps: t/unit/check_timeline.c.
use MCTest ':ours';
use Digest::SHA 'sha256_base64';
use JSON::PP 'decode_json';

my @CLASSES = qw(control small write bulk background);
my $path = scratch_dir() . '/admin';

# (status, {header => value}, content)
sub get($what) {
    my $socket = IO::Socket::UNIX->new(Peer => $path) or die "connect: $!";
    $socket->blocking(0);
    put($socket, "GET $what HTTP/1.1\r\nHost: x\r\n\r\n");
    my ($all) = read_until_eof($socket);
    my ($head, $content) = split /\r\n\r\n/, $all, 2;
    my ($status, @headers) = split /\r\n/, $head;
    return ($status =~ / (\d+)/, {map { /^([^:]+): (.*)$/ ? (lc $1, $2) : () } @headers}, $content);
}

sub history() {
    my ($status, $head, $content) = get('/history.json');
    is($status, 200, '/history.json') if $status != 200;
    return decode_json($content);
}

# As Content-Security-Policy names what is between these tags of the page.
sub hash_of($page, $tag) {
    my ($text) = $page =~ m{<$tag>(.*?)</$tag>}s;
    return "'sha256-" . sha256_base64($text) . "='";
}

my ($server, $s) = serve('native', '-t', '2', "--admin=unix:$path");

subtest page => sub {
    my ($status, $head, $page) = get('/');
    is($status, 200, 'is there');
    is($head->{'content-type'}, 'text/html; charset=utf-8', 'its type');
    cmp_ok(length $page, '<', 25_000, 'is small');
    my %policy = map { /^(\S+) (.*)$/ } split /; /, $head->{'content-security-policy'};
    is($policy{'script-src'}, hash_of($page, 'script'), 'LIVE_SCRIPT_HASH of admin/page.c is that of the script');
    is($policy{'style-src'}, hash_of($page, 'style'), 'LIVE_STYLE_HASH of admin/page.c is that of the style');
    has(\%policy, 'the policy', 'default-src' => "'none'", 'connect-src' => "'self'", 'frame-ancestors' => "'none'");
    unlike($page, qr/innerHTML|outerHTML|insertAdjacent|document\.write|eval\(/, 'text is set as text');
    unlike($page, qr{(src|href)="?(https?:)?//}, 'nothing is from elsewhere');
    is((get('/health'))[1]{'content-security-policy'}, "default-src 'none'; frame-ancestors 'none'",
        'other pages may load nothing');
};

subtest history => sub {
    exchange($s, "get x\r\n", "END\r\n");
    exchange($s, "set x 0 0 1\r\n1\r\n", "STORED\r\n");
    exchange($s, "get x\r\n", "VALUE x 0 1\r\n1\r\nEND\r\n");
    exchange($s, "qos class bulk\r\n", "OK\r\n"); # whose items another owner has
    exchange($s, "set x 0 0 1\r\n1\r\n", "STORED\r\n");
    exchange($s, "get x\r\n", "VALUE x 0 1\r\n1\r\nEND\r\n");
    exchange($s, "qos class auto\r\n", "OK\r\n");
    my $h = history();
    has($h, 'what it is', schema => 'memcached-qos/history', version => 1, step_seconds => 5, steps => 180,
        slo => 'off', limit_per_second => undef, tokens => undef);
    is(join(' ', map { $_->{name} } @{$h->{classes}}), "@CLASSES", 'the classes');
    my %class = map { ($_->{name}, $_) } @{$h->{classes}};
    my ($stats, $classes) = (mem_stats($s), mem_stats($s, 'classes'));
    has($h, 'gets', hits => $stats->{get_hits}, misses => $stats->{get_misses});
    is($class{$_}{requests}, $classes->{"class_${_}_served"}, "requests of $_") for qw(small write bulk);
    is($h->{server}{pid}, $stats->{pid}, 'the process');
    is($h->{memory}{limit_bytes}, $stats->{limit_maxbytes}, 'memory');
    is($h->{memory}{item_bytes}, $stats->{bytes}, '... that is used');
    is($h->{memory}{items}, 1, '... by items');
    is_deeply([map { $_->{pages} } @{$h->{memory}{slabs}}], [1], 'the slab class that has a page');
    my $pin = mem_stats($s, 'pin');
    is(scalar @{$h->{workers}}, 2, 'each worker');
    is($h->{workers}[$_]{cpu} // -1, $pin->{"pin_worker_${_}_cpu"}, "the CPU of worker $_") for 0, 1;
    is($h->{workers}[0]{connections} + $h->{workers}[1]{connections}, $h->{connections}{current},
        'the connections of the workers');
};

subtest limits => sub {
    exchange($s, "qos qps_limit 1000 50\r\n", "OK\r\n");
    exchange($s, "qos qps_limit bulk 1 1\r\n", "OK\r\n");
    exchange($s, "qos action error\r\n", "OK\r\n");
    exchange($s, "qos slo p95:500us\r\n", "OK\r\n");
    my $mget = 'get' . ' k' x 20 . "\r\n";
    put($s, $mget x 20);
    my $refused = grep { read_line($s) =~ /^SERVER_ERROR/ } 1 .. 20;
    my $h = history();
    has($h, 'the limit', limit_per_second => 1000, burst => 50, tokens => ['<=', 50], slo => 'p95:500us');
    my %class = map { ($_->{name}, $_) } @{$h->{classes}};
    has($class{bulk}, 'of a class', limit_per_second => 1, burst => 1, refused => $refused);
    cmp_ok($refused, '>', 0, 'some were refused');
    like($h->{server}{settings}[0], qr/^limit 1000 \(burst 50\), bulk 1 \(burst 1\); action error/, 'in words');
    exchange($s, "qos $_\r\n", "OK\r\n") for 'qps_limit off', 'qps_limit bulk off', 'slo off';
};

subtest samples => sub {
    my $h;
    soon(sub { $h = history(); @{$h->{samples}{ago_seconds}} >= 1 }, 'the first step ends');
    my $samples = $h->{samples};
    my $classes = delete $samples->{classes};
    my $n = @{$samples->{ago_seconds}};
    is(scalar @{$samples->{$_}}, $n, "$_: a value for each sample") for sort keys %$samples;
    for my $class (@CLASSES) {
        is(scalar @{$classes->{$class}{$_}}, $n, "$_ of $class: likewise") for sort keys %{$classes->{$class}};
    }
    cmp_ok($samples->{$_}[0], '>=', 0, $_) for qw(busy_mean_pct busy_most_pct item_bytes connections);
};

done_testing();
