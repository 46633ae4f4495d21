# Agents of mcload, which end with the test.
package MCSwarm;

use MCTest;
use Exporter 'import';

our @EXPORT = qw(start_agent end_agent agent_pid achieved_by_agents key_file field number frame fields_of SWARM_VERSION);

my $mcload = $ENV{MCLOAD} || './loadgen/mcload';
my $main_pid = $$;
my %agents;

# An agent on an address, with a free port unless there is one; returns "host:port" once it
# listens. The first argument may be a list: a command that runs it.
sub start_agent($at, @args) {
    my @wrap = ref $at ? @$at : ();
    $at = shift @args if @wrap;
    $at .= ':' . free_port() if $at !~ /:/;
    my $err = scratch_dir() . "/agent.$at.err";
    $err =~ s{unix:.*/}{};
    unlink $err;
    my $pid = fork // die "fork: $!";
    if (!$pid) {
        open STDERR, '>', $err or die;
        exec @wrap, $mcload, "--agent-mode=$at", @args or die "exec: $!";
    }
    $agents{$at} = $pid;
    wait_until(sub { `cat $err 2>/dev/null` =~ /listens on/ }) or die "no agent on $at";
    return $at;
}

sub agent_pid { return $agents{$_[0]}; }

# Its exit status.
sub end_agent($at, $signal = undef) {
    my $pid = delete $agents{$at} or return;
    kill $signal // 'TERM', $pid;
    waitpid $pid, 0;
    return $? >> 8;
}

# Of a run's JSON: requests, of all processes together.
sub achieved_by_agents($json) {
    my $sum = 0;
    $sum += $_ for $json->{agents} =~ /"achieved": (\d+)/g;
    return $sum;
}

sub key_file($name, $text, $mode = undef) {
    my $file = scratch_dir() . "/$name";
    unlink $file;
    chmod $mode // 0600, write_file($file, $text);
    return $file;
}

# ---- what is on the wire (doc/swarm.md) --------------------------------------------------

# As in loadgen/swarm/message.h.
use constant SWARM_VERSION => 3;

sub field($tag, $value) { return pack('nN', $tag, length $value) . $value; }
sub number($tag, $n) { return field($tag, pack('Q>', $n)); }

sub frame($type, $session, $sequence, @fields) {
    my $body = pack('nQ>Q>', $type, $session, $sequence) . join '', @fields;
    return pack('N', length $body) . $body;
}

# The fields behind a frame's head, in their order: [tag, value].
sub fields_of($rest) {
    my @fields;
    while (length $rest) {
        my ($tag, $len) = unpack 'nN', $rest;
        push @fields, [$tag, substr $rest, 6, $len];
        $rest = substr $rest, 6 + $len;
    }
    return @fields;
}

END {
    if ($$ == $main_pid) {
        local $?;
        end_agent($_, 'KILL') for keys %agents;
    }
}

1;
