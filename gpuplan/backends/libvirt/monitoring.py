"""What Prometheus scrapes of a stack of guests: libvirt on the hosts, DCGM where the driver is (in
a guest that has whole GPUs, on the host of GPUs that guests share), and the engines themselves.

Sources: Debian's package prometheus-libvirt-exporter, which listens on 9177; NVIDIA/dcgm-exporter,
which listens on 9400; the engines' own /metrics.
"""

from __future__ import annotations

from collections.abc import Iterator

from gpuplan.engines.container import listening_port
from gpuplan.plan.model import Plan, VirtualMachine, by_name
from gpuplan.render import commented
from gpuplan.render.commented import Tree
from gpuplan.render.tree import File

PATH = "hypervisor/monitoring/prometheus.yaml"
LIBVIRT_PORT = 9177
DCGM_PORT = 9400
ENGINES = ("vllm", "sglang")  # those with /metrics
TITLE = (
    "Written by gpuplan: take these into Prometheus' own scrape_configs. Guests are called by name."
)


def monitoring(plan: Plan) -> File:
    jobs = [
        _job(
            plan, "libvirt", [_target(f"{h.name}:{LIBVIRT_PORT}", host=h.name) for h in plan.hosts]
        ),
        _job(plan, "dcgm", list(_devices(plan))),
        _job(plan, "engines", list(_engines(plan))),
    ]
    tree = {"scrape_configs": [job for job in jobs if job["static_configs"]]}
    return File(PATH, commented.dumps(tree, {}, TITLE))


def shared(machine: VirtualMachine) -> bool:
    return any(d.kind == "vgpu" for d in machine.devices)


def _devices(plan: Plan) -> Iterator[Tree]:
    hosts = dict.fromkeys(m.host for m in plan.virtual_machines if shared(m))
    yield from (_target(f"{host}:{DCGM_PORT}", host=host) for host in hosts)
    for machine in plan.virtual_machines:
        if any(d.kind == "gpu" for d in machine.devices) and not _joined(plan, machine):
            yield _of(machine, DCGM_PORT)


def _engines(plan: Plan) -> Iterator[Tree]:
    for machine in plan.virtual_machines:
        workload = by_name(plan.workloads, machine.workload)
        port = listening_port(workload)
        if _joined(plan, machine):
            continue
        if port is not None and workload.engine.name in ENGINES:
            yield _of(machine, port)


def _joined(plan: Plan, machine: VirtualMachine) -> bool:
    """Whether a cluster's own monitoring looks after the guest."""
    return by_name(plan.hosts, machine.host).join is not None


def _of(machine: VirtualMachine, port: int) -> Tree:
    return _target(f"{machine.name}:{port}", host=machine.host, workload=machine.workload)


def _target(address: str, **labels: str) -> Tree:
    return {"targets": [address], "labels": labels}


def _job(plan: Plan, name: str, targets: list[Tree]) -> Tree:
    for target in targets:
        target["labels"]["stack"] = plan.name
    return {"job_name": f"{plan.name}-{name}", "static_configs": targets}
