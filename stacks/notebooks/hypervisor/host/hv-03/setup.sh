#!/bin/sh
# Written by gpuplan for hv-03. `apply` installs the folders beside this file, `remove` undoes
# that. Either may run again, and what either does takes effect with the next boot. `check`, which
# `apply` begins with, changes nothing: it holds versions and devices against what the guests need.
# `diff` shows what `apply` would change, and exits with 1 where that is something. FOLDER is where the
# folders are, if this comes on standard input.
# usage: setup.sh check | diff | apply | remove [FOLDER]
set -eu

folder="${2:-$(dirname "$0")}"
unfinished=/var/lib/gpuplan/unfinished

fail() {
    echo "setup.sh: $1" >&2
    exit 1
}

# PROGRAM LEAST PURPOSE HAVE
least() {
    test -n "$4" || fail "nothing says which $1 there is, and $3 need $2"
    first="$(printf '%s\n' "$2" "$4" | sort -V | head -n 1)"
    test "$first" = "$2" || fail "$1 is $4, and $3 need $2"
}

check() {
    least Linux 6.8 'vGPUs on virtual functions' "$(uname -r 2>/dev/null || true)"
    least libvirt 10.0.0 'vGPUs on virtual functions, whose driver is not vfio-pci but a variant of it' "$(virsh --version 2>/dev/null || true)"
    least OVMF 2022.11 'a window for GPUs'"'"' memory as large as the guest'"'"'s address space allows' "$(dpkg-query --show --showformat '${Version}' ovmf 2>/dev/null || true)"
    sh "$folder/usr/local/sbin/gpuplan-devices" check
}

files() {
    cat <<'END'
20b8ebfed0be2bfdec309df57d673375e3d877c452976a5e54babd56b471fbcc  etc/default/grub.d/60-gpuplan.cfg
0a05796258bf41ed601f8e8460f0c4d07b5cbd12575c1289756f0df1c9c580cb  etc/libvirt/hooks/qemu.d/gpuplan
f86f42f958b773efca470b9c86c40c767fbc53491ca7fe953b678532eb94d060  etc/modprobe.d/60-gpuplan.conf
b54106eea546904875fc41b6f89ba0edb0a144f66ccdaa61e9cc99237de7784d  etc/sysctl.d/60-gpuplan.conf
10fd979a9a1a2328344fdb1c4b814fec1a9fea7268760524a6797758a57b2a17  etc/systemd/system.conf.d/60-gpuplan.conf
0381484e67b4100dab0b2752e641f624ee1fe508f3f30144e9b062296e5bfccd  etc/systemd/system/gpuplan-hugepages.service
1d5478249e62c4b917bc7a91bbedbbd471ebcdde4dd4911abc0982ada0b8cce3  etc/systemd/system/gpuplan-settings.service
c03df67ec4fff4113bd6ae0ebf654c450b64cbb7029748a011b17de7d040ab13  etc/systemd/system/irqbalance.service.d/60-gpuplan.conf
6f280fc85da901b4a30f18ed99f5206c4f8bcd0250e67f32bf7e7bf3de3376ef  etc/systemd/system/libvirtd.service.d/60-gpuplan.conf
6f280fc85da901b4a30f18ed99f5206c4f8bcd0250e67f32bf7e7bf3de3376ef  etc/systemd/system/virtqemud.service.d/60-gpuplan.conf
4da9b9e7f87bf810f6934463402cb59dd4a204005dc55d87b1c81acf713131c2  usr/local/sbin/gpuplan-devices
230655051ba05764327ae995086f3e184474eb0b902019861a4d49e768486fc7  usr/local/sbin/gpuplan-settings
c1be70566f757d301e38bf24494d991036d2c4301498720c8931590bff42843b  usr/local/sbin/gpuplan-vgpus
END
}

drop() {
    for file; do
        case "$file" in
        *.service) test ! -e "$file" || systemctl disable "${file##*/}" ;;
        */user-data) rm -f "${file%/*}.iso" ;;
        esac
        rm -f "$file"
    done
}

# The initramfs has copies of the rules and of the modules to load: old ones would outlive these.
boot() {
    update-grub
    if command -v update-initramfs >/dev/null; then
        update-initramfs -u -k all
    elif command -v dracut >/dev/null; then
        dracut --force --regenerate-all
    fi
}

# MODE PATH
place() {
    install -D -m "$1" "$folder$2" "$2"
}

# PATH
compare() {
    test -e "$1" || { echo "+ $1"; changed=1; return; }
    diff -u "$1" "$folder$1" || changed=1
}

# The folders are those that this file was written with.
whole() {
    (cd "$folder" && files | sha256sum --check --quiet)
}

