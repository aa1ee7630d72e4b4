"""What the Slurm backend has to say: one constructor a message."""

from __future__ import annotations

from collections.abc import Sequence

from gpuplan.diagnostics import Diagnostic, error, note, warning
from gpuplan.plan.model import Plan, Workload
from gpuplan.render.hostlist import hostlist


def _warning(message: str, workload: Workload, remedy: str) -> Diagnostic:
    return warning("GP017", f"{workload.name}: {message}", workload.origin, help=remedy)


def switches_not_expressed() -> Diagnostic:
    return warning(
        "GP017",
        "Slurm 24.11 knows blocks of NVLink domains or a tree of switches, not both: the"
        " inventory's switches are left out",
        help="runs of several domains may be spread over switches; take 'switches' away, or the"
        " 'nvlink_domain' of the GPUs",
    )


def memory_exchange(workload: Workload) -> Diagnostic:
    return note(
        "GP017",
        f"{workload.name}: its {workload.nodes_per_replica} nodes reach each other's GPUs by NVLink"
        " only where NVIDIA's IMEX service runs on all nodes of their rack",
        workload.origin,
        help="list a rack's nodes in /etc/nvidia-imex/nodes_config.cfg of each of them and start"
        " nvidia-imex.service before slurmd; `nvidia-imex-ctl -N` says whether all are ready",
    )


def own_port(workload: Workload, port: int) -> Diagnostic:
    return _warning(
        f"its {workload.replicas} replicas all listen on port {port}, as 'command' says, so no two"
        " can be on one node",
        workload,
        "let the command listen on $GPUPLAN_PORT, or start one replica",
    )


def addresses(workload: Workload, script: str) -> Diagnostic:
    return note(
        "GP017",
        f"{workload.name}: its {workload.replicas} replicas have an address each, another one when"
        " they run elsewhere",
        workload.origin,
        help=f"keep ./{script} running on a machine with haproxy: it has one address for all",
    )


def layout_per_job(names: Sequence[str]) -> Diagnostic:
    return note(
        "GP017",
        f"{hostlist(names)}: GPUs are cut as the plan says and not for each job, and slurmd"
        " needs its plugin for NVML to find the instances",
        help="run ./mig.sh on the nodes before slurmd starts; `slurmd -G` lists what it found",
    )


def no_cluster(plan: Plan) -> Diagnostic:
    return error(
        "GP016",
        f"the plan of {plan.name} says nothing of its cluster",
        help="compile the stack again from its manifest, with 'slurm' of the platform",
    )
