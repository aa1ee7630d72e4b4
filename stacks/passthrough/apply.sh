#!/bin/sh
# Written by gpuplan: the stack passthrough by ssh and virsh alone, for who has no Pulumi; in the same order
# and with the same checks. Each verb may run again.
#   check   holds every host's versions and devices against what the guests need; changes nothing
#   diff    what `apply` would change; exits with 1 where that is something
#   apply   sets the hosts up, undefines guests that left their host, defines the others; starts none
#   start   starts the guests that are not running
#   remove  undefines the guests, which must be shut down, and undoes what `apply` did to the hosts
# The hosts are called by their names; ~/.ssh/config says where they are. GPUPLAN_USER is root, or a user
# there who may `sudo` without a password. The hosts that were set up are kept in applied.txt beside this
# file. What is done on a host, its own setup.sh and guests.sh do.
set -eu
cd "$(dirname "$0")"

folder=/var/lib/gpuplan/passthrough/host
user="${GPUPLAN_USER:-root}"

fail() {
    echo "apply.sh: $1" >&2
    exit 1
}

# CALL: once for each host.
hosts() {
    :
    "$1" hv-01
    "$1" hv-02
}

# HOST: the XML of its guests.
guests_of() {
    case "$1" in
    hv-01) echo lora-70b-0.xml ;;
    hv-02) echo lora-70b-1.xml ;;
    esac
}

# HOST SCRIPT ARGUMENT…: as root, with this standard input.
on() {
    host="$1"
    script="$2"
    shift 2
    command="sh -eu -c $(quoted "$script") sh"
    for argument; do
        command="$command $(quoted "$argument")"
    done
    test "$user" = root || command="sudo -n $command"
    ssh -o BatchMode=yes -l "$user" "$host" "$command"
}

quoted() {
    printf "'"
    printf %s "$1" | sed "s/'/'\\\\''/g"
    printf "'"
}

# HOST: its folder, whole, with the XML of its guests.
stage() {
    tar -C "hypervisor/host/$1" -cf - . |
        on "$1" 'rm -rf "$1" && mkdir -p -m 0700 "$1/guests" && tar -C "$1" --no-same-owner -xf -' "$folder"
    # shellcheck disable=SC2046 # names of guests are words
    tar -C hypervisor/libvirt -cf - $(guests_of "$1") | on "$1" 'tar -C "$1/guests" --no-same-owner -xf -' "$folder"
}

# HOST SCRIPT VERB
run() {
    on "$1" 'sh "$1/$2" "$3"' "$folder" "$2" "$3" </dev/null
}

check_host() {
    echo "host $1"
    stage "$1"
    run "$1" setup.sh check
}

# HOST SCRIPT
compare() {
    run "$1" "$2" diff || { test "$?" = 1 || fail "$1 cannot be compared"; changed=1; }
}

diff_host() {
    echo "host $1"
    stage "$1"
    compare "$1" setup.sh
    compare "$1" guests.sh
}

leave_host() {
    note "$1"
    run "$1" guests.sh leave || fail "guests stay on $1, and nothing else was done"
}

setup_host() {
    echo "host $1"
    run "$1" setup.sh apply
}

define_host() {
    run "$1" guests.sh define
}

start_host() {
    run "$1" guests.sh start
}

remove_guests() {
    run "$1" guests.sh remove || fail "guests stay on $1, and nothing else was done"
}

remove_host() {
    echo "host $1"
    run "$1" setup.sh remove
    on "$1" 'rm -rf "$1"' "$folder" </dev/null
    forget "$1"
}

# HOST: kept until the same is forgotten.
note() {
    touch applied.txt
    grep -qxF "$1" applied.txt || echo "$1" >>applied.txt
}

forget() {
    test ! -e applied.txt || {
        grep -vxF "$1" applied.txt >applied.new || true
        mv applied.new applied.txt
    }
}

# CALL: once for each host that was set up and is in the stack no longer.
former() {
    test ! -e applied.txt || for name in $(hosts echo | grep -vxF -f - applied.txt | sort); do
        "$1" "$name"
    done
}

show_former() {
    echo "- host $1"
    changed=1
}

case "${1:-}" in
check) hosts check_host ;;
diff)
    changed=0
    former show_former
    hosts diff_host
    exit "$changed"
    ;;
apply)
    hosts check_host
    former remove_guests
    hosts leave_host
    former remove_host
    hosts setup_host
    hosts define_host
    ;;
start) hosts start_host ;;
remove)
    former remove_guests
    hosts remove_guests
    former remove_host
    hosts remove_host
    rm -f applied.txt
    ;;
*)
    echo "usage: apply.sh check | diff | apply | start | remove" >&2
    exit 2
    ;;
esac
