"""A workload as a job of Slurm: what its script, its accounts and its command are made of."""

from __future__ import annotations

from gpuplan.backends.slurm.view import Nodes
from gpuplan.engines import durations
from gpuplan.engines.launch import Launch
from gpuplan.engines.start import RUNS
from gpuplan.plan.model import Plan, Workload, record


@record
class Job:
    """A workload's script. `count` is of its array, 1 for none; `seconds` its time limit, None for
    none. `port` is the first that its tasks listen on, one each."""

    plan: Plan
    workload: Workload
    launch: Launch
    nodes: Nodes
    port: int | None = None

    @property
    def name(self) -> str:
        return self.workload.name

    def folder(self, root: str, volume: str) -> str:
        """Of one of its volumes."""
        return f"{root}/volumes/{self.workload.oldest_name}-{volume}"

    @property
    def kind(self) -> str:
        """Of the GPUs, or the parts of them, that it gets."""
        return self.nodes.kind(self.workload.partition)

    @property
    def path(self) -> str:
        return f"jobs/{self.name}.sbatch"

    @property
    def ends(self) -> bool:
        return self.workload.task in RUNS

    @property
    def count(self) -> int:
        return self.workload.replicas

    @property
    def seconds(self) -> float | None:
        """The manifest's deadline; else the end of the interval in which the run takes."""
        if not self.ends or self.workload.deadline_seconds is not None:
            return self.workload.deadline_seconds
        highs = (m.estimate.high for m in self.workload.metrics if m.name == "time_to_finish")
        return next(highs, None)

    @property
    def drain_seconds(self) -> int:
        if self.launch.drain_flag is None:
            return 0
        return durations.drain_seconds(self.plan, self.workload)

    @property
    def moves_port(self) -> bool:
        """Whether its port can be told to it: a command of the user's own has one of its own."""
        return self.port is not None and not self.workload.command
