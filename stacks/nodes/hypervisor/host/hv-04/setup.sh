#!/bin/sh
# Written by gpuplan for hv-04. `apply` installs the folders beside this file, `remove` undoes
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
    sh "$folder/usr/local/sbin/gpuplan-disks" check
}

files() {
    cat <<'END'
4652825e9e332b72377f0b742b09668e1ca20ba11a1a89bd14ed80099dde0a36  etc/default/grub.d/60-gpuplan.cfg
68fc1c43ab7958a1fa7dff275f33a8b442d44aa115961c1c0ee570d33c8323ab  etc/libvirt/hooks/qemu.d/gpuplan
6a5dc4fe1d78f8137817473e3b88622640b5fbae281e5ff72620fa2cfb6cf8ad  etc/modules-load.d/gpuplan-vfio.conf
c944acf9465e08549a5b26d3e36f4e1dfe022aa3afcc2e4885589d69144c9c7a  etc/sysctl.d/60-gpuplan.conf
9f458c65e40cb5e52ae243a6214ebde41f61660ca50e5ca986115935096acb43  etc/systemd/system.conf.d/60-gpuplan.conf
dcc587729527fd8fa888a40a25fc0b3805d1c282251d859f7562af54eabacdec  etc/systemd/system/gpuplan-hugepages.service
111ec859de67f86ac990a9132c459e23a6b176efa0389e3ec72dfca40afa63dc  etc/systemd/system/irqbalance.service.d/60-gpuplan.conf
eb24e27536247b2d17ad181d1713cd1a4fed5ab101e2a95da165a1a512fa0c10  etc/systemd/system/libvirtd.service.d/60-gpuplan.conf
eb24e27536247b2d17ad181d1713cd1a4fed5ab101e2a95da165a1a512fa0c10  etc/systemd/system/virtqemud.service.d/60-gpuplan.conf
8b7d2722bac59050a43848dced54142d44f053886081e514b8387140ce96c65b  etc/udev/rules.d/60-gpuplan-vfio.rules
00800954a4fea26146750f066e6c71336a76c72344f4854e95a6221dec5a4f6d  usr/local/sbin/gpuplan-devices
51d7f59eaa00666b8d69cc1f9a3300d1dcb3cbae8cb49d9cb75c1ab9c30af5a1  usr/local/sbin/gpuplan-disks
1f9010bfb6a9da1a8985a267ce3dbb1cfd3824f7dd34e3d35dbed5df08217b6a  var/lib/gpuplan/seeds/desk-0/user-data
35bcc7e5b643e9af7e8fec52d315153743c3e305d45c9b6d3d2e3638298611ae  var/lib/gpuplan/seeds/desk-0/meta-data
e3a461b05cd00f6f030345a0f414b3680ad12e4bb120ae794db84f4b2301baab  var/lib/gpuplan/seeds/desk-0/network-config
3abc2015afcdc97e06f6194cc58ed28fcaa1634164f9ab931654eddff048d582  var/lib/gpuplan/seeds/desk-1/user-data
ad0600a2d8fb24e4d810f096f84160cd37e9cbfe817042a32e4478eb05f12b87  var/lib/gpuplan/seeds/desk-1/meta-data
d9d29933559e0b876a7662c127bfef3fd5a2d139b3f2913b41b2b5f7d75dcd61  var/lib/gpuplan/seeds/desk-1/network-config
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
    compare /etc/systemd/system/irqbalance.service.d/60-gpuplan.conf
    compare /etc/systemd/system/libvirtd.service.d/60-gpuplan.conf
    compare /etc/systemd/system/virtqemud.service.d/60-gpuplan.conf
    compare /etc/udev/rules.d/60-gpuplan-vfio.rules
    compare /usr/local/sbin/gpuplan-devices
    compare /usr/local/sbin/gpuplan-disks
    compare /var/lib/gpuplan/seeds/desk-0/user-data
    compare /var/lib/gpuplan/seeds/desk-0/meta-data
    compare /var/lib/gpuplan/seeds/desk-0/network-config
    compare /var/lib/gpuplan/seeds/desk-1/user-data
    compare /var/lib/gpuplan/seeds/desk-1/meta-data
    compare /var/lib/gpuplan/seeds/desk-1/network-config
    test ! -e /etc/modprobe.d/60-gpuplan.conf || { echo "- "/etc/modprobe.d/60-gpuplan.conf; changed=1; }
    test ! -e /etc/systemd/system/gpuplan-settings.service || { echo "- "/etc/systemd/system/gpuplan-settings.service; changed=1; }
    test ! -e /usr/local/sbin/gpuplan-nics || { echo "- "/usr/local/sbin/gpuplan-nics; changed=1; }
    test ! -e /usr/local/sbin/gpuplan-settings || { echo "- "/usr/local/sbin/gpuplan-settings; changed=1; }
    test ! -e /usr/local/sbin/gpuplan-vgpus || { echo "- "/usr/local/sbin/gpuplan-vgpus; changed=1; }
    test ! -e /etc/systemd/system/gpuplan-nics.service || { echo "- "/etc/systemd/system/gpuplan-nics.service; changed=1; }
    test ! -e /etc/systemd/system/gpuplan-vgpus.service || { echo "- "/etc/systemd/system/gpuplan-vgpus.service; changed=1; }
    systemctl is-enabled gpuplan-hugepages.service >/dev/null 2>&1 || { echo "~ gpuplan-hugepages.service does not begin with a boot"; changed=1; }
    sh "$folder/usr/local/sbin/gpuplan-disks" diff || changed=1
    test ! -e "$unfinished" || { echo "~ the last apply did not end"; changed=1; }
    exit "$changed"
}

