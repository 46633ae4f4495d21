#!/usr/bin/env perl
# mcqos top on a terminal of its own: what its screen shows, its keys, other sizes, a server that
# goes away and comes back.
use MCTest ':ours';
use MCQos;
use MCScreen;

plan skip_all => 'mcqos speaks no TLS' if $ENV{MCTEST_TLS};
plan skip_all => 'mcqos was built without ncurses' if mcqos('top')->{err} =~ /without ncurses/;
my ($server, $s) = serve('-t', '1', '--qps-limit=77k');
my @top = (@MCQOS, '-s', $server->at, '--interval=0.2', 'top');
mcqos_says(64, '', qr/top needs a terminal .* mcqos status --json/, @$_, 'top') for [], ['--json'];
my $screen = MCScreen->new(24, 80, @top) or plan skip_all => 'no pseudo-terminals here';

sub sees($what, $name) {
    local $Test::Builder::Level = $Test::Builder::Level + 1;
    return ok($screen->shows($what), $name) || diag($screen->text);
}

sees(qr/^every 0\.2 s, by number - q quit, s sort, \+ slower, - faster, p pause$/m, 'the keys');
sees(qr/^QoS       limit 77000 \(burst 154\); action delay, unit cmd; slo off$/m, 'the summary');
sees(qr/^class +served\/s.*\n(?:\S+ .*\n){5}\nworker +CPU.*\n0 .*$/m, 'all classes and the worker fit 80 x 24');
is((grep { length > 80 } split /\n/, $screen->text), 0, 'no line is longer');
exchange($s, "qos qps_limit 55\r\n", "OK\r\n");
sees(qr/^QoS       limit 55 /m, 'it is renewed');
for my $order (qw(busy waiting connections number)) {
    $screen->type('s');
    sees(qr/by $order - /, "s sorts by $order");
}
$screen->type('+');
sees(qr/^every 0\.4 s/m, '+ doubles the interval');
$screen->type('--');
sees(qr/^every 0\.125 s/m, '- halves it, down to an eighth of a second');
$screen->type('p');
sees(qr/PAUSED/, 'p pauses');
exchange($s, "qos qps_limit 44\r\n", "OK\r\n");
$screen->type('s');
sees(qr/by busy, PAUSED/, 'keys still work');
like($screen->text, qr/^QoS       limit 55 /m, 'and nothing new is shown');
$screen->type('p');
sees(qr/^QoS       limit 44 /m, 'p goes on');
$screen->size(10, 40);
kill 'WINCH', $screen->{pid};
sees(qr/\Aevery 0\.125 s, by busy - q quit, s sort,\s/, 'a smaller terminal');
$screen->size(30, 100);
kill 'WINCH', $screen->{pid};
sees(qr/\n0 +any .* free\n/, 'a larger one');
$screen->type('x');
$screen->type('q');
is($screen->ended, 0, 'q ends it, with status 0');

# The server goes, and another one comes to its place. Its workers are sorted.
my $path = scratch_dir() . '/top';
$server = serve('-s', $path, {path => $path});
$screen = MCScreen->new(40, 100, @MCQOS, '-s', $path, '-i', '0.2', 'top');
sees(qr/^QoS       limit off; action delay, unit cmd; slo off$/m, 'the first server');
$server->stop;
sees(qr/^! trying again; what follows is old$/m, 'it is gone');
$server = serve('-s', $path, '-t', '3', '--steer=rr', '--qps-limit=33', {path => $path});
my @clients = map { $server->connect } 1 .. 4;
sees(qr/^QoS       limit 33 /m, 'the next one is found');
$screen->type('sss');
sees(qr/by connections - .*\nworker .*\n\d .* 2 +\S+  free\n\d .* 2 +\S+  free\n\d .* 1 +\S+  free$/ms,
    'five connections on three workers, in order');
$screen->type('q');
is($screen->ended, 0, 'q ends it');

# A shorter interval counts from the last sample.
$screen = MCScreen->new(24, 80, @MCQOS, '-s', $path, '-i', '64', 'top');
sees(qr/^QoS       limit 33 /m, 'the first sample');
exchange($server->connect, "qos qps_limit 22\r\n", "OK\r\n");
$screen->type('-' x 10);
sees(qr/^QoS       limit 22 /m, '- does not wait for the end of the long one');
$screen->type('q');
is($screen->ended, 0, 'q ends it');

# A terminal that hangs up ends it, also where nothing else tells.
my $lost = MCScreen->new(24, 80, 'sh', '-c', 'trap "" HUP; exec "$@"', 'sh', @MCQOS, '-s', $path, 'top');
ok($lost->shows(qr/^every/m), 'before it hangs up');
close $lost->{master};
waitpid $lost->{pid}, 0;
is($?, 0, 'a terminal that is gone ends it');

# A terminal without a cursor that moves.
my $dumb = MCScreen->new(24, 80, 'env', 'TERM=dumb', @MCQOS, '-s', $path, 'top');
ok($dumb->shows(qr/^mcqos: top needs a terminal that it/m), 'TERM=dumb');
is($dumb->ended >> 8, 64, 'exit status 64');

# No server from the beginning: an error, and no screen.
my $gone = MCScreen->new(24, 80, @MCQOS, '-s', scratch_dir() . '/none', 'top');
ok($gone->shows(qr/^mcqos: cannot connect to/m), 'no server');
is($gone->ended >> 8, 2, 'exit status 2');
done_testing();