diff_all() {
    whole
    changed=0
    compare /etc/default/grub.d/60-gpuplan.cfg
    compare /etc/libvirt/hooks/qemu.d/gpuplan
    compare /etc/modprobe.d/60-gpuplan.conf
    compare /etc/sysctl.d/60-gpuplan.conf
    compare /etc/systemd/system.conf.d/60-gpuplan.conf
    compare /etc/systemd/system/gpuplan-hugepages.service
    compare /etc/systemd/system/gpuplan-settings.service
    compare /etc/systemd/system/irqbalance.service.d/60-gpuplan.conf
    compare /etc/systemd/system/libvirtd.service.d/60-gpuplan.conf
    compare /etc/systemd/system/virtqemud.service.d/60-gpuplan.conf
    compare /usr/local/sbin/gpuplan-devices
    compare /usr/local/sbin/gpuplan-settings
    compare /usr/local/sbin/gpuplan-vgpus
    test ! -e /etc/modules-load.d/gpuplan-vfio.conf || { echo "- "/etc/modules-load.d/gpuplan-vfio.conf; changed=1; }
    test ! -e /etc/udev/rules.d/60-gpuplan-vfio.rules || { echo "- "/etc/udev/rules.d/60-gpuplan-vfio.rules; changed=1; }
    test ! -e /usr/local/sbin/gpuplan-disks || { echo "- "/usr/local/sbin/gpuplan-disks; changed=1; }
    test ! -e /usr/local/sbin/gpuplan-nics || { echo "- "/usr/local/sbin/gpuplan-nics; changed=1; }
    test ! -e /etc/systemd/system/gpuplan-nics.service || { echo "- "/etc/systemd/system/gpuplan-nics.service; changed=1; }
    test ! -e /etc/systemd/system/gpuplan-vgpus.service || { echo "- "/etc/systemd/system/gpuplan-vgpus.service; changed=1; }
    systemctl is-enabled gpuplan-hugepages.service >/dev/null 2>&1 || { echo "~ gpuplan-hugepages.service does not begin with a boot"; changed=1; }
    systemctl is-enabled gpuplan-settings.service >/dev/null 2>&1 || { echo "~ gpuplan-settings.service does not begin with a boot"; changed=1; }
    test ! -e "$unfinished" || { echo "~ the last apply did not end"; changed=1; }
    exit "$changed"
}

apply() {
    whole
    check
    install -D /dev/null "$unfinished"
    # An earlier version of the stack may have needed these.
    drop /etc/modules-load.d/gpuplan-vfio.conf /etc/udev/rules.d/60-gpuplan-vfio.rules /usr/local/sbin/gpuplan-disks /usr/local/sbin/gpuplan-nics /etc/systemd/system/gpuplan-nics.service /etc/systemd/system/gpuplan-vgpus.service
    place 0644 /etc/default/grub.d/60-gpuplan.cfg
    place 0755 /etc/libvirt/hooks/qemu.d/gpuplan
    place 0644 /etc/modprobe.d/60-gpuplan.conf
    place 0644 /etc/sysctl.d/60-gpuplan.conf
    place 0644 /etc/systemd/system.conf.d/60-gpuplan.conf
    place 0644 /etc/systemd/system/gpuplan-hugepages.service
    place 0644 /etc/systemd/system/gpuplan-settings.service
    place 0644 /etc/systemd/system/irqbalance.service.d/60-gpuplan.conf
    place 0644 /etc/systemd/system/libvirtd.service.d/60-gpuplan.conf
    place 0644 /etc/systemd/system/virtqemud.service.d/60-gpuplan.conf
    place 0755 /usr/local/sbin/gpuplan-devices
    place 0755 /usr/local/sbin/gpuplan-settings
    place 0755 /usr/local/sbin/gpuplan-vgpus
    systemctl daemon-reload
    systemctl reenable gpuplan-hugepages.service
    systemctl reenable gpuplan-settings.service
    boot
    rm "$unfinished"
}

remove() {
    drop \
        /etc/default/grub.d/60-gpuplan.cfg \
        /etc/libvirt/hooks/qemu.d/gpuplan \
        /etc/modprobe.d/60-gpuplan.conf \
        /etc/sysctl.d/60-gpuplan.conf \
        /etc/systemd/system.conf.d/60-gpuplan.conf \
        /etc/systemd/system/gpuplan-hugepages.service \
        /etc/systemd/system/gpuplan-settings.service \
        /etc/systemd/system/irqbalance.service.d/60-gpuplan.conf \
        /etc/systemd/system/libvirtd.service.d/60-gpuplan.conf \
        /etc/systemd/system/virtqemud.service.d/60-gpuplan.conf \
        /usr/local/sbin/gpuplan-devices \
        /usr/local/sbin/gpuplan-settings \
        /usr/local/sbin/gpuplan-vgpus
    systemctl daemon-reload
    boot
    rm -f "$unfinished"
}

case "${1:-}" in
apply | check | remove) "$1" </dev/null ;;
diff) diff_all </dev/null ;;
*)
    echo "usage: setup.sh check | diff | apply | remove [FOLDER]" >&2
    exit 2
    ;;
esac
