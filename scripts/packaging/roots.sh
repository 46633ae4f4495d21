# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 the memcached-qos authors
#
# For check-deb and check-rpm: ". scripts/packaging/roots.sh". Chroots of Debian bookworm in the folder
# $work, made with mmdebstrap from the archive that this machine uses ($APT_SOURCES), and containers
# of them with systemd as process 1. Those who use it have `fail`, and stop_container at their end.
# What all chroots begin as is made once, in $ROOT_TAR, which several scripts at a time may share.
# bash.
suite=bookworm
sources=${APT_SOURCES:-/etc/apt/sources.list.d/debian.sources}
container= # what is process 1 of it is $init

# no_roots: fails where they can be made, else prints why not.
no_roots() {
    local tool
    for tool in mmdebstrap systemd-nspawn; do
        command -v "$tool" >/dev/null || { echo "$tool is not installed"; return; }
    done
    [ -r "$sources" ] || { echo "no $sources: name the archive in APT_SOURCES"; return; }
    unshare --mount --net true 2>/dev/null || { echo "chroots need root"; return; }
    false
}

# A mount namespace of its own, so that nothing stays mounted, and of processes, so that none stays
# running. in_root ROOT COMMAND...
in_root() {
    local root=$1
    shift
    unshare --mount --pid --fork --kill-child sh -c '
        mount -t proc proc "$0/proc" && mount --rbind /dev "$0/dev" && exec chroot "$0" "$@"' \
        "$root" env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin LC_ALL=C.UTF-8 HOME=/root \
        DEBIAN_FRONTEND=noninteractive "$@" </dev/null
}

# The same with a network of its own: servers on their usual port.
in_net() {
    # shellcheck disable=SC2016
    unshare --net bash -c 'ip link set lo up && in_root "$@"' - "$@"
}
export -f in_root

# apt ROOT ARGUMENT...: what it says is shown when it fails.
apt() {
    local root=$1
    shift
    in_root "$root" apt-get -qq -y -o Dpkg::Use-Pty=0 --no-install-recommends "$@" \
        >"$work/apt.log" 2>&1 || { cat "$work/apt.log"; fail "apt-get $*"; }
}

# new_root NAME: prints the folder of a chroot: the smallest Debian with systemd, which does not
# run, so that no service starts.
new_root() {
    local base=${ROOT_TAR:-$work/root.tar}
    (
        flock 8
        [ -e "$base" ] || {
            mmdebstrap --quiet --variant=minbase --skip=cleanup/apt/lists --dpkgopt=force-unsafe-io \
                --include=systemd --format=tar "$suite" "$base.new" "$sources" >&2 &&
                mv "$base.new" "$base"
        }
    ) 8>"$base.lock" || fail "mmdebstrap makes no chroot"
    mkdir "$work/$1"
    tar -xf "$base" -C "$work/$1" || fail "$base is not unpacked"
    echo '127.0.0.1 localhost' >"$work/$1/etc/hosts" # as the installer does
    echo "$work/$1"
}

# boot ROOT: starts the chroot's systemd, as process 1 of a container without a network.
boot() {
    local tries=0
    (
        keep=
        [ -d /run/systemd/system ] || { join_cgroups; keep=--keep-unit; }
        exec systemd-nspawn --quiet --machine="${work##*/}" --directory="$1" --boot --register=no $keep \
            --private-network --link-journal=no --resolv-conf=off --timezone=off --console=pipe
    ) </dev/null >"$work/boot.log" 2>&1 &
    container=$!
    until init=$(awk '{ print $1 }' "/proc/$container/task/$container/children" 2>/dev/null) &&
        inside systemctl is-system-running --wait >/dev/null 2>&1; do
        kill -0 $container 2>/dev/null && [ $((tries += 1)) -lt 600 ] ||
            { cat "$work/boot.log"; fail "systemd does not start"; }
        sleep 0.1
    done
}

# inside COMMAND...: there.
inside() {
    nsenter --target "$init" --all env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin LC_ALL=C.UTF-8 \
        DEBIAN_FRONTEND=noninteractive "$@" </dev/null
}

stop_container() {
    local top
    [ -n "$container" ] || return 0
    kill -TERM "$container" 2>/dev/null || true
    wait "$container" || true
    container=
    for top in $cgroups; do
        find "$top/${work##*/}" -depth -type d -exec rmdir {} + 2>/dev/null || true
    done
}

# Where control groups of systemd are: of version 1, with or without version 2 beside it, or 2.
cgroups='/sys/fs/cgroup/systemd /sys/fs/cgroup/unified /sys/fs/cgroup'

# Without a systemd that gives each container one of its own, all would be in the same.
join_cgroups() {
    local top
    for top in $cgroups; do
        [ -e "$top/cgroup.procs" ] || continue
        mkdir "$top/${work##*/}"
        echo "$BASHPID" >"$top/${work##*/}/cgroup.procs"
    done
}
