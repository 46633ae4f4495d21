#!/usr/bin/env perl
# Statistics that are asked for while another client resets them do not go below zero.
use MCTest ':ours';

my $ROUNDS = 150;
my $server = serve('1.6', '-t', '4');

# A client of its own that repeats its commands until it is told to end.
sub spawn_client($commands) {
    return in_child(sub {
        local $SIG{ALRM} = sub { POSIX::_exit(1) };
        alarm 60;
        my $s = $server->connect;
        while (1) {
            put($s, $commands . "mn\r\n");
            my $line;
            do { $line = read_line($s) // POSIX::_exit(0) } while $line !~ /^MN/;
        }
    });
}

my @clients = (spawn_client("set a 0 0 1\r\nx\r\nget a b\r\n" x 50),
    spawn_client("set b 0 0 1\r\nx\r\nget a b\r\n" x 50), spawn_client("stats reset\r\n" x 50));

my $s = $server->connect;
my @below;
for (1 .. $ROUNDS) {
    my $groups = 4;
    put($s, "stats\r\nstats slabs\r\nstats items\r\nstats\r\n");
    while ($groups > 0) {
        my $line = read_line($s);
        $groups-- if $line =~ /^END/;
        push @below, $1 if $line =~ /^STAT (\S+ \d{19,})/;
    }
}
is("@below[0 .. ($#below < 5 ? $#below : 5)]", '', 'no counter is below zero');

kill 'KILL', @clients;
waitpid $_, 0 for @clients;
done_testing();
