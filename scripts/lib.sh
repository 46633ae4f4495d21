# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 the memcached-qos authors
#
# For the other scripts: ". scripts/lib.sh". POSIX sh; perl does the sockets.

# print_head SCRIPT: the comment at the head of a script, which is its help.
print_head() {
    sed -n -e '/^# scripts\//,/^[^#]/s/^# \{0,1\}//p' "$1"
}

# free_port [WISH]: prints WISH when the port is free, else one that is free and that the kernel gives to
# nobody who asks for any.
free_port() {
    perl -MIO::Socket::INET -MIO::Socket::UNIX -e '
        for my $port (@ARGV, map { 20000 + int rand 10000 } 1 .. 200) {
            my $s = IO::Socket::INET->new(LocalAddr => "127.0.0.1", LocalPort => $port,
                Proto => "tcp", Listen => 1, ReuseAddr => 1) or next;
            IO::Socket::UNIX->new(Local => "\0mctest-port-$port", Listen => 1) or next; # a test has it
            print $s->sockport, "\n";
            exit 0;
        }
        exit 1;' "$@"
}

# ask PORT COMMAND: sends one text command, prints the reply up to its last line; gives up after ASK_SECONDS
# (60).
ask() {
    perl -MIO::Socket::INET -e '
        my ($port, $command) = @ARGV;
        my $s = IO::Socket::INET->new(PeerAddr => "127.0.0.1", PeerPort => $port,
            Proto => "tcp", Timeout => 60) or exit 1;
        alarm($ENV{ASK_SECONDS} || 60);
        print $s "$command\r\n";
        while (defined(my $line = <$s>)) {
            $line =~ s/\r?\n$//;
            exit 0 if $line eq "END";
            print "$line\n";
            exit 0 if $line =~ /^(OK|VERSION|RESET|ERROR|CLIENT_ERROR|SERVER_ERROR)\b/;
        }
        exit 1;' "$@"
}

# wait_ready PORT PID: until the server answers; fails when it ended or after five minutes.
wait_ready() {
    latest=$(($(date +%s) + 300))
    until ASK_SECONDS=2 ask "$1" version >/dev/null 2>&1; do
        kill -0 "$2" 2>/dev/null || return 1
        [ "$(date +%s)" -lt "$latest" ] || return 1
        sleep 0.1
    done
}

# server_user: the option that lets root start a server, nothing for other users.
server_user() {
    [ "$(id -u)" = 0 ] || return 0
    for user in memcache memcached nobody daemon; do
        if id "$user" >/dev/null 2>&1; then
            echo "-u $user"
            return 0
        fi
    done
    echo "-u root"
}

# stop_server PID: asks it to end and returns its exit status.
stop_server() {
    kill -TERM "$1" 2>/dev/null || true
    wait "$1"
}

# own_tmp: prints a new folder for TMPDIR, which the caller removes at its end, so that nothing
# stays behind of tests and compilers that were ended. Servers under test are other users and
# must get through.
own_tmp() {
    folder=$(mktemp -d) && chmod 755 "$folder" && echo "$folder"
}

# show_slowest FOLDER MARK: the ten that took longest of the tests that ran there since the file MARK was
# written.
show_slowest() {
    echo "-- the slowest, in seconds (and of CPU)"
    find "$1/t" -name '*.log' -newer "$2" -exec awk '
        /^# took / { printf "%7.1f %7.1f  %s\n", $3, $5, FILENAME }' {} + |
        sort -rn | head -n 10 | sed "s|$1/||"
}

# show_failed LOG: the tests that did not pass by this log of make check, each with what its own
# log says of it: 15 lines at most. Nothing when there is none.
show_failed() {
    grep -aE '^(FAIL|ERROR|XPASS): ' "$1" | head -n 50 | while read -r what test number rest; do
        echo "$what $test $number $rest"
        own=$(sed -n "s/^make.*: Entering directory '\(.*\)'$/\1/p" "$1" | sort -u |
            while read -r folder; do
                [ ! -e "$folder/${test%.*}.log" ] || echo "$folder/${test%.*}.log"
            done | head -n 1)
        [ -n "$own" ] || continue
        case $what in
            ERROR:) grep -av '^PASS: ' "$own" | tail -n 15 ;;
            *) words_about "$number" "$own" | head -n 15 ;;
        esac | sed 's/^/    /'
    done
}

# words_about NUMBER TAP-FILE: the remarks on this result: those behind it, and those of the
# results that it is made of, which stand before it.
words_about() {
    awk -v number="$1" '
        /^(not )?ok / {
            if (is_it) exit
            is_it = $2 == number || $3 == number
            if (is_it) printf "%s", inner
            inner = ""
            next
        }
        is_it && /^ *# Subtest/ { exit }
        is_it && !/^[A-Z]+: / { print }
        is_it { next }
        /^ +(not )?ok / { is_wrong = $1 == "not" }
        is_wrong { inner = inner $0 "\n" }
    ' "$2"
}
