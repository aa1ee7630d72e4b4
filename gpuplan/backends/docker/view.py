"""A workload as containers of one machine: what each is given, and the names that Compose uses."""

from __future__ import annotations

from dataclasses import replace

from gpuplan.engines.launch import Launch
from gpuplan.engines.start import RUNS
from gpuplan.plan.model import MigInstance, Plan, Workload, record


@record
class Share:
    """What a container gets: GPUs by their numbers on the machine, or an `instance` of one of them,
    and physical cores."""

    container: str
    gpus: tuple[int, ...]
    instance: MigInstance | None = None
    cores: int

    @property
    def devices(self) -> tuple[str, ...]:
        """The variables of the device identifiers."""
        return tuple(f"{self._variable}_GPU_{index}" for index in range(len(self.gpus)))

    @property
    def cpus(self) -> str:
        """The variable of the CPU list."""
        return f"{self._variable}_CPUS"

    @property
    def mems(self) -> str:
        """The variable of the NUMA nodes whose memory it gets, where something can be told."""
        return f"{self._variable}_MEMS"

    @property
    def _variable(self) -> str:
        return self.container.upper().replace("-", "_")


@record
class Part:
    """A workload with its start, a share for each of its containers, and the first of their ports
    on the machine; None where nobody connects."""

    plan: Plan
    workload: Workload
    launch: Launch
    shares: tuple[Share, ...]
    port: int | None = None

    def at(self, port: int) -> Part:
        return replace(self, port=port)

    @property
    def name(self) -> str:
        return self.workload.name

    @property
    def ends(self) -> bool:
        return self.workload.task in RUNS

    @property
    def before(self) -> tuple[str, ...]:
        """The workloads that have to end well before it starts; none of what stays, which starts
        with the machine, each time."""
        return self.workload.after if self.ends else ()

    @property
    def profiles(self) -> tuple[str, ...]:
        """What ends is started by its name, and by those of what comes after it: Compose starts no
        container whose profile nobody asks for."""
        if not self.ends:
            return ()
        names = [self.name]
        for name in names:
            names += [
                w.name
                for w in self.plan.workloads
                if name in w.after and w.task in RUNS and w.name not in names
            ]
        return tuple(names)

    @property
    def balanced(self) -> bool:
        """Whether one address stands for all containers."""
        return self.workload.task == "inference" and self.workload.replicas > 1

    @property
    def balancer(self) -> str:
        """The service before the containers, whose own names end with a number: none meet."""
        return f"{self.name}-balancer"


def containers(workload: Workload) -> tuple[str, ...]:
    return tuple(f"{workload.name}-{index}" for index in range(workload.replicas))
