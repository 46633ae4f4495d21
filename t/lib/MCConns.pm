# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 the memcached-qos authors
#
# What a server says of its connections.
package MCConns;

use MCTest;
use Exporter 'import';

our @EXPORT = qw(conn_stats);

# What `stats conns` says of the server's end of the connection; empty until a worker has it.
sub conn_stats($server, $sock) {
    my $port = $sock->sockport;
    my ($fd, %of);
    for (stat_lines($server->control, 'conns')) {
        my ($number, $name, $value) = /^STAT (\d+):(\S+) (.*?)$/ or next;
        $of{$number}{$name} = $value;
        $fd = $number if $name eq 'addr' && $value =~ /^tcp:127\.0\.0\.1:$port$/;
    }
    return defined $fd ? $of{$fd} : {};
}

1;
