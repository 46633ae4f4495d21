#!/usr/bin/env perl
# A bad option or value ends the start with the documented exit status and one clear line.
use MCTest;

my $dir = scratch_dir();

# exit status (or list of allowed ones), pattern of the message, arguments
sub refused($profile, $status, $pattern, @args) {
    my @all = (is_ours() ? "--compat=$profile" : (), '-p', '-1', @AS_ROOT, @args);
    push @all, '-l', '127.0.0.1' if !grep { /^-l/ } @args;
    my $run = run_program(@all);
    my $name = "@args";
    if ($run->{timed_out}) {
        fail("$name: is refused");
        return diag('    the server started');
    }
    is($run->{signal}, 0, "$name: no crash");
    my %allowed = map { $_ => 1 } ref $status ? @$status : $status;
    ok($allowed{$run->{status}}, "$name: exit status " . join ' or ', sort keys %allowed)
        or diag("    got: $run->{status}");
    my @lines = grep { /\S/ } split /\n/, $run->{err} . $run->{out};
    ok((grep { $_ =~ $pattern } @lines), "$name: message") or diag("    got: @lines");
    is(scalar(@lines), 1, "$name: one line") or diag(join "\n", @lines) if is_ours();
}

each_profile(sub ($profile) {
    my $size = pick($profile, '1.4' => 1, '1.6' => 64, ref => [1, 64]);

    refused($profile, 1, qr/greater than 0|Maximum connections/i, '-c', '0');
    refused($profile, 1, qr/greater than 0|Maximum connections/i, '-c', '-1');
    refused($profile, @$_) for [1, qr/threads/i, '-t', '0'], [1, qr/factor/i, '-f', '1'],
        [1, qr/factor/i, '-f', '0.5'], [1, qr/chunk size|-n/i, '-n', '0'],
        [1, qr/requests per event|-R/i, '-R', '0'], [71, qr/fooble|getaddrinfo|listen/i, '-l', 'fooble'];
    refused($profile, 71, qr/tcp|port|getaddrinfo|listen/i, '-l', 'tcp:127.0.0.1') if $profile ne 'ref';
    refused($profile, $size, qr/1024|item/i, '-I', '1000');
    refused($profile, $size, qr/memory|item/i, '-I', '256m');
    refused($profile, $size, qr/-m @{[pick($profile, '1.4' => 513, '1.6' => 257)]} or more, or a smaller -I/,
        '-I', 128 * 1048576 + 1) if is_ours();
    refused($profile, $size, qr/gigabyte|memory|item/i, '-m', '16384', '-I', '2048m') if $profile ne 'ref';
    refused($profile, 1, qr/suboption|fooble/i, '-o', 'fooble') if $profile ne 'ref';
    refused($profile, 1, qr/hashpower|hashtable/i, '-o', 'hashpower=3');
    refused($profile, 1, qr/hashpower/i, '-o', 'hashpower');
    refused($profile, 64, qr/binding|protocol|http/i, '-B', 'http') if $profile eq 'ref';
    if (is_ours()) {
        refused($profile, @$_) for [[1, 64], qr/-m|memory/i, '-m', '0'], [[1, 64], qr/-m|memory/i, '-m', '-5'],
            [[1, 64], qr/-m|memory/i, '-m', 'much'], [[1, 64], qr/-m|memory/i, '-m', '99999999999999999999'],
            [[1, 64], qr/-c|conn/i, '-c', '10x'], [[1, 64], qr/-t|thread/i, '-t', 'two'],
            [[1, 64], qr/port|-p/i, '-p', '65536'], [[1, 64], qr/port|-p/i, '-p', 'http'],
            [[1, 64], qr/pin|fooble/i, '--pin=fooble'], [[1, 64], qr/pin|list/i, '--pin=list:'],
            [[1, 64], qr/pin|list/i, '--pin=list:x'], [[1, 64], qr/pin|list/i, '--pin=list:3-1'];
        refused($profile, [1, 64], qr/qps|limit|burst/i, "--qps-limit=$_") for '', '0', '-1', 'x', '10x',
            '10,burst', '10,burst=0', '10,burst=x', '10,fooble=3', '99999999999999999999', '50kk';
        refused($profile, 64, qr/a limit is a number|a target is pNN/, $_)
            for '--qps-limit=80k,', '--qps-limit=,80k', '--slo=p95:500us,';
        refused($profile, 64, qr/given twice/, $_) for '--qps-limit=80k,70k', '--slo=p95:500us,p99:1ms';
        refused($profile, 64, qr/class-max-wait must be/, "--$_-max-wait=5") for qw(class prio);
        refused($profile, [1, 64], qr/compat/i, '--compat=1.5');
        refused($profile, [1, 64], qr/-B|protocol/i, '-B', 'http');
        # what is no option: what was meant; an abbreviation never means a new option
        for my $case (
            ['--qps-limt=50k', 'unknown option --qps-limt; did you mean --qps-limit? See --help'],
            ['--thread-count=4', 'unknown option --thread-count. See --help'],
            ['--lru_crawler', 'unknown option --lru_crawler; did you mean -o lru_crawler? See --help'],
            ['--slo-target=1', 'unknown option --slo-target. See --help'],
            ['--resctrl-s=1', 'unknown option --resctrl-s; did you mean --resctrl-schemata? See --help'],
            ['--p=1', 'option --p is ambiguous: --port, --pidfile or --protocol. See --help'],
            ['--balance=on', 'option --balance takes no value: --balance=on'],
            ['--steer', 'option --steer needs a value: rr, cpu, reuseport, napi or p2c'],
            ['--membind', 'option --membind needs a value: interleave, local, node:K or none'],
            ['--sched', 'option --sched needs a value: other:N, slice:T, fifo[:P], rr[:P], bvt or batch'],
            ['--classes', 'option --classes needs a value: on or off'],
            ['--udp-guard', 'option --udp-guard needs a value: on or off'],
            ['--qps-limit-unit', 'option --qps-limit-unit needs a value: cmd or key'],
            ['--qps-limit-action', 'option --qps-limit-action needs a value: delay, error, miss or delay:TIME+error'],
            ['-B', 'option -B needs a value: auto, ascii or binary'],
            ['-p', 'option -p needs a value: N'],
        ) {
            my ($arg, $message) = @$case;
            my $run = run_program("--compat=$profile", @AS_ROOT, $arg);
            is($run->{err} . $run->{out}, "memcached: $message\n", "$arg: message");
            is($run->{status}, 1, '... exit status');
        }
        # a value that is none of the words: the message has them all
        for my $case (['--pin=bogus', qw(spread compact cores llc none list)],
            ['--steer=bogus', qw(rr cpu reuseport napi p2c)], ['--sched=bogus', qw(other slice fifo rr batch)],
            ['--membind=bogus', qw(interleave local node none)], ['--classes=bogus', qw(on off)],
            ['--udp-guard=bogus', qw(on off)], ['--qps-limit-action=bogus', qw(delay error miss delay:TIME)],
            ['--qps-limit-unit=bogus', qw(cmd key)])
        {
            my ($arg, @words) = @$case;
            my $run = run_program("--compat=$profile", @AS_ROOT, $arg);
            is($run->{status}, 64, "$arg: exit status");
            like($run->{err}, qr/\b\Q$_\E\b.*bogus/, "$arg: the message has $_") for @words;
        }
        refused($profile, @$_) for [[1, 64], qr/fooble/i, '--fooble'], [[1, 64], qr/factor|-f/i, '-f', 'x'],
            [[1, 64], qr/factor|-f/i, '-f', 'nan'], [[64, 1], qr/slab_chunk_max/i, '-o', 'slab_chunk_max='
            . pick($profile, '1.4' => 2097152, '1.6' => 2048)], [[64, 1], qr/slab_chunk_max/i, '-o',
            'slab_chunk_max=0'], [[1, 71], qr/too low|-c|rlimit|open files|conn/i, '-c', '5', '-t', '4'], [71,
            qr/socket|path|No such/i, '-s', "$dir/absent/directory/socket"], [[1, 64, 71],
            qr/long|path|socket/i, '-s', "$dir/" . ('s' x 200)];
    }

    # unknown option letter: getopt's own message comes first
    my $run = run_program((is_ours() ? "--compat=$profile" : ()), '-Q', @AS_ROOT);
    is($run->{status}, 1, 'unknown option -Q exits 1');
    like($run->{err}, qr/\A[^\n]*invalid option -- 'Q'\nIllegal argument "\?"\n\z/, 'and is named');
    $run = run_program((is_ours() ? "--compat=$profile" : ()), '-p', @AS_ROOT ? () : ());
    isnt($run->{status}, 0, '-p without an argument is refused');
});

