#!/bin/sh
# Written by gpuplan for hv-03. The stack's program runs it there: `apply` after it copied the
# folders beside this file to the root, `remove` to undo that. Either may run again, and what either
# does takes effect with the next boot.
set -eu

files() {
    cat <<'END'
1b826d49257a6af9cdcda46a17f5ebdce04b9200995e8fc265ec0e5880a81587  /etc/default/grub.d/60-gpuplan.cfg
10fd979a9a1a2328344fdb1c4b814fec1a9fea7268760524a6797758a57b2a17  /etc/systemd/system.conf.d/60-gpuplan.conf
7f84fe35aafa6eec9bc49633dce1fc3b8c95bf7db61cf96e03df6c363d212438  /etc/systemd/system/gpuplan-hugepages.service
26a2a560ea0654e0bcec25371ac5b7d1343185379a45a35a9e7dab45bc755e32  /etc/systemd/system/gpuplan-vgpus.service
33356fccfd278cabbabbe6960d821a3e068de381312cc711913c158738cf5f35  /usr/local/sbin/gpuplan-vgpus
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
    drop /etc/modules-load.d/gpuplan-vfio.conf /etc/systemd/system/gpuplan-nics.service /etc/udev/rules.d/60-gpuplan-vfio.rules /usr/local/sbin/gpuplan-nics
    chmod 0755 /usr/local/sbin/gpuplan-vgpus
    systemctl daemon-reload
    systemctl enable gpuplan-hugepages.service
    systemctl enable gpuplan-vgpus.service
    update-grub
}

remove() {
    drop \
        /etc/default/grub.d/60-gpuplan.cfg \
        /etc/systemd/system.conf.d/60-gpuplan.conf \
        /etc/systemd/system/gpuplan-hugepages.service \
        /etc/systemd/system/gpuplan-vgpus.service \
        /usr/local/sbin/gpuplan-vgpus
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
