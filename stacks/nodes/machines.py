"""The virtual machines, each defined from the XML that was reviewed.

A change reaches the guest when it starts next. Nothing here stops or restarts a guest.
"""

from pathlib import Path

import pulumi
import pulumi_command as command

import hosts

# Each guest's host.
guests = {"desk-0": "hv-04", "desk-1": "hv-04"}

# desk-0 on hv-04: 12 CPUs, 80 GiB, gpu0
desk_0_define = hosts.as_root(
    (
        "virsh --connect qemu:///system define --validate /dev/stdin && virsh --connect "
        "qemu:///system autostart desk-0"
    ),
)

command.remote.Command(
    "desk-0-on-hv-04",
    connection=hosts.hv_04_connection,
    create=desk_0_define,
    update=desk_0_define,
    # a running guest runs on until it is shut down, and its disks stay
    delete=hosts.as_root(
        (
            'guests="$(virsh --connect qemu:///system list --all --name)" && { ! echo "$guests" | '
            "grep -qxF desk-0 || virsh --connect qemu:///system undefine --nvram desk-0; }"
        ),
    ),
    stdin=Path("hypervisor/libvirt/desk-0.xml").read_text(encoding="utf-8"),
    add_previous_output_in_env=False,
    opts=pulumi.ResourceOptions(depends_on=[hosts.hv_04_units], protect=True),
)

# desk-1 on hv-04: 12 CPUs, 80 GiB, gpu0
desk_1_define = hosts.as_root(
    (
        "virsh --connect qemu:///system define --validate /dev/stdin && virsh --connect "
        "qemu:///system autostart desk-1"
    ),
)

command.remote.Command(
    "desk-1-on-hv-04",
    connection=hosts.hv_04_connection,
    create=desk_1_define,
    update=desk_1_define,
    # a running guest runs on until it is shut down, and its disks stay
    delete=hosts.as_root(
        (
            'guests="$(virsh --connect qemu:///system list --all --name)" && { ! echo "$guests" | '
            "grep -qxF desk-1 || virsh --connect qemu:///system undefine --nvram desk-1; }"
        ),
    ),
    stdin=Path("hypervisor/libvirt/desk-1.xml").read_text(encoding="utf-8"),
    add_previous_output_in_env=False,
    opts=pulumi.ResourceOptions(depends_on=[hosts.hv_04_units], protect=True),
)