if (is_ours()) {
    my $run = run_program('-AQ', @AS_ROOT);
    is($run->{err}, "memcached: unknown option -Q. See --help\n", 'an unknown letter, by default');
    is($run->{status}, 1, '... exit status');
    is(run_program('-qps-limit=50k', @AS_ROOT)->{err}, "memcached: unknown option -q; did you mean --qps-limit? See --help\n",
        '... a name with one dash');
    is(run_program('-qps', @AS_ROOT)->{err}, "memcached: unknown option -q. See --help\n", '... no name');
}

SKIP: {
    skip 'only root can change user', 4 if $> != 0;
    my $run = run_program('-u', 'no-such-user-here', '-p', '-1', '-l', '127.0.0.1');
    has($run, 'an unknown user exits 67, and is named', status => 67, err => qr/no-such-user-here/);
    $run = run_program('-p', '-1', '-l', '127.0.0.1');
    is($run->{status}, 64, 'root without -u exits 64');
    is($run->{err}, "memcached: can't run as root without the -u switch; give the user to run as, such as -u nobody\n",
        'and the message says what to do') if is_ours();
}

# what is only printed, and cannot be
SKIP: {
    skip 'of this server', 6 if !is_ours() || !-c '/dev/full';
    my @server = split ' ', ($ENV{MEMCACHED} || './memcached/memcached');
    for my $option ('--pin-dry-run', '-h', '-V') {
        my $run = run_program({command => ['sh', '-c', 'exec "$@" >/dev/full', 'sh', @server,
            $option, '--pin=none', @AS_ROOT]});
        is($run->{status}, 71, "$option on a full disk exits 71");
        like($run->{err}, qr/\Amemcached: cannot write to standard output: [^\n]+\n\z/, '... and says so');
    }
}

