#!/usr/bin/env perl
# The static probes are in the binary, with their names and number of arguments.
use MCTest ':ours';

my ($binary) = grep { -f $_ && !-T _ } server_binary(), map { s{([^/]+)$}{.libs/$1}r } server_binary();
plan skip_all => 'no ELF file to look into' if !defined $binary;
my $notes = `readelf -n $binary 2>/dev/null`;
plan skip_all => 'needs readelf' if $? != 0;
plan skip_all => 'no probes on this architecture' if (POSIX::uname())[4] !~ /^(?:x86_64|aarch64)$/;

my %found;
while ($notes =~ /Provider: memcached\s+Name: (\S+)\s+Location: 0x([0-9a-f]+).*\n\s+Arguments: (.*)/g) {
    my ($name, $at, $args) = ($1, $2, $3);
    my @args = split ' ', $args;
    $found{$name} = @args;
    like($args, qr/^(?:-?[1248]@\S+ ?)+$/, "$name: arguments can be read");
    isnt(hex $at, 0, "$name: is somewhere");
}
my %want = (
    'process__command__start' => 3, 'process__command__end' => 3,
    command__get => 5, command__set => 4, command__add => 4, command__replace => 4,
    command__append => 4, command__prepend => 4, command__cas => 4,
    command__incr => 4, command__decr => 4, command__touch => 3, command__delete => 3,
    conn__allocate => 1, conn__release => 1, conn__create => 1, conn__destroy => 1,
    conn__dispatch => 2, conn__migrate => 3, qos__defer => 2, qos__shed => 2,
    limiter__wait => 2,
);
is_deeply(\%found, \%want, 'these probes, with so many arguments');

done_testing();
