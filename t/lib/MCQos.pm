# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 the memcached-qos authors
#
# Runs of mcqos.
package MCQos;

use MCTest;
use Exporter 'import';
use JSON::PP;

our @EXPORT = qw(@MCQOS mcqos mcqos_json mcqos_says);

# However busy the machine is, servers are waited for.
our @MCQOS = (split(' ', $ENV{MCQOS} || './mcqos/mcqos'), '--timeout=60');

sub mcqos(@args) { return run_program({command => [@MCQOS, @args], timeout => 120}); }

# Its JSON as a structure; undef when it is none.
sub mcqos_json(@args) {
    my $run = mcqos('--json', @args);
    my $json = eval { JSON::PP->new->decode($run->{out}) };
    diag("no JSON ($run->{status}): $run->{out}$run->{err}") if !$json;
    return wantarray ? ($json, $run) : $json;
}

# Asserts exit status, and what it prints and complains of (one line; '' for nothing).
sub mcqos_says($status, $out, $err, @args) {
    local $Test::Builder::Level = $Test::Builder::Level + 1;
    my $run = mcqos(@args);
    return has($run, "mcqos @args", status => $status, out => $out, err => $err,
        err_lines => ref $err || $err ne '' ? 1 : 0);
}

1;
