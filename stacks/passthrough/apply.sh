#!/bin/sh
# Written by gpuplan: the stack passthrough by ssh and virsh alone, for who has no Pulumi; in the same order
# and with the same checks. Each verb may run again.
#   check   holds every host's versions and devices against what the guests need; changes nothing
#   diff    what `apply` would change; exits with 1 where that is something
#   apply   sets the hosts up, undefines guests that left their host, defines the others; starts none
#   start   starts the guests that are not running
#   remove  undefines the guests, which must be shut down, and undoes what `apply` did to the hosts
# The hosts are called by their names; ~/.ssh/config says where they are. GPUPLAN_USER is root, or a user
# there who may `sudo` without a password. What was applied is kept in applied.txt beside this file.
set -eu
cd "$(dirname "$0")"

stack=passthrough
staging=.gpuplan/passthrough
kept=/var/lib/gpuplan/passthrough
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

# CALL: once for each guest, with its host.
guests() {
    :
    "$1" lora-70b-0 hv-01
    "$1" lora-70b-1 hv-02
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

virsh="virsh --connect qemu:///system"

# HOST: its folder, whole, below the user's home.
stage() {
    tar -C "hypervisor/host/$1" -cf - . |
        ssh -o BatchMode=yes -l "$user" "$1" "rm -rf $staging/$1 && mkdir -p -m 0700 $staging/$1 && tar -C $staging/$1 -xf -"
}

# HOST VERB
setup() {
    on "$1" 'sh "$1" "$2"' "$staging/$1/setup.sh" "$2" </dev/null
}

check_host() {
    echo "host $1"
    stage "$1"
    setup "$1" check
}

diff_host() {
    echo "host $1"
    stage "$1"
    setup "$1" diff || { test "$?" = 1 || fail "$1 cannot be compared"; changed=1; }
}

apply_host() {
    echo "host $1"
    stage "$1"
    note "host $1"
    setup "$1" apply
}

remove_host() {
    echo "host $1"
    setup "$1" remove
    ssh -o BatchMode=yes -l "$user" "$1" "rm -rf $staging/$1" </dev/null
    forget "host $1"
}

# The guest's XML as it was applied, and as libvirt kept it: somebody may have edited it there.
diff_guest() {
    there="$(on "$2" '
        test -e "$1/$2.xml" || { echo new; exit 0; }
        '"$virsh"' dumpxml --inactive "$2" 2>/dev/null | cmp -s - "$1/$2.kept.xml" || { echo edited; exit 0; }
        echo same' "$kept" "$1" </dev/null)"
    case "$there" in
    new) echo "+ guest $1 on $2" ;;
    edited) echo "~ guest $1 on $2: changed or undefined there by another hand" ;;
    esac
    test "$there" = same || changed=1
    test "$there" = new || on "$2" 'cat "$1"' "$kept/$1.xml" </dev/null |
        diff -u --label "$1 on $2" --label "$1 of the stack" - "hypervisor/libvirt/$1.xml" || changed=1
}

apply_guest() {
    echo "guest $1 on $2"
    note "guest $1 $2"
    on "$2" '
        mkdir -p "$1"
        cat >"$1/$2.xml"
        '"$virsh"' define --validate "$1/$2.xml"
        '"$virsh"' autostart "$2"
        '"$virsh"' dumpxml --inactive "$2" >"$1/$2.kept.xml"' "$kept" "$1" <"hypervisor/libvirt/$1.xml"
}

start_guest() {
    on "$2" 'test "$('"$virsh"' domstate "$1")" = running || '"$virsh"' start "$1"' "$1" </dev/null
}

# A guest that runs would run on without its definition, and start on another host as well.
remove_guest() {
    echo "guest $1 leaves $2"
    on "$2" '
        if '"$virsh"' list --all --name | grep -qxF "$2"; then
            if '"$virsh"' list --name | grep -qxF "$2"; then
                echo "$2 is running: virsh shutdown $2" >&2
                exit 1
            fi
            '"$virsh"' undefine --nvram "$2"
        fi
        rm -f "$1/$2.xml" "$1/$2.kept.xml"' "$kept" "$1" </dev/null || fail "$1 stays on $2, and nothing else was done"
    forget "guest $1 $2"
}

# LINE: kept until the same is forgotten.
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

planned_guest() { echo "guest $1 $2"; }
planned_host() { echo "host $1"; }

# What was applied and is in the stack no longer: guests that moved or are gone, then hosts.
left() {
    test ! -e applied.txt || { guests planned_guest; hosts planned_host; } |
        grep -vxF -f - applied.txt | sort || true
}

leave() {
    left | while read -r kind name host; do
        case "$kind" in
        guest) remove_guest "$name" "$host" ;;
        host) remove_host "$name" ;;
        esac
    done
}

case "${1:-}" in
check) hosts check_host ;;
diff)
    changed=0
    left | sed 's/^/- /'
    test -z "$(left)" || changed=1
    hosts diff_host
    guests diff_guest
    exit "$changed"
    ;;
apply)
    hosts check_host
    leave
    hosts apply_host
    guests apply_guest
    ;;
start) guests start_guest ;;
remove)
    leave
    guests remove_guest
    hosts remove_host
    rm -f applied.txt
    ;;
*)
    echo "usage: apply.sh check | diff | apply | start | remove" >&2
    exit 2
    ;;
esac
