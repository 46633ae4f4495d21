#!/usr/bin/env perl
# A server that is started under the name memcached-debug knows the debug commands, from the
# build's link as from any other; the name alone counts, not the path.
use MCTest ':ours';
use Cwd 'abs_path';

my $dir = scratch_dir();
my @binary = server_binary();
my $link = "$dir/memcached-debug";
symlink abs_path($binary[-1]), $link or die "$link: $!";
mkdir "$dir/memcached-debug.d" or die "$dir: $!";
my $plain = "$dir/memcached-debug.d/memcached";
symlink abs_path($binary[-1]), $plain or die "$plain: $!";

sub start_as($path, $profile) {
    local $ENV{MEMCACHED} = join ' ', @binary[0 .. $#binary - 1], $path;
    return start_server(profile => $profile, debug => 0);
}

each_profile(sub ($profile) {
    my $server = start_as($link, $profile);
    my $s = $server->connect;
    exchange($s, "set k 0 10 1\r\nv\r\n", "STORED\r\n");
    exchange($s, "debugtime 11\r\n", "OK\r\n", 'memcached-debug has debugtime');
    exchange($s, "get k\r\n", "END\r\n", 'which moves the clock');
    exchange($s, "debugitem ref k\r\n", "MISS\r\n", 'and debugitem');
    $server->stop;

    $server = start_as($plain, $profile);
    exchange($server->connect, "debugtime 11\r\n", "ERROR\r\n", 'a folder of that name does not count');
    $server->stop;
});

my $built = "$binary[-1]-debug";
SKIP: {
    skip 'not in a build folder', 1 if !defined $ENV{TOP_BUILDDIR};
    is(abs_path($built), abs_path($binary[-1]), 'the build makes the link');
}

done_testing();