# a port that is taken
{
    my $taken = IO::Socket::INET->new(LocalAddr => '127.0.0.1', Listen => 1, Proto => 'tcp');
    my $port = $taken->sockport;
    my $run = run_program('-l', '127.0.0.1', '-p', $port, '-U', '0', @AS_ROOT);
    is($run->{status}, 71, 'a port that is taken exits 71');
    like($run->{err} . $run->{out}, qr/$port|in use/, 'and the message names it');
}

# what else cannot be listened on: the address, the reason, what to do
if (is_ours()) {
    my $has_low_ports = `cat /proc/sys/net/ipv4/ip_unprivileged_port_start` > 80;
    write_file("$dir/file");
    my $locked = "$dir/locked";
    mkdir $locked, 0700 or die;
    for my $case (
        [['-l', '192.0.2.1', '-p', 21999], 'TCP port 21999: 192.0.2.1: Cannot assign requested address; it must be '
            . 'an address of this machine'],
        [['-s', "$dir/file"], "UNIX socket: $dir/file: Address already in use; remove what is there, or choose "
            . 'another path (-s)'],
        [['-s', ''], 'UNIX socket: the path is empty (-s)'],
        [['-s', "$dir/" . 's' x 200], 'UNIX socket: path is too long, at most 107 bytes: ' . "$dir/" . 's' x 200],
        $> == 0 ? [['-u', 'nobody', '-s', "$locked/socket"], "UNIX socket: $locked/socket: Permission denied; the user "
            . '(-u) needs the right to create it, or choose another path (-s)'] : (),
        $> == 0 && $has_low_ports ? [['-u', 'nobody', '-l', '127.0.0.1', '-p', 80], 'TCP port 80: 127.0.0.1: Permission denied; ports '
            . 'below 1024 need root or CAP_NET_BIND_SERVICE'] : (),
    ) {
        my ($args, $message) = @$case;
        my $run = run_program(@AS_ROOT, @$args);
        is($run->{status}, 71, "@$args[0, 1]: exit status");
        is($run->{err}, "memcached: failed to listen on $message\n", '... message');
    }
}

# a value out of bounds: the message names the bounds; a limit: it names what to raise
if (is_ours()) {
    for my $case (
        [['-c', '100000000'], 'and at most 10000000'], [['-t', '9999'], 'and at most 1024, or auto'],
        [['-b', '0'], 'and at most 1073741824'], [['-b', '2147483647'], 'and at most 1073741824'],
        [['-p', '70000'], 'it is 0 to 65535, or -1'], [['-I', '1g', '-m', '64'], 'or more, or a smaller -I'],
        [['-c', '10', '-t', '4'], ': 4 threads need more than 21'],
    ) {
        my ($args, $message) = @$case;
        like(run_program(@AS_ROOT, @$args)->{err}, qr/\A[^\n]*\Q$message\E[^\n]*\n\z/, "@$args: $message");
    }
    is(run_program(@AS_ROOT, '--pin-dry-run', '--pin', 'none')->{err} =~ s/^memcached: warning.*\n//mgr,
        "memcached: not an option, ignored: none; a value of --pin is written --pin=none\n",
        'an optional value behind a blank');
}

done_testing();
