#!/usr/bin/env perl
# What the documents tell their readers to type: each section of them that has ```console blocks is
# run in a shell and a folder of its own, with what was built here, and answers as it says there.
#
# "$ " begins a command, "> " continues it, and what stands beneath is its output. In that "..." is
# any text, and alone in its line any lines. Blocks before the first section are run before each.
# Ports 11210 to 11219 are ten free ones. ```ini blocks are files of options, which --check-config accepts.
# Comments in front of a block, which readers do not see:
#   <!-- varies: REGEX -->    what matches is another text that matches
#   <!-- needs: COMMAND -->   the section is left out unless this works; "has JANSSON" asks for a library
# and anywhere in a document:
#   <!-- runs of mcload are brief -->   they end with 50 answers, whatever they ask for
use MCTest ':ours';
use MCLoad;
use Cwd qw(abs_path);

my $build = abs_path($ENV{TOP_BUILDDIR} // '.');
my $END_OF_COMMAND = "\1 end of command";
my $FIRST_PORT = 11210;
my $HAVE_TIME = 600; # seconds, on a busy machine and under sanitizers

# For scripts, which run in other folders.
$ENV{MEMCACHED} = join ' ', map { abs_path($_) // $_ } server_binary();
$ENV{MCLOAD} = abs_path($MCLOAD);

plan skip_all => 'no bash here' if system('command -v bash >/dev/null') != 0;

# ---- reading ------------------------------------------------------------------------------------

# [{name, needs => [], commands => [{text, want => [], varies => []}]}] of a document; the first is
# what stands before all sections.
sub sections_of($text) {
    my @sections = ({name => 'start', needs => [], commands => []});
    my (@varies, $in);
    for my $line (split /\n/, $text) {
        my $now = $sections[-1];
        if (defined $in) {
            if ($line eq '```') {
                undef $in;
                @varies = ();
            } elsif ($in eq 'ini') {
                $now->{configs}[-1] .= "$line\n";
            } elsif ($in ne 'console') {
                next;
            } elsif ($line =~ /^\$ (.*)/) {
                push @{$now->{commands}}, {text => $1, want => [], varies => [@varies]};
            } elsif ($line =~ /^> ?(.*)/ && !@{$now->{commands}[-1]{want}}) {
                $now->{commands}[-1]{text} .= "\n$1";
            } else {
                push @{$now->{commands}[-1]{want}}, $line;
            }
        } elsif ($line =~ /^```(\w*)$/) {
            $in = $1;
            push @{$now->{configs}}, '' if $in eq 'ini';
        } elsif ($line =~ /^## (.*)/) {
            push @sections, {name => $1, needs => [], commands => []};
        } elsif ($line =~ /^<!-- varies: (.*) -->$/) {
            push @varies, $1;
        } elsif ($line =~ /^<!-- needs: (.*) -->$/) {
            push @{$now->{needs}}, $1;
        }
    }
    return @sections;
}

# The line as a pattern, with what may vary.
sub pattern_of($line, @varies) {
    my $pattern = '';
  TEXT:
    while ((pos($line) // 0) < length $line) {
        for my $free (@varies, '\.\.\.') {
            if ($line =~ /\G(?=.)(?:$free)/gc) {
                $pattern .= $free eq '\.\.\.' ? '.*?' : "(?:$free)";
                next TEXT;
            }
        }
        $line =~ /\G(.)/gc;
        $pattern .= quotemeta $1;
    }
    return $pattern;
}

sub is_as_told($got, $command) {
    $got .= "\n" if $got =~ /[^\n]\z/;
    my $pattern = join '', map { $_ eq '...' ? '(?:.*\n)*?' : pattern_of($_, @{$command->{varies}}) . '\n' }
        @{$command->{want}};
    return $got =~ /\A$pattern\z/;
}

# ---- running ------------------------------------------------------------------------------------

my $first = free_ports(10);

sub with_free_ports($text) {
    return $text =~ s/\b1121(\d)\b/$first + $1/ger;
}

sub with_told_ports($text) {
    return $text =~ s/\b(\d{5})\b/$1 >= $first && $1 < $first + 10 ? $FIRST_PORT + $1 - $first : $1/ger;
}

sub make_program($path, $command) {
    write_file($path, "#!/bin/sh\nexec $command\n");
    chmod 0755, $path or die "$path: $!";
}

# A folder with the programs in "bin" and the tree's scripts.
sub make_folder($name, $is_brief) {
    my $folder = scratch_dir() . "/$name";
    mkdir $_ or die "$_: $!" for $folder, "$folder/bin";
    make_program("$folder/bin/memcached", join ' ', $ENV{MEMCACHED}, @AS_ROOT, '"$@"');
    # What is not a run has a word in front.
    make_program("$folder/bin/mcload", "$ENV{MCLOAD} \"\$@\""
            . ($is_brief ? ' $(case $1 in -*) echo ' . "@BRIEFLY -w 0 ;; esac)" : ''));
    symlink "$TOP/scripts", "$folder/scripts" or die "scripts: $!";
    return $folder;
}

sub run_bash($folder, $script) {
    write_file("$folder/.script", <<"SH");
has() { ! grep -q "^\$1_LIBS = *\$" '$build/Makefile'; }
cd '$folder' && PATH="\$PWD/bin:\$PATH" && exec 2>&1
$script
SH
    return run_program({command => ['bash', '--norc', "$folder/.script"], timeout => $HAVE_TIME});
}

sub is_over($pid) {
    my ($state) = read_file("/proc/$pid/stat") =~ /\) (\S)/;
    return !defined $state || $state =~ /[ZX]/;
}

# Servers are where their pid files say.
sub stop_servers($folder) {
    for my $file (glob "$folder/*.pid") {
        my ($pid) = read_file($file) =~ /^(\d+)/ or next;
        kill 'TERM', $pid;
        soon { is_over($pid) } "the server of $file ends" =~ s/\Q$folder\E\///r;
    }
}

my $serial = 0;

# Whether something is not there that the section needs, which is skipped then.
sub lacks($folder, $section) {
    my ($need) = grep { run_bash($folder, "{ $_; } >/dev/null")->{status} != 0 } @{$section->{needs}};
    SKIP: { skip "needs: $need", 1 if defined $need }
    return defined $need;
}

sub try_config($section, $config) {
    my $folder = make_folder('config' . ++$serial, 0);
    return if lacks($folder, $section);
    write_file("$folder/config", $config);
    my $run = run_bash($folder, 'memcached --config=config --check-config');
    is($run->{status}, 0, 'a file of options') or diag($run->{out});
}

sub try_section($document, $section, $start, $is_brief) {
    my $folder = make_folder('recipe' . ++$serial, $is_brief);
    my @commands = map { {%$_, text => with_free_ports($_->{text})} } @{$start->{commands}}, @{$section->{commands}};
    return if lacks($folder, $section);
    my $run = run_bash($folder, join '', map { "$_->{text}\necho; echo '$END_OF_COMMAND'\n" } @commands);
    my @said = split /\n\Q$END_OF_COMMAND\E\n/, with_told_ports($run->{out} =~ tr/\r//dr), -1;
    for my $i (0 .. $#commands) {
        my $name = (split /\n/, $section->{commands}[$i - @{$start->{commands}}]{text})[0];
        ok($i < $#said && is_as_told($said[$i], $commands[$i]), $i < @{$start->{commands}} ? 'start' : $name) and next;
        diag("\$ $commands[$i]{text}\n" . ($said[$i] // '') . "-- the document says\n"
                . join '', map { "$_\n" } @{$commands[$i]{want}});
        last;
    }
    stop_servers($folder);
}

for my $document (map { s{^\Q$TOP/\E}{}r } sort glob "$TOP/doc/*.md") {
    my $text = read_file("$TOP/$document");
    my ($start, @sections) = sections_of($text);
    my $is_brief = $text =~ /^<!-- runs of mcload are brief -->$/m;
    for my $section (grep { @{$_->{commands}} } @sections) {
        subtest("$document: $section->{name}", sub { try_section($document, $section, $start, $is_brief) });
    }
    for my $section (@sections) {
        try_config($section, $_) for @{$section->{configs}};
    }
}

done_testing();
