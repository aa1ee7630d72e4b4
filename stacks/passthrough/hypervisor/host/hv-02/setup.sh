#!/bin/sh
# Written by gpuplan for hv-02. The stack's program runs it there: `apply` after it copied the
# folders beside this file to the root, `remove` to undo that. Either may run again, and what either
# does takes effect with the next boot.
set -eu

files() {
    cat <<'END'
27ec23ce1968559d6d8fbb6c473f26f6511f94979ce01e4c60eb1475a8c652f3  /etc/default/grub.d/60-gpuplan.cfg
811b231e984aaef4d6b2eab9967faa02c077eb63a1cfb5270ab72224999b8550  /etc/modules-load.d/gpuplan-vfio.conf
1fe0a2e34ea25732a16bdd796bb447ef4a1dcece0c4b62fc9232e345aa35ea33  /etc/systemd/system.conf.d/60-gpuplan.conf
3de3ec23ba829459ff6907819a98a04beb001fdbae9f7df1f9fa5cb782f763c2  /etc/systemd/system/gpuplan-hugepages.service
2940c690c936d1a0b33da77c5fed603b79949285e66ef0e0aff7c9a3f4f8ad85  /etc/systemd/system/gpuplan-nics.service
895e508f372d7c7d7dd8f2fb298775afe4bedb671a7aab6cf9154131440dd83e  /etc/udev/rules.d/60-gpuplan-vfio.rules
c64c94e330967b3004bba6736d18ec71890940bf8c8dfc4e115e1e54a72b400f  /usr/local/sbin/gpuplan-nics
END
}

drop() {
    for file; do
        case "$file" in
        *.service) test ! -e "$file" || systemctl disable "${file##*/}" ;;
        esac
        rm -f "$file"
    done
}

apply() {
    files | sha256sum --check --quiet
    # An earlier version of the stack may have needed these.
    drop /etc/systemd/system/gpuplan-vgpus.service /usr/local/sbin/gpuplan-vgpus
    chmod 0755 /usr/local/sbin/gpuplan-nics
    systemctl daemon-reload
    systemctl enable gpuplan-hugepages.service
    systemctl enable gpuplan-nics.service
    update-grub
}

remove() {
    drop \
        /etc/default/grub.d/60-gpuplan.cfg \
        /etc/modules-load.d/gpuplan-vfio.conf \
        /etc/systemd/system.conf.d/60-gpuplan.conf \
        /etc/systemd/system/gpuplan-hugepages.service \
        /etc/systemd/system/gpuplan-nics.service \
        /etc/udev/rules.d/60-gpuplan-vfio.rules \
        /usr/local/sbin/gpuplan-nics
    systemctl daemon-reload
    update-grub
}

case "${1:-}" in
apply | remove) "$1" </dev/null ;;
*)
    echo "usage: setup.sh apply | remove" >&2
    exit 2
    ;;
esac
