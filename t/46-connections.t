#!/usr/bin/env perl
# 10,000 connections opened and dropped leave nothing behind; hundreds at once are served.
use MCTest;
use MCConns;

# But for the kernel's files, which the server reads now and then.
sub open_files($pid) {
    return scalar grep { (readlink // '/proc/') !~ m{^/(?:proc|sys)/} } glob "/proc/$pid/fd/*";
}

each_profile(sub ($profile) {
    my $server = serve($profile);
    my $s = $server->control;
    my $before = mem_stats($s);
    for my $i (1 .. 500) {
        $server->connect;
    }
    ok(all_have_left($s, $before, 500), '500 connections warm up');
    my $rss = proc_status($server->pid, 'VmRSS');
    my $files = open_files($server->pid);
    my $bad = 0;
    my $many = $profile eq '1.4' ? 10_000 : 1_000; # what is opened and closed knows no profile
    for my $i (1 .. $many) {
        my $c = $server->connect;
        next if $i % 3 == 0;
        put($c, "version\r\n");
        next if $i % 3 == 1;
        $bad++ if read_line($c) ne VERSION_REPLY($profile);
    }
    is($bad, 0, "$many connections opened and dropped");
    ok(all_have_left($s, $before, $many + 500), 'none is left');
    is(mem_stats($s)->{total_connections} - $before->{total_connections}, $many + 500, 'all are counted');
    is(open_files($server->pid), $files, 'no descriptor leaks') if is_ours();
    cmp_ok(proc_status($server->pid, 'VmRSS') - $rss, '<', $ENV{ASAN_OPTIONS} ? 60_000 : 20_000, 'nor memory');

    my @many = map { $server->connect } 1 .. 500;
    put($many[$_], "set k$_ 0 0 3\r\nabc\r\n") for 0 .. $#many;
    $bad = grep { read_line($_) ne "STORED\r\n" } @many;
    is($bad, 0, '500 connections at once');
    put($many[$_], 'get k' . (($_ + 7) % 500) . "\r\n") for 0 .. $#many;
    for my $i (0 .. $#many) {
        my $want = 'VALUE k' . (($i + 7) % 500) . " 0 3\r\nabc\r\nEND\r\n";
        $bad++ if read_bytes($many[$i], length $want) ne $want;
    }
    is($bad, 0, 'each gets its own reply');
    @many = ();
});

# The states of `stats conns`, where they last. Each client is told by its port.
sub state_of($server, $sock) {
    return conn_stats($server, $sock)->{state} // 'none';
}

sub state_becomes($server, $sock, $want, $name) {
    local $Test::Builder::Level = $Test::Builder::Level + 1;
    my $got;
    wait_until(sub { $got = state_of($server, $sock); $got eq $want });
    is($got, $want, $name);
}

each_profile(sub ($profile) {
    plan skip_all => 'of this server' if !is_ours();
    my ($server, $s) = serve($profile, '-m', '64', '-I', '4m',
            $profile eq '1.4' ? ('-o', 'slab_chunk_max=524288') : ());
    my $big = 'b' x 4000000;
    exchange($s, "set big 0 0 4000000\r\n$big\r\n", "STORED\r\n", 'a big value');
    state_becomes($server, $s, 'conn_read', 'an idle client is in conn_read');
    my $swallow = $server->connect;
    put($swallow, "set large 0 0 9000000\r\nxxx");
    state_becomes($server, $swallow, 'conn_swallow', 'a value that is too large');
    my $half = $server->connect;
    put($half, "set half 0 0 10\r\nxxx");
    state_becomes($server, $half, 'conn_nread', 'half a value');
    my $stuck = $server->connect;
    put($stuck, "get big big big\r\n");
    state_becomes($server, $stuck, 'conn_mwrite', 'a reply that is not read');
    my $closing = $server->connect;
    put($closing, "get big big big\r\nquit\r\n");
    state_becomes($server, $closing, 'conn_mwrite', 'a reply before quit');
    my @fds = map { /^STAT (\d+):addr/ ? $1 : () } stat_lines($s, 'conns');
    is("@fds", join(' ', sort { $a <=> $b } @fds), 'in ascending order of descriptors');
    $server->stop;

    ($server, $s) = serve($profile, '--qps-limit=1,burst=1', '-t', '1');
    put($s, "get a\r\n" x 30);
    state_becomes($server, $s, 'conn_waiting', 'a request over the limit');
    close $s;
    $server->stop;

    my $path = scratch_dir() . "/states.$profile";
    ($server, $s) = serve($profile, '-s', $path, {path => $path});
    exchange($s, "version\r\n", VERSION_REPLY($profile));
    my @addr = map { /^STAT \d+:addr (.*)$/ ? $1 : () } stat_lines($s, 'conns');
    is($addr[0], "unix:$path", 'the UNIX listener comes first');
    like($_, qr/^unix:\S+$/, 'a UNIX client has an address without blanks') for @addr[1 .. $#addr];
    if ($profile eq '1.6') {
        my @listen = map { /^STAT \d+:listen_addr (.*)$/ ? $1 : () } stat_lines($s, 'conns');
        is($listen[0], "unix:$path", 'and names its listener');
    }
});

done_testing();
