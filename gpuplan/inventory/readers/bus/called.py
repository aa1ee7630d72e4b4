"""What the names of pci.ids say of a device's class, where a tool prints no other word of it."""

from __future__ import annotations

import re

# NVIDIA's switches are no GPUs, RAID controllers no drives; virtual functions are facts of their
# cards.
_NONE = re.compile(r"Virtual Function|NVSwitch|RAID|Volume Management")
_GPU = re.compile(r"NVIDIA Corporation [A-Z]{1,2}[0-9]{2,3}[A-Z]* .*\[.+\]|.*\[Instinct .+\]")
_NIC = re.compile(r".*\b(?:ConnectX|Ethernet|InfiniBand)\b.*")
_NVME = re.compile(r".*\bNVMe\b.*")


def kind_by_name(name: str) -> str:
    """`gpu`, `nic` or `nvme` where the name says so, else `device`. The sound and the USB of an
    NVIDIA card have no product in brackets."""
    if _NONE.search(name):
        return "device"
    known = {"gpu": _GPU, "nic": _NIC, "nvme": _NVME}
    return next((kind for kind, form in known.items() if form.fullmatch(name)), "device")
