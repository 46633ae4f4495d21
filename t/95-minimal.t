#!/usr/bin/env perl
# What each optional library is for says so where it is missing: one line, and a status that is
# not 0. Which libraries a build has, its Makefile says.
use MCTest;
use MCLoad;

my $build = $ENV{TOP_BUILDDIR} // '.';
my %has; # jansson => 1
open my $makefile, '<', "$build/Makefile" or plan skip_all => 'no Makefile of the build here';
while (<$makefile>) {
    $has{lc $1} = $2 ne "" if /^(HWLOC|JANSSON|NCURSES|OPENSSL|SASL|URING|ZLIB|ZSTD)_LIBS = *(\S*)/;
}
close $makefile;

my $dir = scratch_dir();
sub refused {
    my ($library, $run, $want) = @_;
    local $Test::Builder::Level = $Test::Builder::Level + 1;
    return unlike($run->{err}, qr/built without|not built with|has no (zlib|zstd)/, "$library is there")
        if $has{$library};
    isnt($run->{status}, 0, "without $library: refused");
    like($run->{err}, $want, "without $library: $want");
    return is($run->{err} =~ tr/\n//, 1, "without $library: one line");
}

my $trace = scratch_file('trace.csv', "0,key1,4,100,1,get,0\n");
my $server = serve();
my $at = $server->at;

refused('openssl', run_program('-Z', '-l', '127.0.0.1', '-p', '-1', @AS_ROOT), qr/TLS/);
refused('openssl', mcload('-s', "tls://$at", '-t', '0.3'), qr/TLS|OpenSSL/);
refused('jansson', mcload($_, scratch_file("$_.json", '{}'), "$dir/$_.json"), qr/without jansson/)
    for qw(plot compare merge);
refused('uring', mcload('-s', $at, '--engine=io_uring', '-t', '0.3'), qr/io_uring/);
refused('zlib', mcload('-s', $at, '--hlog', "$dir/hlog", '-r', 100, '-t', '0.3'), qr/no zlib/);
refused('zstd', mcload('convert', 'trace', $trace, "$dir/trace.zst"), qr/no zstd/);
done_testing();
