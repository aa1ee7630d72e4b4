"""The NICs' virtual functions that a host makes for its guests, and how they are known."""

from __future__ import annotations

import uuid
from collections.abc import Iterator, Sequence

from gpuplan.backends.libvirt.view import Nic, NicFunction
from gpuplan.plan.model import GuestDevice, Host, VirtualMachine
from gpuplan.render.environments import Verbatim
from gpuplan.render.markdown import code

LOCAL = 0x52  # administered by hand, of one port; MAC addresses of guests begin alike


def nics(host: Host, machines: Sequence[VirtualMachine], *, infiniband: bool) -> Iterator[Nic]:
    """The NICs of `host` with functions in guests. All functions that the inventory states are
    made, because a card gives up those it has before it makes another number of them."""
    for nic in host.devices:
        functions = tuple(
            NicFunction(
                address=d.address,
                code=Verbatim(code(d.address)),
                guest=m.name,
                device=d.name,
                guid=guid(m, d) if infiniband else "",
                guid_code=Verbatim(code(guid(m, d))),
            )
            for m in machines
            for d in m.devices
            if d.kind == "nic" and d.parent == nic.address
        )
        if functions:
            count = max(nic.virtual_functions, len(functions))
            yield Nic(
                address=nic.address,
                count=count,
                mtu="" if nic.mtu is None else str(nic.mtu),
                functions=functions,
            )


def guid(machine: VirtualMachine, device: GuestDevice) -> str:
    """The GUID of an InfiniBand function, node and port alike: made from the stack, the guest
    (both are in its UUID) and the device, so that it outlives reboots and moves with the guest."""
    digest = uuid.uuid5(uuid.UUID(machine.uuid), f"{device.name}/guid").bytes
    return ":".join(f"{b:02x}" for b in (LOCAL, *digest[:7]))
