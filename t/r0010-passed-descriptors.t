#!/usr/bin/env perl
# Descriptors that a client passes through a UNIX socket do not stay open in the server, where they
# would take the place of connections.
use MCTest ':ours';
use POSIX ();
use Socket qw(SOL_SOCKET SCM_RIGHTS);

my %SENDMSG = (x86_64 => 46, aarch64 => 211); # Perl has no function for it
my $sendmsg = $SENDMSG{(POSIX::uname())[4]};
plan skip_all => 'the number of sendmsg is not known here' if !$sendmsg;

my $file = scratch_file('passed', 'x');
my $REQUESTS = 640; # some of them are timed: one read in 64, and those that --slo looks at

sub send_with($sock, $bytes, @fds) {
    my $control = pack 'Q i2 i*', 16 + 4 * @fds, SOL_SOCKET, SCM_RIGHTS, @fds;
    my $iov = pack 'P Q', $bytes, length $bytes;
    my $message = pack 'Q L x4 P Q P Q i x4', 0, 0, $iov, 1, $control, length $control, 0;
    return syscall($sendmsg, fileno $sock, $message, 0);
}

sub identity($what) { return join ':', (stat $what)[0, 1]; }

for my $options ([], ['--slo=p99:1ms']) {
    my $path = scratch_dir() . '/sock' . @$options;
    my ($server, $s) = serve('-t', '1', '-s', $path, @$options, {path => $path});
    open my $fh, '<', $file or die "$file: $!";
    my $bad = 0;
    for (1 .. $REQUESTS) {
        my $sent = send_with($s, "mn\r\n", (fileno $fh) x 20);
        $bad += $sent != 4 || read_line($s) !~ /\n\z/; # --slo may refuse it
    }
    is($bad, 0, "@$options: all are sent, and answered");
    my @open = map { identity($_) } glob '/proc/' . $server->pid . '/fd/*';
    cmp_ok(scalar(@open), '>', 0, 'what the server has open can be seen');
    is(scalar(grep { $_ eq identity($fh) } @open), 0, 'none of what was passed');
    $server->stop;
}

done_testing();
