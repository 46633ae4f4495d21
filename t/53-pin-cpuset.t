#!/usr/bin/env perl
# Inside a cgroup v1 cpuset of one CPU, --pin plans with that CPU only, and every thread
# stays there.
use MCTest ':ours';
use MCCgroup;

my ($cpu) = cpu_list() =~ /(\d+)$/;
my $dir = make_group('cpuset', 'cpuset.cpus' => $cpu, 'cpuset.mems' => '0')
    // plan skip_all => 'no cgroup v1 cpuset can be made';

my $has_hwloc = has_hwloc();
my $server = serve('-t', '2', $has_hwloc ? '--pin' : "--pin=list:$cpu", {wrap => inside($dir)});
is((proc_status($server->pid, 'Cpus_allowed_list'))[0], $cpu, 'the server is in the cpuset');
my @lines = stat_lines($server->connect, 'pin');
ok((grep { /^STAT pin_allowed $cpu$/ } @lines), 'stats pin: its CPU is all that is allowed')
    or diag(join "\n", @lines);
ok((grep { /^STAT pin_allowed_cpus 1$/ } @lines), 'which makes one');
ok((grep { /^STAT pin_oversubscribed 1$/ } @lines), 'two workers are one too many');
ok((grep { /^STAT pin_errors 0$/ } @lines), 'and pinning works') or diag(join "\n", @lines);
for my $worker (0, 1) {
    ok((grep { /^STAT pin_worker_${worker}_cpu $cpu$/ } @lines), "worker $worker is there");
}
serves($server);
$server->stop;

# A listed CPU outside the cpuset is refused by the plan.
my $outside = $cpu > 0 ? 0 : 1;
$server = serve('-t', '1', "--pin=list:$outside", {wrap => inside($dir)});
log_says($server, qr/CPU $outside .*not among the allowed CPUs \($cpu\)/, 'a listed CPU outside is warned of');
@lines = stat_lines($server->connect, 'pin');
ok((grep { /^STAT pin_errors [1-9]/ } @lines), 'and counted') or diag(join "\n", @lines);
$server->stop;

done_testing();
