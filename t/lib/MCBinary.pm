# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 the memcached-qos authors
#
# The binary protocol for the Perl tests: packets built and taken apart byte by byte, on
# sockets of MCTest.
package MCBinary;

use MCTest;
use Exporter 'import';

our @EXPORT = qw(
    packet request response error_bytes unpack_packet read_packet ask answers silent bin_stats bin_alive
    store_extras sum_extras library_lacks NO_CREATE OPAQUE
);

use constant {OPAQUE => 0xdeadbeef, NO_CREATE => 0xffffffff, HEADER => 24};

sub u64 { return pack 'NN', $_[0] >> 32, $_[0] & 0xffffffff; }

# packet($opcode, key => ..., value => ..., extras => ..., cas => ..., opaque => ...). The
# header tells the truth unless key_len, extras_len, body_len or magic say otherwise.
sub packet($opcode, %f) {
    my ($extras, $key, $value) = map { $_ // '' } @f{qw(extras key value)};
    my $body = $extras . $key . $value;
    return pack('CCnCCnNN', $f{magic} // 0x80, $opcode, $f{key_len} // length $key,
        $f{extras_len} // length $extras, 0, 0, $f{body_len} // length $body,
        $f{opaque} // OPAQUE) . u64($f{cas} // 0) . $body;
}

# The same with what is there by place.
sub request($opcode, $key = undef, $extras = undef, $value = undef) {
    return packet($opcode, key => $key, extras => $extras, value => $value);
}

# (status, body) of the next reply; nothing when there is none.
sub response($sock) {
    my $p = read_packet($sock) or return ();
    return ($p->{status}, "$p->{extras}$p->{key}$p->{value}");
}

# A refusal as it is on the wire.
sub error_bytes($opcode, $status, $text, $opaque = undef) {
    return pack('CCnCCnNNQ>', 0x81, $opcode, 0, 0, 0, $status, length $text, $opaque // OPAQUE, 0) . $text;
}

sub store_extras { return pack 'NN', $_[0] // 0, $_[1] // 0; }                 # flags, expiry
sub sum_extras { return u64($_[0]) . u64($_[1] // 0) . pack 'N', $_[2] // 0; } # delta, initial, expiry

# The packet at the front of $bytes, or undef while it is not whole.
sub unpack_packet($bytes) {
    return undef if length $bytes < HEADER;
    my ($magic, $opcode, $key_len, $extras_len, $type, $status, $body_len, $opaque, $hi, $lo)
        = unpack 'CCnCCnNNNN', $bytes;
    return undef if length $bytes < HEADER + $body_len;
    my $body = substr $bytes, HEADER, $body_len;
    return {
        magic => $magic, opcode => $opcode, type => $type, status => $status,
        opaque => $opaque, cas => $hi << 32 | $lo, size => HEADER + $body_len,
        extras => substr($body, 0, $extras_len), key => substr($body, $extras_len, $key_len),
        value => substr($body, $extras_len + $key_len),
    };
}

# The next packet, or undef.
sub read_packet($sock) {
    my $header = read_bytes($sock, HEADER);
    return undef if length $header < HEADER;
    my $body = read_bytes($sock, unpack 'x8N', $header);
    return unpack_packet($header . $body);
}

sub ask($sock, $opcode, %f) {
    put($sock, packet($opcode, %f));
    return read_packet($sock);
}

# Asserts that the next packet is the reply to opcode with these fields and nothing in the
# others. cas => 'some' is any but 0. Returns the packet.
sub answers($sock, $opcode, $want, $name) {
    local $Test::Builder::Level = $Test::Builder::Level + 1;
    my %want = (magic => 0x81, opcode => $opcode, type => 0, status => 0, cas => 0,
        extras => '', key => '', value => '', opaque => OPAQUE, %$want);
    my $got = read_packet($sock);
    if (!$got) {
        fail($name);
        diag('    no packet');
        return undef;
    }
    my @wrong = grep {
        $want{$_} eq 'some' ? $got->{$_} == 0
            : /^(extras|key|value)$/ ? $got->{$_} ne $want{$_} : $got->{$_} != $want{$_}
    } sort keys %want;
    my $ok = ok(!@wrong, $name);
    diag("    $_ is " . MCTest::show($got->{$_}) . ', not ' . MCTest::show($want{$_})) for @wrong;
    return $got;
}

# Asserts that the request has no answer: the one of a NOOP behind it comes next.
sub silent($sock, $opcode, %f) {
    local $Test::Builder::Level = $Test::Builder::Level + 1;
    my $name = delete $f{name} // sprintf '%02x is silent', $opcode;
    put($sock, packet($opcode, %f) . packet(0x0a, opaque => 77));
    return answers($sock, 0x0a, {opaque => 77}, $name);
}

# Asserts that the connection is in step.
sub bin_alive($sock, $name = undef) {
    local $Test::Builder::Level = $Test::Builder::Level + 1;
    put($sock, packet(0x0a, opaque => 4711));
    return answers($sock, 0x0a, {opaque => 4711}, $name);
}

# The statistics of a group by name; undef when it was refused.
sub bin_stats($sock, $group = undef) {
    put($sock, packet(0x10, key => $group // ''));
    my %stats;
    while (my $p = read_packet($sock)) {
        return undef if $p->{status} != 0;
        return \%stats if $p->{key} eq '';
        $stats{$p->{key}} = $p->{value};
    }
    return undef;
}

# Into the folder that SASL_CONF_PATH is to name: libsasl2's settings for memcached with a user of its
# own database; why there can be none.
sub library_lacks($dir, $mechanisms, $user, $password) {
    my ($tool) = grep { -x } map { "$_/saslpasswd2" } split(/:/, $ENV{PATH}), '/usr/sbin';
    return 'no saslpasswd2' if !$tool;
    my $probe = run_program('-S', '-u', 'no-such-user-here');
    return 'built without libsasl2' if $probe->{err} =~ /not built with SASL/;
    write_file("$dir/memcached.conf", "mech_list: $mechanisms\nsasldb_path: $dir/sasldb\n");
    open my $pipe, '|-', "$tool -a memcached -c -p -f $dir/sasldb $user" or die "$tool: $!";
    print $pipe $password;
    return close $pipe ? '' : 'saslpasswd2 failed';
}

1;
