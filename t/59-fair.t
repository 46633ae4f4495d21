#!/usr/bin/env perl
# --fair: two addresses with 100 connections and with 10. Tokens of a limit are shared by addresses,
# not by connections, and so are small requests that are ready at once; by prefixes and classes too.
# What was given is counted by the server, while there is more to do than tokens for it.
use MCTest ':ours';

my ($MANY, $FEW) = ('127.0.0.2', '127.0.0.3');
my $REQUESTS = 1000; # of each address

# Connections from both, which say what they have to say: `$say->(address)` as often as it takes.
sub crowd($server, $say) {
    my @socks;
    for my $group ([$MANY, 100], [$FEW, 10]) {
        my ($from, $count) = @$group;
        for (1 .. $count) {
            my $sock = $server->connect(from => $from);
            put($sock, $say->($from) x ($REQUESTS / $count));
            push @socks, $sock;
        }
    }
    return @socks;
}

# Of each tenant by name: its lines of "stats fair".
sub tenants($server) {
    my $stats = mem_stats($server->control, 'fair');
    my %of;
    for my $line (keys %$stats) {
        my ($nth, $what) = $line =~ /^(\d+):(.*)/ or next;
        $of{$stats->{"$nth:name"}}{$what} = $stats->{$line};
    }
    return \%of;
}

sub waiting($server, $name) {
    return (tenants($server)->{$name} // {})->{waiting} // 0;
}

# At one token a second until all wait; then quickly, and while both have more to do one look.
sub tokens($server, $say, $many, $few) {
    my @socks = crowd($server, $say);
    soon { waiting($server, $many) == 100 && waiting($server, $few) == 10 } "$many and $few wait";
    exchange($server->control, "qos qps_limit 500 1\r\n", "OK\r\n");
    my $of;
    soon {
        $of = tenants($server);
        $of->{$many}{tokens} + $of->{$few}{tokens} >= 300;
    } 'tokens are given';
    cmp_ok(abs($of->{$many}{tokens} - $of->{$few}{tokens}), '<=', 20,
        "$many and $few have the same: $of->{$many}{tokens}, $of->{$few}{tokens}");
    return @socks;
}

my @LIMITED = ('-t', '1', '--qps-limit=1,burst=1');
for my $row (['peer', $MANY, $FEW, sub ($from) { "get a\r\n" }],
    ['prefix', 'many', 'few', sub ($from) { $from eq $MANY ? "get many:a\r\n" : "get few:a\r\n" }],
    ['class', 'small', 'write', sub ($from) { $from eq $MANY ? "get a\r\n" : "delete a\r\n" }])
{
    my ($by, $many, $few, $say) = @$row;
    my ($server) = serve(@LIMITED, "--fair=$by");
    my @socks = tokens($server, $say, $many, $few);
}

# A client that leaves takes nothing along.
{
    my ($server) = serve(@LIMITED, '--fair=peer');
    my @socks = tokens($server, sub ($from) { "get a\r\n" }, $MANY, $FEW);
    close $_ for @socks;
    soon { !grep { $_->{waiting} } values %{tenants($server)} } 'nobody waits when all have left';
}

# Small requests that are ready at once, when the server comes to them: some are served where they
# are read, the others by turns.
{
    my ($server) = serve('-t', '1', '-U', '-1');
    my $control = $server->control;
    exchange($control, "qos fair peer\r\n", "OK\r\n");
    my @socks = map { $server->connect(from => $_ % 2 ? $MANY : $FEW) } 1 .. 100;
    roundtrip($_, "get a\r\n") for @socks; # all are there
    my $before = mem_stats($control, 'fair')->{fair_deferred};
    kill 'STOP', $server->pid;
    wait_until(sub { is_stopped($server) });
    put($_, "get a\r\n") for @socks;
    kill 'CONT', $server->pid;
    is(scalar(grep { read_line($_) eq "END\r\n" } @socks), 100, 'all are served');
    has(mem_stats($control, 'fair'), 'some waited for their turn',
        fair => 'peer', fair_tenants => ['>=', 2], fair_deferred => ['>', $before]);
    my $of = tenants($server);
    has($of->{$_}, "$_ is known", requests => ['>', 0], turns => ['>', 0], waiting => 0)
        for $MANY, $FEW;
    exchange($control, "qos fair off\r\n", "OK\r\n");
    is(mem_stats($control, 'qos')->{fair}, 'off', 'and it ends');
}

# The command and the option.
{
    my ($server, $s) = serve();
    exchange($s, "qos fair\r\n", "CLIENT_ERROR usage: qos fair <off|peer|prefix|class>\r\n");
    exchange($s, "qos fair peers\r\n", "CLIENT_ERROR usage: qos fair <off|peer|prefix|class>\r\n");
    is(mem_stats($s, 'qos')->{fair}, 'off', 'it is off by default');
    exchange($s, "qos fair class\r\n", "OK\r\n");
    is(mem_stats($s, 'qos')->{fair}, 'class', 'and can be set');
}

done_testing();
