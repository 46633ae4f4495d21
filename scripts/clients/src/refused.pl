# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 the memcached-qos authors
#
# scripts/clients/refused runs this: the calls of Cache::Memcached::Fast.
# usage: refused.pl VARIANT TIMEOUT HOST PORT
use strict;
use warnings;

exit 77 if !eval { require Cache::Memcached::Fast; 1 };
my (undef, $timeout, $host, $port) = @ARGV;
my $name = "Cache::Memcached::Fast $Cache::Memcached::Fast::VERSION";

sub client {
    return Cache::Memcached::Fast->new({servers => ["$host:$port"], connect_timeout => $timeout, io_timeout => $timeout});
}

sub word {
    my ($value) = @_;
    return !defined $value ? 'undef'
        : ref $value ? '{' . join(', ', map { "'$_' => " . word($value->{$_}) } sort keys %$value) . '}'
        : "'$value'";
}

sub said {
    my ($call) = @_;
    my $value;
    eval { $value = $call->(); 1 } or return "dies: $@";
    return word($value);
}

for my $case (
    [get => sub { scalar client()->get('g') }],
    [get_multi => sub { client()->get_multi('m1', 'm2') }],
    [set => sub { scalar client()->set('s', '2') }],
    [incr => sub { scalar client()->incr('n', 1) }],
    [delete => sub { scalar client()->delete('d') }],
) {
    print join("\t", $name, $case->[0], said($case->[1])), "\n";
}
my $kept = client();
said(sub { scalar $kept->get('g') }) for 1 .. 5;
$| = 1;
print "ready\n";
<STDIN>;
print join("\t", $name, 'then', said(sub { scalar $kept->get('g') })), "\n";
