#!/usr/bin/env perl
# -p and -U: which of the two moves with the other, what is off, what the port file says.
use MCTest;
use Time::HiRes qw(sleep);

my $dir = scratch_dir();

# Ports that nobody has, of both transports.
sub port {
    for (1 .. 200) {
        my $port = free_port();
        return $port if IO::Socket::INET->new(LocalAddr => '0.0.0.0', LocalPort => $port, Proto => 'udp');
    }
    die 'no free port';
}

my $has_default = claim_port(11211)
    && IO::Socket::INET->new(LocalAddr => '0.0.0.0', LocalPort => 11211, Proto => 'tcp', Listen => 1, ReuseAddr => 1)
    && IO::Socket::INET->new(LocalAddr => '0.0.0.0', LocalPort => 11211, Proto => 'udp');

# The rows: arguments, then TCP and UDP of 1.4 and of 1.6: a number, 'random' or 'off'.
sub rows {
    my ($one, $two) = (port(), port());
    my @rows = (
        [[], 11211, 'off', 11211, 'off'],
        [['-p', $one], $one, 'off', $one, 'off'],
        [['-U', $one], $one, $one, $one, $one],
        [['-p', '-1'], 'random', 'off', 'random', 'off'],
        [['-U', '-1'], 'random', 'random', 'random', 'random'],
        [['-p', '0'], 'off', 'off', 'off', 'off'],
        [['-U', '0'], 'off', 'off', 11211, 'off'],
        [['-p', $one, '-U', $two], $one, $two, $one, $two],
        [['-p', $one, '-U', '0'], $one, 'off', $one, 'off'],
        [['-p', '-1', '-U', $one], 'random', $one, 'random', $one],
        [['-p', $one, '-U', '-1'], $one, 'random', $one, 'random'],
    );
    return @rows;
}

sub port_is($got, $want, $name) {
    local $Test::Builder::Level = $Test::Builder::Level + 1;
    return ok(defined $got && $got > 0 && $got != 11211, "$name is a free one") if $want eq 'random';
    is($got // 'off', $want, "$name");
}

each_profile(sub ($profile) {
    for my $row (rows()) {
        my ($args, @want) = @$row;
        my ($tcp, $udp) = $profile eq '1.4' ? @want[0, 1] : @want[2, 3];
        my $what = "'@$args'";
        SKIP: {
            skip "$what: port 11211 is in use here", 2 if !$has_default && "$tcp$udp" =~ /11211/;
            # A name without a server behind it tells MCTest that the port file is enough.
            my $server = serve($profile, @$args, {listen => 0, no_port => 1});
            my %port = map { $_->[0] => $_->[1] } @{$server->{ports}};
            port_is($port{'TCP INET'}, $tcp, "$what: TCP");
            port_is($port{'UDP INET'}, $udp, "$what: UDP");
            my @order = map { substr $_->[0], 0, 3 } @{$server->{ports}};
            is("@order", join(' ', sort @order), "$what: TCP comes first in the port file");
            if ($tcp ne 'off') {
                my $s = $server->connect;
                exchange($s, "version\r\n", VERSION_REPLY($profile), "$what answers");
            }
        }
    }

    # One socket a worker on the same port must not hide that the port is taken.
    my $server = serve($profile, '-U', '-1');
    my ($udp) = $server->ports('UDP INET');
    my $run = run_program('-l', '127.0.0.1', '-p', '-1', '-U', $udp, "--compat=$profile", @AS_ROOT);
    has($run, 'a UDP port in use exits 71', status => 71, err => qr/failed to listen on UDP port $udp: /);
    $server->stop;

    for my $bad ('-2', '65536', 'x', '') {
        is(run_program($_, $bad, "--compat=$profile", @AS_ROOT)->{status}, 64, "$_ '$bad' is refused") for '-p',
            '-U';
    }
});

done_testing();
