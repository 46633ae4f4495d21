#!/usr/bin/env perl
# Refusals for the SLO are kept for a while, so that those of several reads go out together: each
# request gets one reply all the same, in order, also when the client closes its side.
use MCTest ':ours';
use IO::Handle;
use Socket qw(SHUT_WR);

my $CLIENTS = 16;
my $BATCH = 50;
my $FLOOD = "get a b c d e f\r\n" x $BATCH;

my $server = serve('-t', '1', '--slo=p50:5us');

sub qos { return mem_stats($server->control, 'qos'); }

# No request of a flood waits for less than a few microseconds: a queue stands.
# All send without waiting for replies until enough has been kept back; then they close their
# side, or ask for the version. What was sent and what was answered: [requests, replies].
sub flood($ending) {
    my @clients = map { {sock => $server->connect, sent => 0, left => '', got => ''} } 1 .. $CLIENTS;
    $_->{sock}->blocking(0) for @clients;
    my $is_over = 0;
    my $held = qos()->{slo_held};
    my $end = time + 60;
    for (my $round = 0; grep { !$_->{is_done} } @clients; $round++) {
        $is_over = qos()->{slo_held} - $held >= 100 || time > $end if !$is_over && ($round % 200 == 199
            || time > $end);
        for my $c (grep { !$_->{is_done} } @clients) {
            if ($c->{left} eq '' && !$is_over) {
                $c->{left} = $FLOOD;
                $c->{sent} += $BATCH;
            }
            if ($c->{left} eq '' && !$c->{is_closed}++) {
                $c->{left} = "version\r\n" if $ending eq 'version';
                $c->{sock}->shutdown(SHUT_WR) if $ending eq 'close';
            }
            my $n = $c->{left} eq '' ? 0 : syswrite $c->{sock}, $c->{left};
            substr $c->{left}, 0, $n, '' if $n;
            my $more = sysread $c->{sock}, $c->{got}, 1 << 18, length $c->{got};
            $c->{is_done} = defined $more && $more == 0
                || $ending eq 'version' && $c->{got} =~ /VERSION [\d.]+\r\n\z/;
        }
        if ($is_over) {
            my $some = IO::Select->new(map { $_->{sock} } grep { !$_->{is_done} } @clients);
            last if $some->count && !$some->can_read(60);
        }
    }
    return @clients;
}

for my $ending (qw(version close)) {
    my $before = qos();
    my @clients = flood($ending);
    my $after = qos();
    cmp_ok($after->{slo_shed}, '>', $before->{slo_shed}, "$ending: some are refused");
    cmp_ok($after->{slo_held}, '>', $before->{slo_held}, "$ending: refusals are kept");
    my $wrong = 0;
    for my $c (@clients) {
        my $replies = $c->{got} =~ s/^(?:END|SERVER_ERROR 307 busy)\r\n//mg;
        $wrong++ if $replies != $c->{sent} || $c->{got} !~ /\A(?:VERSION [\d.]+\r\n)?\z/;
    }
    is($wrong, 0, "$ending: each request has its reply, and nothing else is there");
}

done_testing();
