"""The virtual machines, each defined from the XML that was reviewed.

A change reaches the guest when it starts next. Nothing here stops or restarts a guest.
"""

from pathlib import Path

import pulumi
import pulumi_command as command

import hosts

# Each guest's host.
guests = {"lora-70b-0": "hv-01", "lora-70b-1": "hv-02"}

# lora-70b-0 on hv-01: 96 CPUs, 640 GiB, gpu0, nic0, gpu1, nic1, gpu2, nic2, gpu3, nic3, gpu4, nic4,
# gpu5, nic5, gpu6, nic6, gpu7, nic7, nvme0
lora_70b_0_define = hosts.as_root(
    (
        "virsh --connect qemu:///system define --validate /dev/stdin && virsh --connect "
        "qemu:///system autostart lora-70b-0"
    ),
)

command.remote.Command(
    "lora-70b-0-on-hv-01",
    connection=hosts.hv_01_connection,
    create=lora_70b_0_define,
    update=lora_70b_0_define,
    # a running guest runs on until it is shut down, and its disks stay
    delete=hosts.as_root(
        (
            'guests="$(virsh --connect qemu:///system list --all --name)" && { ! echo "$guests" | '
            "grep -qxF lora-70b-0 || virsh --connect qemu:///system undefine --nvram lora-70b-0; }"
        ),
    ),
    stdin=Path("hypervisor/libvirt/lora-70b-0.xml").read_text(encoding="utf-8"),
    add_previous_output_in_env=False,
    opts=pulumi.ResourceOptions(depends_on=[hosts.hv_01_units], protect=True),
)

# lora-70b-1 on hv-02: 96 CPUs, 640 GiB, gpu0, nic0, gpu1, nic1, gpu2, nic2, gpu3, nic3, gpu4, nic4,
# gpu5, nic5, gpu6, nic6, gpu7, nic7, nvme0
lora_70b_1_define = hosts.as_root(
    (
        "virsh --connect qemu:///system define --validate /dev/stdin && virsh --connect "
        "qemu:///system autostart lora-70b-1"
    ),
)

command.remote.Command(
    "lora-70b-1-on-hv-02",
    connection=hosts.hv_02_connection,
    create=lora_70b_1_define,
    update=lora_70b_1_define,
    # a running guest runs on until it is shut down, and its disks stay
    delete=hosts.as_root(
        (
            'guests="$(virsh --connect qemu:///system list --all --name)" && { ! echo "$guests" | '
            "grep -qxF lora-70b-1 || virsh --connect qemu:///system undefine --nvram lora-70b-1; }"
        ),
    ),
    stdin=Path("hypervisor/libvirt/lora-70b-1.xml").read_text(encoding="utf-8"),
    add_previous_output_in_env=False,
    opts=pulumi.ResourceOptions(depends_on=[hosts.hv_02_units], protect=True),
)
