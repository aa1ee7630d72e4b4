"""What the README of a stack says of libvirt's hosts and guests: what a host needs, and what a
guest has. What is one host's alone stands on the page of that host."""

from __future__ import annotations

import shlex
from collections.abc import Iterator

from gpuplan.backends.libvirt.monitoring import shared
from gpuplan.backends.libvirt.seed import credentials
from gpuplan.emission import Section
from gpuplan.plan.model import Plan, VirtualMachine, by_name
from gpuplan.render.environments import Verbatim, render
from gpuplan.render.markdown import code


def _address(machine: VirtualMachine) -> tuple[str, ...]:
    login = f"root@{machine.host}"
    return "ssh", login, "virsh", "domifaddr", machine.name, "--source", "arp"


def _secret_files(plan: Plan) -> list[str]:
    """The files of the hosts whose contents guests get."""
    paths = (
        c.file
        for m in plan.virtual_machines
        for c in credentials(
            plan.name, m, by_name(plan.hosts, m.host), by_name(plan.workloads, m.workload)
        )
    )
    return sorted(set(paths))


def sections(plan: Plan) -> Iterator[Section]:
    guests = plan.virtual_machines
    devices = [d for m in guests for d in m.devices]
    cards = {d.parent for d in devices if d.kind == "nic"}
    fabric = plan.fabric
    before = render(
        "markdown",
        "libvirt/before.md.j2",
        hosts=[Verbatim(f"[{h.name}](hypervisor/host/{h.name}/README.md)") for h in plan.hosts],
        bridges=[Verbatim(code(b)) for b in sorted({m.bridge for m in guests})],
        # How many a NIC makes at most; 0 where no guest owns one.
        functions=max(
            (d.virtual_functions for h in plan.hosts for d in h.devices if d.address in cards),
            default=0,
        ),
        infiniband=fabric is not None and fabric.kind == "infiniband" and bool(cards),
        vgpus=any(d.kind == "vgpu" for d in devices),
        partitions=any(m.fabric_partition is not None for m in guests),
        slurm=any(h.join is not None and h.join.kind == "slurm" for h in plan.hosts),
        images=all(h.image is not None for h in plan.hosts),
        secrets=[Verbatim(code(path)) for path in _secret_files(plan)],
    )
    yield Section("Before", before)
    for workload in (w for w in plan.workloads if w.task == "notebook"):
        own = [m for m in guests if m.workload == workload.name]
        text = render(
            "markdown",
            "libvirt/notebooks.md.j2",
            name=Verbatim(code(workload.name)),
            machines=Verbatim(code(own[0].name) + (f" to {code(own[-1].name)}" if own[1:] else "")),
            address=Verbatim(shlex.join(_address(own[0]))),
        )
        yield Section("Reach", text)
    nccl = any(len([d for d in m.devices if d.kind == "gpu"]) > 1 for m in guests)
    yield Section(
        "After",
        render("markdown", "libvirt/after.md.j2", nccl=nccl, shared=any(map(shared, guests))),
    )
