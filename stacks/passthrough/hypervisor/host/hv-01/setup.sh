#!/bin/sh
# Written by gpuplan for hv-01. The stack's program runs it there: `apply` after it copied the
# folders beside this file to the root, `remove` to undo that. Either may run again, and what either
# does takes effect with the next boot.
set -eu

files() {
    cat <<'END'
7a8f06fce479d38b4a1d64f5dda4db4e5f3b75b150a035f3ecae2aed40218b77  /etc/default/grub.d/60-gpuplan.cfg
f8a6b1751ef3b838ec48518929b5cdd1b7a637f86534d9ac6899bd6d30cdf6b2  /etc/modules-load.d/gpuplan-vfio.conf
e83506b481fc5fac2fb9ca31b11b1606f094485a296ba15c01b218b2bf2e7d89  /etc/systemd/system.conf.d/60-gpuplan.conf
2627cee0bf5dd9892ed45b7ccc171ace63d3943fdc6ca9792eb133002eea6e3b  /etc/systemd/system/gpuplan-hugepages.service
a7852c5af63b9e11ed65f862c7a8ab1fa8f3c3c86d1c33274ee6f1f5584f7a3d  /etc/systemd/system/gpuplan-nics.service
316fd647fb11f6166b7d201fda4ccdc13844c00874a721cf1850d258ca03e958  /etc/udev/rules.d/60-gpuplan-vfio.rules
ac10c77c1a00a30e731679f51a4f10b14a729d6252ff96137fc9eb606e805ae0  /usr/local/sbin/gpuplan-nics
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
