#!/usr/bin/env perl
# scripts/bench-ablation: what takes a mechanism out is still in the sources, and each has a load.
use MCTest;

my $run = run_program({command => ['python3', '-B', '-c', <<'PYTHON', $TOP]});
import sys
sys.path.insert(0, sys.argv[1] + "/scripts/bench")
from qos import ablation
for name, mechanism in ablation.MECHANISMS.items():
    texts = ablation.edited(sys.argv[1], mechanism)
    changes = any(whole != without for whole, without in texts.values())
    is_good = changes and mechanism.loads and all(load in ablation.LOADS for load in mechanism.loads)
    print("good" if is_good else "bad", name)
PYTHON
is($run->{status}, 0, 'all texts are found') or diag($run->{err});
like($run->{out}, qr/\A(?:good .*\n)+\z/, 'each changes something, and is measured under a load');
done_testing();
