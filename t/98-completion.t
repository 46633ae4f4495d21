#!/usr/bin/env perl
# Completion in bash: what is offered for a line that has been typed so far.
use MCTest ':ours';
use File::Basename qw(dirname);

my $script = dirname(__FILE__) . '/../scripts/packaging/completion/memcached-qos';
my %program = (memcached => (server_binary())[-1], mcload => $ENV{MCLOAD} || './loadgen/mcload');
plan(skip_all => 'needs bash') if run_program({command => ['bash', '-c', 'true']})->{status} != 0;

# The words offered at the end of a line, sorted.
sub offered($line) {
    my ($name) = $line =~ /^(\w+)/;
    my $run = run_program({command => ['bash', '-c', '. "$1"; COMP_LINE=$2 COMP_POINT=${#2}; _memcached_qos "$3"; '
        . 'printf "%s\n" "${COMPREPLY[@]}"', 'bash', $script, $line, $program{$name}]});
    is($run->{err}, '', "'$line': nothing goes wrong");
    return join ' ', sort split /\n/, $run->{out};
}

my @rows = (
    ['memcached --po', '--port='],
    ['memcached -v --memory-f', '--memory-file='],
    ['memcached --lock', '--lock-memory'],
    ['memcached --verb', '--verbose'],
    ['memcached -B ', 'ascii auto binary'],
    ['memcached --protocol=b', 'binary'],
    ['memcached --protocol b', 'binary'],
    ['memcached -p ', ''],
    ['memcached ', ''],
    ['memcached --sched=', 'batch bvt fifo other: rr slice:'],
    ['memcached --control=m', 'marked'],
    ['memcached -o hash', 'hash_algorithm= hashpower='],
    ['memcached -o no_hashexpand,hashp', 'no_hashexpand,hashpower='],
    ['memcached -o idle_timeout=3,hashp', '3,hashpower='], # what stands behind the '='
    ['mcload ', 'compare convert merge plot'],
    ['mcload pl', 'plot'],
    ['mcload --mode=', 'closed open partly'],
    ['mcload --tls-verify=y', 'yes'],
    ['mcload -q ', 'peak'],
);
is(offered($_->[0]), $_->[1], "'$_->[0]'") for @rows;

# mcqos: the words of limit are those that its help names.
my $mcqos = dirname($script) . '/mcqos';
my $program = $ENV{MCQOS} || './mcqos/mcqos';
my ($also) = run_program({command => [$program, 'help', 'limit']})->{out} =~ s/\s+/ /gr =~ /also ([\w, ]+), as/;
for my $case (['limit', 'small', split /, /, $also // 'nothing'], ['help', qw(status top limit)]) {
    my ($command, @words) = @$case;
    my $run = run_program({command => ['bash', '-c', '. "$1"; COMP_WORDS=(mcqos "$2" "") COMP_CWORD=2; _mcqos; '
        . 'printf "%s\n" "${COMPREPLY[@]}"', 'bash', $mcqos, $command]});
    my %is_offered = map { $_ => 1 } split /\n/, $run->{out};
    is(join(' ', grep { !$is_offered{$_} } @words), '', "mcqos $command: @words") or diag($run->{err});
}

for my $name (sort keys %program) {
    my $help = run_program({command => [$program{$name}, '--help']})->{out};
    my %long = map { $_ => 1 } $help =~ /^  (?:-., )?(--[\w-]+)/mg;
    cmp_ok(scalar keys %long, '>', 50, "$name: options found in its help");
    my @offered = sort map { s/=$//r } split / /, offered("$name --");
    is("@offered", join(' ', sort keys %long), "$name: every long option is offered");
}

done_testing();
