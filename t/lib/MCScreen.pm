# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 the memcached-qos authors
#
# A program on a terminal: a pty of its own, and what its screen shows. The terminal is a vt100, so
# only the sequences of a vt100 are understood.
package MCScreen;

use MCTest;
use Fcntl qw(O_RDWR O_NOCTTY);
use POSIX qw(setsid :sys_wait_h);

# Of Linux on x86, ARM, RISC-V and s390.
use constant {TIOCSWINSZ => 0x5414, TIOCSCTTY => 0x540e, TIOCGPTN => 0x80045430, TIOCSPTLCK => 0x40045431};

# Undef where there are no terminals to be had.
sub new($class, $rows, $cols, @command) {
    sysopen my $master, '/dev/ptmx', O_RDWR | O_NOCTTY or return undef;
    my ($unlock, $number) = (pack('i', 0), pack('i', 0));
    ioctl $master, TIOCSPTLCK, $unlock or return undef;
    ioctl $master, TIOCGPTN, $number or return undef;
    my $path = '/dev/pts/' . unpack 'i', $number;
    return undef if !-e $path;
    my $self = bless {master => $master, rows => $rows, cols => $cols, row => 0, col => 0,
        cells => {}, rest => ''}, $class;
    $self->size($rows, $cols);
    my $pid = fork // die "fork: $!";
    if (!$pid) {
        setsid();
        sysopen my $slave, $path, O_RDWR or POSIX::_exit(126);
        ioctl $slave, TIOCSCTTY, 0;
        open STDIN, '<&', $slave;
        open STDOUT, '>&', $slave;
        open STDERR, '>&', $slave;
        $ENV{TERM} = 'vt100';
        delete @ENV{qw(LINES COLUMNS)};
        { no warnings; exec @command; }
        POSIX::_exit(127);
    }
    $self->{pid} = $pid;
    return $self;
}

sub size($self, $rows, $cols) {
    @$self{qw(rows cols top bottom)} = ($rows, $cols, 0, $rows - 1);
    my $size = pack 'S4', $rows, $cols, 0, 0;
    return ioctl $self->{master}, TIOCSWINSZ, $size;
}

sub type($self, $keys) { return syswrite $self->{master}, $keys; }

# A line further, where the lines of the scrolling region move at its end.
sub down($self) {
    my ($top, $bottom) = @$self{qw(top bottom)};
    if ($self->{row} == $bottom) {
        $self->{cells}{$_} = $self->{cells}{$_ + 1} for $top .. $bottom - 1;
        $self->{cells}{$bottom} = {};
    } elsif ($self->{row} < $self->{rows} - 1) {
        $self->{row}++;
    }
}

sub up($self) {
    my ($top, $bottom) = @$self{qw(top bottom)};
    if ($self->{row} == $top) {
        $self->{cells}{$_} = $self->{cells}{$_ - 1} for reverse $top + 1 .. $bottom;
        $self->{cells}{$top} = {};
    } elsif ($self->{row} > 0) {
        $self->{row}--;
    }
}

sub show_char($self, $char) {
    if ($self->{col} >= $self->{cols}) {
        $self->{col} = 0;
        $self->down;
    }
    $self->{cells}{$self->{row}}{$self->{col}++} = $char;
}

sub erase($self, $mode, $is_line) {
    my ($row, $col) = @$self{qw(row col)};
    for my $r ($is_line ? $row : 0 .. $self->{rows} - 1) {
        for my $c (0 .. $self->{cols} - 1) {
            my $is_before = $r < $row || ($r == $row && $c <= $col);
            my $is_after = $r > $row || ($r == $row && $c >= $col);
            delete $self->{cells}{$r}{$c} if $mode == 2 || ($mode == 1 ? $is_before : $is_after);
        }
    }
}

sub obey($self, $args, $final) {
    my @n = map { length $_ ? $_ : 0 } split /;/, $args =~ s/^\?//r, -1;
    my $count = $n[0] || 1;
    if ($final eq 'H') { @$self{qw(row col)} = (($n[0] || 1) - 1, ($n[1] || 1) - 1) }
    elsif ($final eq 'A') { $self->{row} -= $count }
    elsif ($final eq 'B') { $self->{row} += $count }
    elsif ($final eq 'C') { $self->{col} += $count }
    elsif ($final eq 'D') { $self->{col} -= $count }
    elsif ($final eq 'r') {
        @$self{qw(top bottom row col)} = (($n[0] || 1) - 1, ($n[1] || $self->{rows}) - 1, 0, 0);
    }
    elsif ($final eq 'J') { $self->erase($n[0] // 0, 0) }
    elsif ($final eq 'K') { $self->erase($n[0] // 0, 1) }
}

# Takes in what the program has written.
sub feed($self, $bytes) {
    my $text = $self->{rest} . $bytes;
    while (length $text) {
        if ($text =~ s/^\e\[([?\d;]*)([A-Za-z])//) { $self->obey($1, $2) }
        elsif ($text =~ s/^\e[()][A-Z0-9]// || $text =~ s/^\e[=>78]// || $text =~ s/^[\x00\x07\x0e\x0f]//) { }
        elsif ($text =~ /^\e(?:\[[?\d;]*|[()])?\z/) { last }
        elsif ($text =~ s/^\r//) { $self->{col} = 0 }
        elsif ($text =~ s/^(?:\n|\eD)//) { $self->down }
        elsif ($text =~ s/^\eM//) { $self->up }
        elsif ($text =~ s/^\x08//) { $self->{col}-- if $self->{col} > 0 }
        else { $self->show_char(substr $text, 0, 1, '') }
    }
    $self->{rest} = $text;
}

sub text($self) {
    my @lines;
    for my $row (0 .. $self->{rows} - 1) {
        my $line = join '', map { $self->{cells}{$row}{$_} // ' ' } 0 .. $self->{cols} - 1;
        push @lines, $line =~ s/ +$//r;
    }
    return join("\n", @lines) =~ s/\n*\z/\n/r;
}

# Whether the screen shows this some time, and what it showed last.
sub shows($self, $what) {
    my $end = time + 60;
    my $select = IO::Select->new($self->{master});
    until ($self->text =~ $what) {
        return 0 if time > $end;
        next if !$select->can_read(1);
        sysread $self->{master}, my $bytes, 65536 or return $self->text =~ $what ? 1 : 0;
        $self->feed($bytes);
    }
    return 1;
}

# The exit status, once it has ended.
sub ended($self) {
    my $end = time + 60;
    my $select = IO::Select->new($self->{master});
    while (time < $end) {
        return $? if waitpid($self->{pid}, WNOHANG) == $self->{pid};
        sysread $self->{master}, my $bytes, 65536 if $select->can_read(0.05);
    }
    kill 'KILL', $self->{pid};
    waitpid $self->{pid}, 0;
    return -1;
}

1;
