#!/bin/sh
# Written by gpuplan for one host: the guests that passthrough has here, whose XML is in `guests` beside this
# file. What was defined is kept in /var/lib/gpuplan/passthrough, so that a guest that left is known.
#   diff    what `leave` and `define` would change; exits with 1 where that is something
#   leave   undefines the guests that the stack has here no longer, which must be shut down
#   define  defines those it has; starts none
#   start   starts those that are not running
#   remove  undefines all of them
set -eu

folder="$(dirname "$0")"
kept=/var/lib/gpuplan/passthrough
seeds=/var/lib/gpuplan/seeds

virsh() {
    command virsh --connect qemu:///system "$@"
}

# CALL: once for each guest.
guests() {
    :
    "$1" lora-70b-1
}

# The guests that were defined here, and are in the stack no longer or on another host.
left() {
    for file in "$kept"/*.kept.xml; do
        name="${file##*/}"
        name="${name%.kept.xml}"
        test ! -e "$file" || guests echo | grep -qxF "$name" || echo "$name"
    done
}

# The guest's XML as it was applied, and as libvirt kept it: somebody may have edited it there.
compare() {
    test -e "$kept/$1.kept.xml" || { echo "+ guest $1"; changed=1; return; }
    virsh dumpxml --inactive "$1" 2>/dev/null | cmp -s - "$kept/$1.kept.xml" ||
        { echo "~ guest $1: changed or undefined here by another hand"; changed=1; }
    diff -u --label "$1 as it is" --label "$1 of the stack" "$kept/$1.xml" "$folder/guests/$1.xml" || changed=1
}

differ() {
    changed=0
    for name in $(left); do
        echo "- guest $name"
        changed=1
    done
    guests compare
    exit "$changed"
}

define() {
    mkdir -p "$kept"
    cp "$folder/guests/$1.xml" "$kept/$1.xml"
    virsh define --validate "$kept/$1.xml"
    virsh autostart "$1"
    virsh dumpxml --inactive "$1" >"$kept/$1.kept.xml"
}

start() {
    test "$(virsh domstate "$1")" = running || virsh start "$1"
}

# A guest that runs would run on without its definition, and start on another host as well.
undefine() {
    if virsh list --all --name | grep -qxF "$1"; then
        if virsh list --name | grep -qxF "$1"; then
            echo "guests.sh: $1 is running: virsh shutdown $1" >&2
            exit 1
        fi
        virsh undefine --nvram "$1"
    fi
    rm -rf "$kept/$1.xml" "$kept/$1.kept.xml" "$seeds/$1" "$seeds/$1.iso"
}

leave() {
    for name in $(left); do
        undefine "$name"
    done
}

case "${1:-}" in
diff) differ ;;
leave) leave ;;
define | start) guests "$1" ;;
remove)
    leave
    guests undefine
    ;;
*)
    echo "usage: guests.sh diff | leave | define | start | remove" >&2
    exit 2
    ;;
esac
