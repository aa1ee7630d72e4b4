"""What the shell of a job's container runs: variables, then the engine in its place.

Whatever the manifest says stands here, where it cannot change what the batch script does before.
"""

from __future__ import annotations

import re
import shlex

from gpuplan.backends.slurm.job import Job
from gpuplan.engines.container import folder, variables
from gpuplan.engines.launch import Argument, written
from gpuplan.plan.model import by_name
from gpuplan.render.commented import Because

_ADAPTER = re.compile(r"[A-Za-z0-9_.-]{1,63}")
FIRST = "gpuplan.first.node"  # stands for the host name that only the job knows
SECRETS = "/run/gpuplan-secrets"  # the file of a container's secrets
INDEX, PORT, MEETING = "GPUPLAN_INDEX", "GPUPLAN_PORT", "GPUPLAN_FIRST"  # of the batch script


def command(job: Job, *, before: bool = False) -> str:
    """For the shell of the container."""
    lines = []
    if job.workload.secrets:
        lines.append(f'while IFS= read -r line; do export "$line"; done < {SECRETS}')
    lines += _home(job)
    for name, value in _fabric(job).items():
        lines.append(f'export {name}="${{{name}-{value}}}"')
    secret = {s.environment for s in job.workload.secrets}
    for name, value in variables(job.workload, job.launch, job.plan.network).items():
        if name not in secret:
            lines.append(f"export {name}={shlex.quote(value)}")
    lines.append(f'export MASTER_ADDR="${MEETING}"' if job.workload.nodes_per_replica > 1 else "")
    if before:
        words = [shlex.quote(word) for word in job.launch.before]
    else:
        words = [shlex.quote(word) for word in job.launch.command]
        words += [_argument(job, argument) for argument in job.launch.arguments]
        if job.launch.drain_flag is not None:
            words.append(f"--{job.launch.drain_flag}={job.drain_seconds}")
        if job.workload.notebook and job.moves_port:
            words.append(f'--ServerApp.port="${PORT}"')
    return "\n".join([*filter(None, lines), f"exec {' '.join(words)}"])


def _home(job: Job) -> list[str]:
    """The one of whoever submitted the job is not there, and programs write below it."""
    own = f"export HOME={shlex.quote(folder(job.workload, 'home'))}"
    return [own, 'cd "$HOME"'] if job.workload.notebook else [own]


def _fabric(job: Job) -> dict[str, str]:
    """What NCCL is told of a run's network (NCCL's environment variables, NCCL_IB_HCA: `=` for
    exact names). What the cluster's own profile says already stays."""
    plan, work = job.plan, job.workload
    if work.nodes_per_replica < 2 or plan.cluster is None or plan.fabric is None:
        return {}
    if plan.fabric.kind == "ethernet":
        return {"NCCL_IB_DISABLE": "1"}
    names = by_name(plan.node_pools, work.node_pool).node_names
    sets = {m.adapters for m in plan.cluster.machines if {*m.names} & {*names}}
    adapters = sets.pop() if len(sets) == 1 else ()
    if not adapters or not all(map(_ADAPTER.fullmatch, adapters)):
        return {}
    return {"NCCL_IB_HCA": f"={','.join(adapters)}"}


def _argument(job: Job, argument: Argument) -> str:
    """A run's process is one of its nodes, any other's one of its array."""
    if isinstance(argument, Because):
        return _argument(job, argument.value)
    if argument == f"--master-addr={FIRST}" and not job.workload.command:
        return f'--master-addr="${MEETING}"'
    if job.moves_port and argument == f"--port={job.launch.port}":
        return f'--port="${PORT}"'
    trains = job.workload.task in ("training", "finetuning")
    index = '"$SLURM_NODEID"' if trains else f'"${INDEX}"'
    return str(written(argument, index, lambda text: shlex.quote(text) if text else ""))
