#!/usr/bin/env perl
# Targets of several classes at once: each class answers for its own, and what a deferred one has to
# refuse is taken from the lowest class first.
use MCTest ':ours';

my $BATCH = 20;
my $REFUSED = "SERVER_ERROR 307 busy\r\n";

my $server = serve('-t', '1', '--slo=small=p99:100s', {env => slowed(5)});
my %conn = map { $_ => $server->connect } qw(small write bulk background);
exchange($conn{$_}, "qos class $_\r\n", "OK\r\n", "a connection is $_") for sort keys %conn;

sub qos { return mem_stats($server->control, 'qos'); }

# As many requests of each class at the same time; how many of each were refused.
sub offer {
    my @classes = @_;
    my %refused;
    put($conn{$_}, $_ eq 'write' ? "delete a\r\n" x $BATCH : "get a\r\n" x $BATCH) for @classes;
    for my $class (@classes) {
        my @lines = map { read_line($conn{$class}) } 1 .. $BATCH;
        $refused{$class} = grep { $_ eq $REFUSED } @lines;
        my @wrong = grep { !/\A(?:END\r\n|NOT_FOUND\r\n|\Q$REFUSED\E)\z/ } @lines;
        die "$class: @wrong" if @wrong;
    }
    return \%refused;
}

# Until a round is as wanted. It may take several: a test that stands still lets the server forget.
sub offer_until($wanted, @classes) {
    return wait_until(sub { return $wanted->(offer(@classes)); });
}

# What each class was refused since.
sub shed_since($before) {
    my $after = qos();
    return map { $_ => $after->{"slo_shed_$_"} - $before->{"slo_shed_$_"} } keys %conn;
}

# No request waits for less than half a nanosecond: whoever has such a target has a queue.
my $before = qos();
exchange($conn{small}, "qos slo bulk p50:1ns\r\n", "OK\r\n");
ok(offer_until(sub { return $_[0]{bulk} > 0; }, qw(small write bulk)), 'a class with a target is refused');
my %shed = shed_since($before);
cmp_ok($shed{bulk}, '>', 0, 'it is counted with its class');
is("$shed{small} $shed{write}", '0 0', 'those above it are not');
has(qos(), 'the other target shows, its own, too', slo_small => 'p99:100000000us', slo_bulk => 'p50:1ns');
ok(offer_until(sub { my ($r) = @_; return $r->{background} == $BATCH && $r->{bulk} > 0; }, qw(small bulk background)),
    'the class below goes before');
exchange($conn{small}, "qos slo bulk off\r\n", "OK\r\n");
ok(offer_until(sub { my ($r) = @_; return !grep { $_ } values %$r; }, keys %conn), 'without it all are served');

# One in ten of three classes stays at the least: those of the highest.
$before = qos();
exchange($conn{small}, "qos slo write p50:1ns\r\n", "OK\r\n");
my @firsts;
ok(offer_until(sub {
    my ($r) = @_;
    for my $class (qw(background bulk write)) {
        push @firsts, $class if $r->{$class} > 0 && !grep { $_ eq $class } @firsts;
    }
    return $r->{background} == $BATCH && $r->{bulk} == $BATCH && $r->{write} > 0 && $r->{write} < $BATCH;
}, keys %conn), 'the lowest two are refused, of the class itself a part');
is("@firsts", 'background bulk write', 'in this order');
%shed = shed_since($before);
has(\%shed, 'the lowest most often, the highest least, small ones keep their target',
    background => ['>=', $shed{bulk}], bulk => ['>=', $shed{write}], small => 0);
soon { offer(keys %conn); return qos()->{slo_level_pct} < 100; } 'the level shows';
exchange($conn{small}, "qos slo write off\r\n", "OK\r\n");
ok(offer_until(sub { my ($r) = @_; return !grep { $_ } values %$r; }, keys %conn), 'without it all are served');

# Small ones that are late are known when they come: one in ten is served when all are, and those below
# keep their shares of the worker.
$before = qos();
exchange($conn{small}, "qos slo small p50:1ns\r\n", "OK\r\n");
ok(offer_until(sub {
    my ($r) = @_;
    return $r->{small} > 0 && $r->{small} < $BATCH;
}, keys %conn), 'small ones are refused, some are served');
%shed = shed_since($before);
is("$shed{write} $shed{bulk} $shed{background}", '0 0 0', 'none of those below is');
my $q = qos();
is($q->{slo_shed}, $q->{slo_shed_small} + $q->{slo_shed_write} + $q->{slo_shed_bulk} + $q->{slo_shed_background},
    'the sum is that of the classes');
cmp_ok($q->{slo_shed_late}, '<=', $q->{slo_shed_small}, 'only small ones were late themselves');
exchange($conn{small}, "qos slo small p99:100s\r\n", "OK\r\n");
ok(offer_until(sub { my ($r) = @_; return !grep { $_ } values %$r; }, keys %conn), 'and all are served again');
soon { offer(keys %conn); return qos()->{slo_level_pct} == 100; } 'and the level says so';

done_testing();
