#!/usr/bin/env perl
# The manuals of packages: they call the server by the name that the packages give it, also in the
# synopsis, in commands, examples and references, and say so in their first sentence.
use MCTest ':ours';
use File::Copy qw(copy);

my $dir = scratch_dir();
my %pages = ('memcached.1' => 'man1/memcached-qos.1', 'mcqos.1' => 'man1/mcqos.1',
    'memcached-qos.conf.5' => 'man5/memcached-qos.conf.5');
mkdir "$dir/$_" or die "$dir/$_: $!" for qw(man1 man5);
copy("$TOP/doc/$_", "$dir/$pages{$_}") or die "$_: $!" for sort keys %pages;
is(run_program({command => ["$TOP/scripts/packaging/name-manuals", $dir]})->{status}, 0, 'name-manuals');

# As it is read: without the typesetter's escapes and requests of fonts.
sub text($path) {
    return read_file($path) =~ s/\\f[BIR]//gr =~ s/\\-/-/gr =~ s/^\.B[RI]? //gmr;
}

for my $page (sort keys %pages) {
    my ($before, $text) = (text("$TOP/doc/$page"), text("$dir/$pages{$page}"));
    like($_, qr/^\.SH DESCRIPTION\nIn Debian's and Fedora's packages the? ?\w.*? is called memcached-qos[;,]/ms, "$page: the name comes first")
        for $before, $text;
    like($before, qr/^memcached(?: -\w| \[| --)|\bmemcached \(1\)/m, '... and is memcached in the source');
    is((join '|', $text =~ /^(memcached (?:-\w|\[|--).*)/mg), '', '... in a package no command is memcached');
    is((join '|', $text =~ /(\bmemcached(?: \(1\)| --).*)/g), '', '... nor a reference');
    like($text, qr/\bmemcached-qos (?:\(1\)|-\w|\[|--)/, '... but memcached-qos');
}
like(text("$dir/man1/memcached-qos.1"), qr/^memcached-qos, memcached - in-memory.*^memcached-qos \[options\]\n.*^memcached-qos keeps/ms, 'name and synopsis');
like(read_file("$dir/man1/memcached-qos.1"), qr/^\.TH MEMCACHED-QOS 1/m, 'the heading');

done_testing();
