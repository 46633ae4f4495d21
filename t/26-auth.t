#!/usr/bin/env perl
# Who may talk to the server: tokens of -Y over text, SASL PLAIN over binary, with and
# without libsasl2; nothing works before, everything after.
use MCTest ':ours';
use MCBinary;
use Digest::MD5 qw(md5 md5_hex);

my $dir = scratch_dir();

# Before the login no question of the helper is answered: bytes, and bytes back.
sub says($sock, $send, $want, $name = undef) {
    put($sock, $send);
    return expect_bytes($sock, $want, $name // show($send));
}

sub token($text, $more = undef) {
    return 'set x 0 0 ' . length($text) . ($more // '') . "\r\n$text\r\n";
}

sub takes_new($server, $name) {
    soon {
        my $c = $server->connect;
        put($c, token('foo new'));
        return read_line($c) eq "STORED\r\n";
    } $name;
}

sub binary_is($sock, $send, $status, $body, $name) {
    put($sock, $send);
    my ($got, $text) = response($sock);
    is($got, $status, "$name: status");
    like($text, $body, "$name: body");
}

use constant {VERSION => 0x0b, GET => 0, SET => 1, NOOP => 0x0a, LIST => 0x20, AUTH => 0x21, STEP => 0x22};

each_profile(sub ($profile) {
    # ---- tokens
    my $file = write_file("$dir/tokens.$profile", "foo:bar\nbaaaz:quux");
    my ($server, $s) = serve($profile, '-Y', $file);
    says($s, "$_\r\n", "CLIENT_ERROR unauthenticated\r\n", show(substr $_, 0, 10)) for 'get foo', 'version',
        'stats', 'flush_all', 'mn mn', 'verbosity 1', 'shutdown', 'watch', 'x' x 2000,
        "\x80\x00\x00\x00\x00\x00";
    says($s, "set foo 0 0 3\r\nbar\r\n", "CLIENT_ERROR bad authentication token format\r\n");
    says($s, "set foo 0 0 7\r\nfoo bar..", "CLIENT_ERROR bad command line termination\r\n");
    says($s, "set foo 0 0 16385\r\n", "CLIENT_ERROR auth token too long\r\n");
    says($s, "set foo 0 0 2147483646\r\n", "CLIENT_ERROR auth token too long\r\n");
    says($s, "set foo 0 0\r\nfoo bar\r\n", "CLIENT_ERROR unauthenticated\r\n" x 2);
    says($s, token('foo baz'), "CLIENT_ERROR authentication failure\r\n");
    says($s, token('quux baaaz'), "CLIENT_ERROR authentication failure\r\n");
    says($s, token('foo barbar'), "CLIENT_ERROR authentication failure\r\n");
    says($s, token('x' x 10000 . ' ' . 'y' x 6383), "CLIENT_ERROR authentication failure\r\n");
    says($s, token('foo bar', ' noreply') . "get x\r\nset k 0 0 1\r\n1\r\nget k\r\n",
        "STORED\r\nEND\r\nSTORED\r\nVALUE k 0 1\r\n1\r\nEND\r\n", 'right, and commands at once');
    says($s, token('foo bar'), "STORED\r\n", 'a set is a set again');
    exchange($s, "get x\r\n", "VALUE x 0 7\r\nfoo bar\r\nEND\r\n");
    has(mem_stats($s), 'auth_cmds, auth_errors', auth_cmds => 5, auth_errors => 4);
    my $settings = mem_stats($s, 'settings');
    is($settings->{binding_protocol}, 'ascii', '-Y: text only');
    is($settings->{auth_enabled_ascii}, $file, 'auth_enabled_ascii') if $profile eq '1.6';
    is($settings->{auth_enabled_sasl}, 'no', 'auth_enabled_sasl');

    says($server->connect, "set x 0 0 7\nfoo bar\r\n", "STORED\r\n", 'LF alone ends the line');
    says($server->connect, "set x 0 0 7\nfoo bar\nx", "CLIENT_ERROR bad command line termination\r\n",
        'but not the token');

    my $other = $server->connect;
    says($other, "get k\r\n", "CLIENT_ERROR unauthenticated\r\n", 'each connection anew');
    says($other, token('baaaz quux'), "STORED\r\n", 'the last line needs no line feed');
    for my $bytes ("quit\r\n", "\r\n", "mn\r\n", ' ' x 2049) {
        my $closed = $server->connect;
        put($closed, $bytes);
        expect_eof($closed, '', 'closed without a word');
    }

    # a link that is renewed, as in Kubernetes: what is behind it now
    mkdir "$dir/$_.$profile" for 'v1', 'v2';
    write_file("$dir/v1.$profile/tokens", "foo:old\n");
    write_file("$dir/v2.$profile/tokens", "foo:new\n");
    symlink "v1.$profile", "$dir/data.$profile";
    symlink "data.$profile/tokens", "$dir/link.$profile";
    my $linked = serve($profile, '-Y', "$dir/link.$profile");
    says($linked->control, token('foo old'), "STORED\r\n", 'through links');
    symlink "v2.$profile", "$dir/next.$profile";
    rename "$dir/next.$profile", "$dir/data.$profile" or die;
    kill 'HUP', $linked->pid;
    takes_new($linked, 'SIGHUP reads what the links lead to now');
    says($linked->connect, token('foo old'), "CLIENT_ERROR authentication failure\r\n", '... and nothing else');

    # a new file: its entries; a bad one: the old entries
    write_file($file, "foo:new\n");
    kill 'HUP', $server->pid;
    takes_new($server, 'SIGHUP reads the file again');
    says($server->connect, token('foo bar'), "CLIENT_ERROR authentication failure\r\n",
        'the old entry is gone');
    exchange($s, "get k\r\n", "VALUE k 0 1\r\n1\r\nEND\r\n", 'who was in stays');
    write_file($file, "nonsense\n");
    kill 'HUP', $server->pid;
    soon { $server->err =~ /malformed entry/ } 'a bad file is told';
    says($server->connect, token('foo new'), "STORED\r\n", 'and changes nothing');
    $server->stop;

    # ---- a password database
    my $database = write_file("$dir/passwords.$profile", "# users\nfoo:bar:rest\n");
    ($server, $s) = serve($profile, '-S', '-U', '0', {no_port => 1, env => {MEMCACHED_SASL_PWDB => $database}});
    binary_is($s, request(VERSION), 0, qr/^1\.[46]\./, 'VERSION before');
    binary_is($s, request(LIST), 0, qr/^PLAIN$/, 'LIST');
    binary_is($s, request(STEP, 'PLAIN', '', "\0foo\0bar"), 0x20, qr/^Auth/, 'STEP first');
    binary_is($s, request(AUTH, 'PLAIN', '', "\0foo\0baz"), 0x20, qr/^Auth/, 'wrong');
    binary_is($s, request(AUTH, 'OTHER', '', "\0foo\0bar"), 0x20, qr/^Auth/, 'unknown mechanism');
    binary_is($s, request(AUTH, 'X' x 40, '', "\0foo\0bar"), 4, qr//, 'long mechanism');
    binary_is($s, request(AUTH, 'PLAIN'), 0x21, qr/^$/, 'in two parts');
    binary_is($s, request(STEP, 'PLAIN', '', "\0foo\0bar"), 0, qr/^Authenticated$/, 'right');
    binary_is($s, request(SET, 'k', "\0" x 8, 'v'), 0, qr/^$/, 'SET after');
    binary_is($s, request(AUTH, 'PLAIN', '', "\0foo\0bar"), 0, qr/^Authenticated$/, 'again');
    binary_is($s, request(AUTH, 'PLAIN', '', "\0foo\0baz"), 0x20, qr/^Auth/, 'a failure after');
    binary_is($s, request(GET, 'k'), 0x20, qr/^Auth/, 'takes it away');
    expect_eof($s, '', 'and closes');
    $other = $server->connect;
    binary_is($other, request(NOOP), 0x20, qr/^Auth/, 'each connection anew');
    expect_eof($other, '', 'and closes');
    my $text = $server->connect;
    put($text, "get k\r\n" x 10);
    expect_eof($text, '', '-S: no text');
});

# libsasl2, when the build has it and its tools are here
sub hmac($text, $key) {
    $key .= "\0" x (64 - length $key);
    return md5_hex(($key ^ "\x5c" x 64) . md5(($key ^ "\x36" x 64) . $text));
}

SKIP: {
    my $lacks = library_lacks($dir, 'plain cram-md5', 'testuser', 'testpass');
    skip $lacks, 1 if $lacks;
    my ($server, $s) = serve('-S', '-B', 'binary', {env => {SASL_CONF_PATH => $dir}});
    put($s, request(LIST));
    my (undef, $names) = response($s);
    skip 'no mechanisms installed', 1 if join(' ', sort split / /, $names) ne 'CRAM-MD5 PLAIN';
    binary_is($s, request(STEP, 'PLAIN', '', "\0testuser\0testpass"), 0x20, qr/^Auth/, 'library: STEP first');
    binary_is($s, request(AUTH, 'PLAIN', '', "\0testuser\0wrong"), 0x20, qr/^Auth/, 'library: wrong');
    binary_is($s, request(AUTH, 'PLAIN'), 0x21, qr/^$/, 'library: PLAIN in two parts');
    binary_is($s, request(STEP, 'PLAIN', '', "\0testuser\0testpass"), 0, qr/^Authenticated$/, 'library: right');
    binary_is($s, request(NOOP), 0, qr/^$/, 'library: and in');
    put($s, request(AUTH, 'CRAM-MD5'));
    my ($status, $challenge) = response($s);
    is($status, 0x21, 'library: CRAM-MD5 has a challenge');
    binary_is($s, request(STEP, 'CRAM-MD5', '', 'testuser ' . hmac($challenge, 'testpass')), 0,
        qr/^Authenticated$/, 'library: and takes the answer');
    put($s, request(AUTH, 'CRAM-MD5'));
    ($status, $challenge) = response($s);
    binary_is($s, request(STEP, 'CRAM-MD5', '', 'testuser ' . hmac($challenge, 'wrong')), 0x20,
        qr/^Auth/, 'library: not a wrong one');
    binary_is($s, request(NOOP), 0x20, qr/^Auth/, 'library: and out');
}

# What does not go together, and files that cannot be read.
my $good = write_file("$dir/good", "foo:bar\n");
my $bad = write_file("$dir/bad", "foo:bar\nfoobar\n");
my ($pipe, $large) = ("$dir/pipe", write_file("$dir/large", ''));
POSIX::mkfifo($pipe, 0600) or die "mkfifo: $!";
truncate $large, (16 << 20) + 1 or die "truncate: $!";
sub refused($status, $pattern, @args) {
    local $ENV{MEMCACHED_SASL_PWDB} = $good;
    my $run = run_program('-l', '127.0.0.1', '-p', '-1', @AS_ROOT, @args);
    is($run->{timed_out} ? 'started' : $run->{status}, $status, "@args: exit status");
    like($run->{err}, $pattern, "@args: message");
}
for my $compat ('--compat=1.4', '--compat=1.6') {
    refused(1, qr/Could not open authfile \[$dir\/none\] for reading/, $compat, '-Y', "$dir/none");
    refused(1, qr/Could not open authfile \[$_\] for reading, error it is no regular file of 16 MiB at most/, $compat, '-Y', $_)
        for '/dev/zero', $pipe, $large;
    refused(1, qr/Authfile \[$bad\] has a malformed entry\. Should be 'user:password'/, $compat, '-Y', $bad);
    refused(64, qr/You cannot allow the ASCII protocol while using SASL/, $compat, '-S', '-B', 'ascii');
    refused(64, qr/You cannot allow the ASCII protocol while using SASL/, $compat, '-S', '-B', 'auto');
    refused(64, qr/You cannot allow the ASCII protocol while using SASL/, $compat, '-S', '-Y', $good);
    refused(64, qr/You cannot allow the BINARY protocol/, $compat, '-Y', $good, '-B', 'binary');
    refused(64, qr/You cannot allow the BINARY protocol/, $compat, '-Y', $good, '-B', 'auto');
}

done_testing();