apply() {
    whole
    check
    install -D /dev/null "$unfinished"
    # An earlier version of the stack may have needed these.
    drop /etc/modprobe.d/60-gpuplan.conf /etc/systemd/system/gpuplan-settings.service /usr/local/sbin/gpuplan-nics /usr/local/sbin/gpuplan-settings /usr/local/sbin/gpuplan-vgpus /etc/systemd/system/gpuplan-nics.service /etc/systemd/system/gpuplan-vgpus.service
    place 0644 /etc/default/grub.d/60-gpuplan.cfg
    place 0755 /etc/libvirt/hooks/qemu.d/gpuplan
    place 0644 /etc/modules-load.d/gpuplan-vfio.conf
    place 0644 /etc/sysctl.d/60-gpuplan.conf
    place 0644 /etc/systemd/system.conf.d/60-gpuplan.conf
    place 0644 /etc/systemd/system/gpuplan-hugepages.service
    place 0644 /etc/systemd/system/irqbalance.service.d/60-gpuplan.conf
    place 0644 /etc/systemd/system/libvirtd.service.d/60-gpuplan.conf
    place 0644 /etc/systemd/system/virtqemud.service.d/60-gpuplan.conf
    place 0644 /etc/udev/rules.d/60-gpuplan-vfio.rules
    place 0755 /usr/local/sbin/gpuplan-devices
    place 0755 /usr/local/sbin/gpuplan-disks
    place 0600 /var/lib/gpuplan/seeds/desk-0/user-data
    place 0600 /var/lib/gpuplan/seeds/desk-0/meta-data
    place 0600 /var/lib/gpuplan/seeds/desk-0/network-config
    place 0600 /var/lib/gpuplan/seeds/desk-1/user-data
    place 0600 /var/lib/gpuplan/seeds/desk-1/meta-data
    place 0600 /var/lib/gpuplan/seeds/desk-1/network-config
    /usr/local/sbin/gpuplan-disks make
    systemctl daemon-reload
    systemctl reenable gpuplan-hugepages.service
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
        /etc/systemd/system/irqbalance.service.d/60-gpuplan.conf \
        /etc/systemd/system/libvirtd.service.d/60-gpuplan.conf \
        /etc/systemd/system/virtqemud.service.d/60-gpuplan.conf \
        /etc/udev/rules.d/60-gpuplan-vfio.rules \
        /usr/local/sbin/gpuplan-devices \
        /usr/local/sbin/gpuplan-disks \
        /var/lib/gpuplan/seeds/desk-0/user-data \
        /var/lib/gpuplan/seeds/desk-0/meta-data \
        /var/lib/gpuplan/seeds/desk-0/network-config \
        /var/lib/gpuplan/seeds/desk-1/user-data \
        /var/lib/gpuplan/seeds/desk-1/meta-data \
        /var/lib/gpuplan/seeds/desk-1/network-config
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
