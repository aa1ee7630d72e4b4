#!/bin/sh
# Written by gpuplan for hv-02. `apply` installs the folders beside this file, `remove` undoes
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
    least Linux 5.16 'counts of huge pages by NUMA node on the kernel line' "$(uname -r 2>/dev/null || true)"
    least libvirt 8.7.0 'the host'"'"'s physical address bits in guests (maxphysaddr)' "$(virsh --version 2>/dev/null || true)"
    least OVMF 2022.11 'a window for GPUs'"'"' memory as large as the guest'"'"'s address space allows' "$(dpkg-query --show --showformat '${Version}' ovmf 2>/dev/null || true)"
    sh "$folder/usr/local/sbin/gpuplan-devices" check
}

files() {
    cat <<'END'
e80812151ea8cf159c9eb9df8587fc2d3a25a76e053ec9ca2db97efe8eb47050  etc/default/grub.d/60-gpuplan.cfg
341325369e3ef8027ffadbdd2ccdc045aced39ed36b98cdc743d34f48751a400  etc/libvirt/hooks/qemu.d/gpuplan
811b231e984aaef4d6b2eab9967faa02c077eb63a1cfb5270ab72224999b8550  etc/modules-load.d/gpuplan-vfio.conf
0d159feb0c246e3d7b2a408f59b776c22ef78ce5c1c878ff21b828eb1178cd96  etc/sysctl.d/60-gpuplan.conf
1fe0a2e34ea25732a16bdd796bb447ef4a1dcece0c4b62fc9232e345aa35ea33  etc/systemd/system.conf.d/60-gpuplan.conf
5e1818c87a2b4fc143004a1e56098ff3451f58f32e0caa92d62739c64e15893c  etc/systemd/system/gpuplan-hugepages.service
cc77167def7124ba22f4127259e985180b0b4dd9b81a16c9b9afcba62157e9a2  etc/systemd/system/gpuplan-settings.service
b31449dbf28280e538949615355a3a6c476f6f439ed38c4f9c4688d0bdba4524  etc/systemd/system/irqbalance.service.d/60-gpuplan.conf
b6518c21cca10df8fc6a89c97e70500fdc5992ddab515ab53748f9fe460b59c3  etc/systemd/system/libvirtd.service.d/60-gpuplan.conf
b6518c21cca10df8fc6a89c97e70500fdc5992ddab515ab53748f9fe460b59c3  etc/systemd/system/virtqemud.service.d/60-gpuplan.conf
44dcd07bb6707301a7b8c0e703a1011ba7205bc57f46b0c4f5212deea278c45a  etc/udev/rules.d/60-gpuplan-vfio.rules
d0ade09ba6e22b31ecb47b72a4169d60d2f44831ea72e3ec8717331fbff3e5c5  usr/local/sbin/gpuplan-devices
5578ace5619525a44e996a9d46ddf3f3305811d597edbc3b2078cd7d348dbfab  usr/local/sbin/gpuplan-nics
15d0a017f28ddb702c80be928dfbffb074bf0945d8202cc70728acc90a239fac  usr/local/sbin/gpuplan-settings
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
    compare /etc/modules-load.d/gpuplan-vfio.conf
    compare /etc/sysctl.d/60-gpuplan.conf
    compare /etc/systemd/system.conf.d/60-gpuplan.conf
    compare /etc/systemd/system/gpuplan-hugepages.service
    compare /etc/systemd/system/gpuplan-settings.service
    compare /etc/systemd/system/irqbalance.service.d/60-gpuplan.conf
    compare /etc/systemd/system/libvirtd.service.d/60-gpuplan.conf
    compare /etc/systemd/system/virtqemud.service.d/60-gpuplan.conf
    compare /etc/udev/rules.d/60-gpuplan-vfio.rules
    compare /usr/local/sbin/gpuplan-devices
    compare /usr/local/sbin/gpuplan-nics
    compare /usr/local/sbin/gpuplan-settings
    test ! -e /etc/modprobe.d/60-gpuplan.conf || { echo "- "/etc/modprobe.d/60-gpuplan.conf; changed=1; }
    test ! -e /usr/local/sbin/gpuplan-disks || { echo "- "/usr/local/sbin/gpuplan-disks; changed=1; }
    test ! -e /usr/local/sbin/gpuplan-vgpus || { echo "- "/usr/local/sbin/gpuplan-vgpus; changed=1; }
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
    drop /etc/modprobe.d/60-gpuplan.conf /usr/local/sbin/gpuplan-disks /usr/local/sbin/gpuplan-vgpus /etc/systemd/system/gpuplan-nics.service /etc/systemd/system/gpuplan-vgpus.service
    place 0644 /etc/default/grub.d/60-gpuplan.cfg
    place 0755 /etc/libvirt/hooks/qemu.d/gpuplan
    place 0644 /etc/modules-load.d/gpuplan-vfio.conf
    place 0644 /etc/sysctl.d/60-gpuplan.conf
    place 0644 /etc/systemd/system.conf.d/60-gpuplan.conf
    place 0644 /etc/systemd/system/gpuplan-hugepages.service
    place 0644 /etc/systemd/system/gpuplan-settings.service
    place 0644 /etc/systemd/system/irqbalance.service.d/60-gpuplan.conf
    place 0644 /etc/systemd/system/libvirtd.service.d/60-gpuplan.conf
    place 0644 /etc/systemd/system/virtqemud.service.d/60-gpuplan.conf
    place 0644 /etc/udev/rules.d/60-gpuplan-vfio.rules
    place 0755 /usr/local/sbin/gpuplan-devices
    place 0755 /usr/local/sbin/gpuplan-nics
    place 0755 /usr/local/sbin/gpuplan-settings
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
        /etc/modules-load.d/gpuplan-vfio.conf \
        /etc/sysctl.d/60-gpuplan.conf \
        /etc/systemd/system.conf.d/60-gpuplan.conf \
        /etc/systemd/system/gpuplan-hugepages.service \
        /etc/systemd/system/gpuplan-settings.service \
        /etc/systemd/system/irqbalance.service.d/60-gpuplan.conf \
        /etc/systemd/system/libvirtd.service.d/60-gpuplan.conf \
        /etc/systemd/system/virtqemud.service.d/60-gpuplan.conf \
        /etc/udev/rules.d/60-gpuplan-vfio.rules \
        /usr/local/sbin/gpuplan-devices \
        /usr/local/sbin/gpuplan-nics \
        /usr/local/sbin/gpuplan-settings
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
