#!/bin/sh
# Written by gpuplan for hv-01. `apply` installs the folders beside this file, `remove` undoes
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
f72aa2276c3c5ae226e89af40e4d7c0bebebea9416afb29db61f226dce007bc4  etc/default/grub.d/60-gpuplan.cfg
862efbde01e0cfad23bde081ff185237b719d8aaa5d7824ed7c28bc1b35604c0  etc/libvirt/hooks/qemu.d/gpuplan
f8a6b1751ef3b838ec48518929b5cdd1b7a637f86534d9ac6899bd6d30cdf6b2  etc/modules-load.d/gpuplan-vfio.conf
3336985df87428d1160828c2b7db6b855f2d7e21652ae331556d119a629fa6ef  etc/sysctl.d/60-gpuplan.conf
e83506b481fc5fac2fb9ca31b11b1606f094485a296ba15c01b218b2bf2e7d89  etc/systemd/system.conf.d/60-gpuplan.conf
7544570ef510a79e9ad0527f3cc6c16eb482563a3d95a26c56ff6ede0d7dee0e  etc/systemd/system/gpuplan-hugepages.service
408e662566b87dfd7eb6df6b52157500413f0dfea389123bbae5497b319277c2  etc/systemd/system/gpuplan-settings.service
6697d3b014f6dc0295a3c2dd52a3c906f8169bd48f6f951d4da1b111fd20db46  etc/systemd/system/irqbalance.service.d/60-gpuplan.conf
6dff8f295e0ebd6f81290c92b0766968dfd3f74ee69e3b4dcc71d3d7803a6e05  etc/systemd/system/libvirtd.service.d/60-gpuplan.conf
6dff8f295e0ebd6f81290c92b0766968dfd3f74ee69e3b4dcc71d3d7803a6e05  etc/systemd/system/virtqemud.service.d/60-gpuplan.conf
e4b0a2b037e4fb9c997c791adbd152d4761f7febfd8956260cefb6ccc8d6a7eb  etc/udev/rules.d/60-gpuplan-vfio.rules
324b72257d7a7c4467735082c98eba68eb0e993f789ea0728283b33f8826c59e  usr/local/sbin/gpuplan-devices
7efd9157b778f644c9201b56367a5309b59d9faf7173eba2ed5ef3fc185d43d5  usr/local/sbin/gpuplan-nics
31e9db3e90267db5258d67e1aeb04b8c63ef423dcac3bcbe1b5d55e3f2751412  usr/local/sbin/gpuplan-settings
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
