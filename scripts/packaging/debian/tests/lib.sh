# SPDX-License-Identifier: BSD-3-Clause
# Copyright (c) 2026 the memcached-qos authors
#
# For the tests of the installed packages, which run in the source tree.
. scripts/lib.sh

here=debian/tests
server=
folder=$(own_tmp)
trap '[ -z "$server" ] || kill "$server" 2>/dev/null || true; rm -rf "$folder"' EXIT

# start COMMAND...: starts a server on $port, which is to be among its arguments.
start() {
    # shellcheck disable=SC2046
    "$@" $(server_user) &
    server=$!
    wait_ready "$port" "$server"
}

# stop [SIGNAL]: ends it, and fails unless its status is 0.
stop() {
    kill -"${1:-TERM}" "$server"
    wait "$server"
    server=
}

# fails COMMAND...: it does; of a "!" the shell takes no notice.
fails() {
    if "$@"; then
        echo "it did not fail: $*" >&2
        return 1
    fi
}
