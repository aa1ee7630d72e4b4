"""The virtual machines, each defined from the XML that was reviewed.

A change reaches the guest when it starts next. Nothing here stops or restarts a guest.
"""

from pathlib import Path

import pulumi
import pulumi_command as command

import hosts

# Each guest's host.
guests = {
    "notebook-0": "hv-03",
    "notebook-1": "hv-03",
    "notebook-2": "hv-03",
    "notebook-3": "hv-03",
    "notebook-4": "hv-03",
    "notebook-5": "hv-03",
    "notebook-6": "hv-03",
    "notebook-7": "hv-03",
    "helper-0": "hv-03",
}

# notebook-0 on hv-03: 2 CPUs, 10 GiB, gpu0
notebook_0_define = hosts.as_root(
    (
        "virsh --connect qemu:///system define --validate /dev/stdin && virsh --connect "
        "qemu:///system autostart notebook-0"
    ),
)

command.remote.Command(
    "notebook-0-on-hv-03",
    connection=hosts.hv_03_connection,
    create=notebook_0_define,
    update=notebook_0_define,
    # a running guest runs on until it is shut down, and its disks stay
    delete=hosts.as_root(
        (
            'guests="$(virsh --connect qemu:///system list --all --name)" && { ! echo "$guests" | '
            "grep -qxF notebook-0 || virsh --connect qemu:///system undefine --nvram notebook-0; }"
        ),
    ),
    stdin=Path("hypervisor/libvirt/notebook-0.xml").read_text(encoding="utf-8"),
    add_previous_output_in_env=False,
    opts=pulumi.ResourceOptions(depends_on=[hosts.hv_03_units], protect=True),
)

# notebook-1 on hv-03: 2 CPUs, 10 GiB, gpu0
notebook_1_define = hosts.as_root(
    (
        "virsh --connect qemu:///system define --validate /dev/stdin && virsh --connect "
        "qemu:///system autostart notebook-1"
    ),
)

command.remote.Command(
    "notebook-1-on-hv-03",
    connection=hosts.hv_03_connection,
    create=notebook_1_define,
    update=notebook_1_define,
    # a running guest runs on until it is shut down, and its disks stay
    delete=hosts.as_root(
        (
            'guests="$(virsh --connect qemu:///system list --all --name)" && { ! echo "$guests" | '
            "grep -qxF notebook-1 || virsh --connect qemu:///system undefine --nvram notebook-1; }"
        ),
    ),
    stdin=Path("hypervisor/libvirt/notebook-1.xml").read_text(encoding="utf-8"),
    add_previous_output_in_env=False,
    opts=pulumi.ResourceOptions(depends_on=[hosts.hv_03_units], protect=True),
)

# notebook-2 on hv-03: 2 CPUs, 10 GiB, gpu0
notebook_2_define = hosts.as_root(
    (
        "virsh --connect qemu:///system define --validate /dev/stdin && virsh --connect "
        "qemu:///system autostart notebook-2"
    ),
)

command.remote.Command(
    "notebook-2-on-hv-03",
    connection=hosts.hv_03_connection,
    create=notebook_2_define,
    update=notebook_2_define,
    # a running guest runs on until it is shut down, and its disks stay
    delete=hosts.as_root(
        (
            'guests="$(virsh --connect qemu:///system list --all --name)" && { ! echo "$guests" | '
            "grep -qxF notebook-2 || virsh --connect qemu:///system undefine --nvram notebook-2; }"
        ),
    ),
    stdin=Path("hypervisor/libvirt/notebook-2.xml").read_text(encoding="utf-8"),
    add_previous_output_in_env=False,
    opts=pulumi.ResourceOptions(depends_on=[hosts.hv_03_units], protect=True),
)

# notebook-3 on hv-03: 2 CPUs, 10 GiB, gpu0
notebook_3_define = hosts.as_root(
    (
        "virsh --connect qemu:///system define --validate /dev/stdin && virsh --connect "
        "qemu:///system autostart notebook-3"
    ),
)

command.remote.Command(
    "notebook-3-on-hv-03",
    connection=hosts.hv_03_connection,
    create=notebook_3_define,
    update=notebook_3_define,
    # a running guest runs on until it is shut down, and its disks stay
    delete=hosts.as_root(
        (
            'guests="$(virsh --connect qemu:///system list --all --name)" && { ! echo "$guests" | '
            "grep -qxF notebook-3 || virsh --connect qemu:///system undefine --nvram notebook-3; }"
        ),
    ),
    stdin=Path("hypervisor/libvirt/notebook-3.xml").read_text(encoding="utf-8"),
    add_previous_output_in_env=False,
    opts=pulumi.ResourceOptions(depends_on=[hosts.hv_03_units], protect=True),
)

# notebook-4 on hv-03: 2 CPUs, 10 GiB, gpu0
notebook_4_define = hosts.as_root(
    (
        "virsh --connect qemu:///system define --validate /dev/stdin && virsh --connect "
        "qemu:///system autostart notebook-4"
    ),
)

