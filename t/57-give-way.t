#!/usr/bin/env perl
# A worker that works for long gives way to another one that waits for the same CPU.
use MCTest ':ours';

my ($cpu) = read_file('/proc/self/status') =~ /^Cpus_allowed_list:\s*(\d+)/m;
plan skip_all => 'needs taskset' if system("taskset -c $cpu true 2>/dev/null") != 0;

sub gave_way($sock) {
    return { map { /^STAT (\S+) (.*)/ ? ($1 => $2) : () } stat_lines($sock, 'pin') }->{sched_gave_way};
}

my @clients;
my $count = 2000; # each takes about a microsecond

# Each worker has several of them. All are answered, whichever gives way.
sub work() {
    put($_, "mn\r\n" x $count) for @clients;
    return !grep { read_bytes($_, 4 * $count) ne "MN\r\n" x $count } @clients;
}

for my $threads (2, 1) {
    my ($server, $s) = serve('-t', $threads, {wrap => ['taskset', '-c', $cpu]});
    my $before = gave_way($s);
    @clients = map { $server->connect } 1 .. 8;
    if ($threads > 1) {
        soon { work() && gave_way($s) > $before } 'of two workers one gives way';
    } else {
        ok(work(), 'one worker serves all');
        is(gave_way($s), 0, '... and there is nobody to give way to');
    }
}

done_testing();
