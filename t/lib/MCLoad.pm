# Runs of mcload and what they report.
package MCLoad;

use MCTest;
use Exporter 'import';
use IPC::Open2 qw(open2);

our @EXPORT = qw(@BRIEFLY $MCLOAD mcload mcload_json mcload_awake json_of ended_ok ran_ok run_ok
    fake_server);

our $MCLOAD = $ENV{MCLOAD} || './loadgen/mcload';
my $runs = 0;

# $engine is what all runs wait for connections with, unless they say so themselves.
our $engine;

# A run as long as it takes for some answers in each class: where a test looks at what the run did,
# and not at when, its window has no fixed length that a machine might pass over standing still.
our @BRIEFLY = ('-t', 100, '--until=n:50');

# The report with its details, as far as it is one, unless $is_brief.
our $is_brief = 0;

# However busy the machine is, servers are waited for.
my $PATIENTLY = '--timeout=60';

sub mcload(@args) {
    my $is_run = @args && $args[0] =~ /^-/;
    return run_program({command => [$MCLOAD, defined $engine ? "--engine=$engine" : (),
            $is_run ? ($PATIENTLY, $is_brief ? () : '-v') : (), @args], timeout => 300});
}

# An independent parser, in a process of its own that lasts as long as the test: it is given names of
# files, and answers each with lines of NAME=VALUE, without the buckets, and an empty one.
my $parser = <<'PY';
import json, sys
def refuse(name):
    raise ValueError(name)
def walk(path, v):
    if isinstance(v, dict):
        for k, x in v.items():
            walk(path + "." + k if path else k, x)
    elif isinstance(v, list) and path.endswith("buckets"):
        print(path + ".sum", sum(b[2] for b in v), sep="=")
        assert all(b[0] <= b[1] for b in v)
        assert all(a[1] < b[0] for a, b in zip(v, v[1:]))
    else:
        print(path, json.dumps(v), sep="=")
for name in sys.stdin:
    try:
        with open(name[:-1]) as f:
            walk("", json.load(f, parse_constant=refuse))
        print(flush=True)
    except Exception as e:
        print("!" + repr(e), flush=True)
PY
my ($asked, $told);

# A run's JSON as a table, undef when it is none.
sub json_of($file) {
    open2($told, $asked, 'python3', '-c', $parser) if !$told;
    print $asked "$file\n";
    my %json;
    while (defined(my $line = <$told>)) {
        return \%json if $line eq "\n";
        if ($line =~ /^!(.*)/) {
            diag("$file: $1");
            return undef;
        }
        $json{$1} = $2 if $line =~ /^([^=]+)=(.*)$/;
    }
    die 'python3 has ended';
}

# The verdict depends on how busy this machine is; it must agree with the exit status.
sub ended_ok($run, $name) {
    my ($first) = $run->{out} =~ /^(VALID|INVALID: .*)$/m;
    my $ok = $run->{status} == 0 ? $run->{out} =~ /^VALID$/m && $run->{out} !~ /^INVALID/m
        : $run->{status} == 3 && $run->{out} =~ /^INVALID: /m
        && $run->{out} !~ /^(?:VALID$|INVALID: .*(?:errors|no request was answered|interrupted))/m;
    ok($ok, "$name: is " . ($first // 'without a verdict') . " and has status $run->{status}")
        or diag("$run->{out}$run->{err}");
}

# A run with its JSON as a table, an empty one when there is none.
sub mcload_json(@args) {
    my $file = scratch_dir() . '/run.' . $$ . '.' . ++$runs . '.json';
    my $run = mcload('--json', $file, @args);
    $run->{file} = $file;
    $run->{json} = -s $file ? json_of($file) : {};
    return $run;
}

# The same of a window of fixed length, which agents need: once more when it passed without a request, as
# the client did not have a CPU in it.
sub mcload_awake(@args) {
    my $run;
    for (1 .. 20) {
        $run = mcload_json(@args);
        last if $run->{status} != 0 && $run->{status} != 3 || ($run->{json}{'totals.sent'} // 0) > 0;
    }
    return $run;
}

# It ran; whether a machine this busy lets it be valid is another question.
sub ran_ok($run, $name) {
    local $Test::Builder::Level = $Test::Builder::Level + 1;
    return ok($run->{status} == 0 || $run->{status} == 3, $name) || diag($run->{err});
}

# Such a run, of which ended_ok is asserted.
sub run_ok($name, @args) {
    local $Test::Builder::Level = $Test::Builder::Level + 1;
    my $run = mcload_json(@args);
    ended_ok($run, $name);
    return $run;
}

# A server that passes each line of a request to the code and sends what it returns; undef
# closes the connection. The code also gets a table of its own that lives with the connection,
# and how many requests came in all. Returns the port.
sub fake_server($code) {
    my $listener = IO::Socket::INET->new(LocalAddr => '127.0.0.1', Listen => 64, Proto => 'tcp')
        or die "listen: $!";
    in_child(sub {
        $SIG{PIPE} = 'IGNORE';
        my $select = IO::Select->new($listener);
        my (%buffer, %state);
        my $count = 0;
        while (1) {
            for my $sock ($select->can_read) {
                if ($sock == $listener) {
                    my $client = $listener->accept or next;
                    $select->add($client);
                    ($buffer{$client}, $state{$client}) = ('', {});
                    next;
                }
                my $open = sysread $sock, $buffer{$sock}, 65536, length $buffer{$sock};
                while ($open && $buffer{$sock} =~ s/^([^\n]*)\r\n//) {
                    my $reply = $code->($1, $state{$sock}, ++$count);
                    if (defined $reply) {
                        syswrite $sock, $reply;
                    } else {
                        $open = 0;
                    }
                }
                if (!$open) {
                    $select->remove($sock);
                    close $sock;
                }
            }
        }
    });
    return $listener->sockport;
}

1;