command.remote.Command(
    "notebook-4-on-hv-03",
    connection=hosts.hv_03_connection,
    create=notebook_4_define,
    update=notebook_4_define,
    # a running guest runs on until it is shut down, and its disks stay
    delete=hosts.as_root(
        (
            'guests="$(virsh --connect qemu:///system list --all --name)" && { ! echo "$guests" | '
            "grep -qxF notebook-4 || virsh --connect qemu:///system undefine --nvram notebook-4; }"
        ),
    ),
    stdin=Path("hypervisor/libvirt/notebook-4.xml").read_text(encoding="utf-8"),
    add_previous_output_in_env=False,
    opts=pulumi.ResourceOptions(depends_on=[hosts.hv_03_units], protect=True),
)

# notebook-5 on hv-03: 2 CPUs, 10 GiB, gpu0
notebook_5_define = hosts.as_root(
    (
        "virsh --connect qemu:///system define --validate /dev/stdin && virsh --connect "
        "qemu:///system autostart notebook-5"
    ),
)

command.remote.Command(
    "notebook-5-on-hv-03",
    connection=hosts.hv_03_connection,
    create=notebook_5_define,
    update=notebook_5_define,
    # a running guest runs on until it is shut down, and its disks stay
    delete=hosts.as_root(
        (
            'guests="$(virsh --connect qemu:///system list --all --name)" && { ! echo "$guests" | '
            "grep -qxF notebook-5 || virsh --connect qemu:///system undefine --nvram notebook-5; }"
        ),
    ),
    stdin=Path("hypervisor/libvirt/notebook-5.xml").read_text(encoding="utf-8"),
    add_previous_output_in_env=False,
    opts=pulumi.ResourceOptions(depends_on=[hosts.hv_03_units], protect=True),
)

# notebook-6 on hv-03: 2 CPUs, 10 GiB, gpu0
notebook_6_define = hosts.as_root(
    (
        "virsh --connect qemu:///system define --validate /dev/stdin && virsh --connect "
        "qemu:///system autostart notebook-6"
    ),
)

command.remote.Command(
    "notebook-6-on-hv-03",
    connection=hosts.hv_03_connection,
    create=notebook_6_define,
    update=notebook_6_define,
    # a running guest runs on until it is shut down, and its disks stay
    delete=hosts.as_root(
        (
            'guests="$(virsh --connect qemu:///system list --all --name)" && { ! echo "$guests" | '
            "grep -qxF notebook-6 || virsh --connect qemu:///system undefine --nvram notebook-6; }"
        ),
    ),
    stdin=Path("hypervisor/libvirt/notebook-6.xml").read_text(encoding="utf-8"),
    add_previous_output_in_env=False,
    opts=pulumi.ResourceOptions(depends_on=[hosts.hv_03_units], protect=True),
)

# notebook-7 on hv-03: 2 CPUs, 10 GiB, gpu0
notebook_7_define = hosts.as_root(
    (
        "virsh --connect qemu:///system define --validate /dev/stdin && virsh --connect "
        "qemu:///system autostart notebook-7"
    ),
)

command.remote.Command(
    "notebook-7-on-hv-03",
    connection=hosts.hv_03_connection,
    create=notebook_7_define,
    update=notebook_7_define,
    # a running guest runs on until it is shut down, and its disks stay
    delete=hosts.as_root(
        (
            'guests="$(virsh --connect qemu:///system list --all --name)" && { ! echo "$guests" | '
            "grep -qxF notebook-7 || virsh --connect qemu:///system undefine --nvram notebook-7; }"
        ),
    ),
    stdin=Path("hypervisor/libvirt/notebook-7.xml").read_text(encoding="utf-8"),
    add_previous_output_in_env=False,
    opts=pulumi.ResourceOptions(depends_on=[hosts.hv_03_units], protect=True),
)

# helper-0 on hv-03: 2 CPUs, 16 GiB, gpu0
helper_0_define = hosts.as_root(
    (
        "virsh --connect qemu:///system define --validate /dev/stdin && virsh --connect "
        "qemu:///system autostart helper-0"
    ),
)

command.remote.Command(
    "helper-0-on-hv-03",
    connection=hosts.hv_03_connection,
    create=helper_0_define,
    update=helper_0_define,
    # a running guest runs on until it is shut down, and its disks stay
    delete=hosts.as_root(
        (
            'guests="$(virsh --connect qemu:///system list --all --name)" && { ! echo "$guests" | '
            "grep -qxF helper-0 || virsh --connect qemu:///system undefine --nvram helper-0; }"
        ),
    ),
    stdin=Path("hypervisor/libvirt/helper-0.xml").read_text(encoding="utf-8"),
    add_previous_output_in_env=False,
    opts=pulumi.ResourceOptions(depends_on=[hosts.hv_03_units], protect=True),
)
