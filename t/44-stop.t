#!/usr/bin/env perl
# SIGTERM under load: what was begun is finished, no reply is cut off, the server exits 0
# soon, also beside clients that do not read or do not finish their requests.
use MCTest;

my $VALUE = 'v' x 5000;
my $ONE = "VALUE k 0 5000\r\n$VALUE\r\nEND\r\n";

# Reads replies to so many gets at once until the server closes: tells of the first batch, and at the end
# of all, and of how the last of them ended.
sub read_replies($c, $batch, $in) {
    my ($whole, $state) = (0, 'ok');
    while (1) {
        put($c, "get k\r\n" x $batch);
        my $got = read_bytes($c, $batch * length $ONE);
        $whole += int(length($got) / length $ONE);
        if (length($got) < $batch * length $ONE) {
            $state = 'cut' if length($got) % length $ONE;
            $state = 'wrong' if $got ne substr $ONE x $batch, 0, length $got;
            last;
        }
        syswrite $in, 'r' if $whole == $batch;
    }
    syswrite $in, "$state $whole\n";
}

# Clients have 4 s to take their replies. By a slow clock these are 800: nobody is cut off who has no CPU for
# a while, and a server that waits though all have left does not end in the time that `stop` gives it.
# Who is stuck is waited for, by the usual clock.
sub stop_under_load($profile, $signal, $has_stuck) {
    my $name = "SIG$signal under load" . ($has_stuck ? ', beside stuck clients' : '');
    my ($server, $s) = serve($profile, '-t', '2', {env => $has_stuck ? {} : slowed(200)});
    exchange($s, "set k 0 0 5000\r\n$VALUE\r\n", "STORED\r\n");
    my @children;
    for my $i (1 .. 6) {
        pipe my $out, my $in;
        my $pid = in_child(sub {
            close $out;
            read_replies($server->connect, $i % 2 ? 20 : 1, $in);
        });
        close $in;
        push @children, [$pid, $out];
    }
    sysread $_->[1], my $ready, 1 for @children;
    my @stuck = $has_stuck ? map { $server->connect } 1 .. 3 : ();
    if (@stuck) {
        put($stuck[0], "get k\r\n" x 20000, 1);
        put($stuck[1], "set half 0 0 100\r\nabc");
        put($stuck[2], "get ");
        soon { grep { /conn_nread/ } stat_lines($s, 'conns') } 'stuck in the middle of a value';
    }
    $server->stop($signal, "$name: exit 0, soon");
    my $served = 0;
    for my $child (@children) {
        my ($pid, $out) = @$child;
        my $text = '';
        while (sysread $out, my $chunk, 100) {
            $text .= $chunk;
        }
        waitpid $pid, 0;
        my ($state, $whole) = $text =~ /^(\w+) (\d+)$/;
        $served += $whole;
        next if $profile eq 'ref';
        $has_stuck ? isnt($state, 'wrong', 'no reply is wrong') : is($state, 'ok', 'no reply is cut off');
    }
    cmp_ok($served, '>', 0, "$served replies were served");
}

each_profile(sub ($profile) {
    stop_under_load($profile, $_, 0) for qw(TERM INT);
});
stop_under_load(is_ours() ? 'native' : 'ref', 'TERM', 1);

done_testing();
