"""A cluster whose machines somebody has, with all of them: what its scheduler is told."""

from __future__ import annotations

from typing import Literal

from gpuplan.frozen import record
from gpuplan.plan.records import origin_field
from gpuplan.source import Origin

Containers = Literal["pyxis", "apptainer"]


@record
class GpuCores:
    """GPUs `first` to `last` of a machine, and the range of physical cores beside them, counted
    over the machine socket by socket."""

    first: int
    last: int
    first_core: int
    last_core: int


@record
class GpuLinks:
    """Two GPUs of a machine, the lower number first, and how many NVLinks are between them."""

    first: int
    second: int
    links: int


@record
class Machine:
    """Equal machines. `kept_cores` and `kept_memory_bytes` are the system's, of each of them.
    `gpu_cores` is empty where nobody says which cores are beside which GPUs, `gpu_links` where
    NVLink joins every two of the GPUs or none. `nvlink_domain`: the
    GPUs of these and of all other machines that name it reach each other over NVLink. `adapters`
    are the kernel's names of the cards over which GPUs exchange data, empty where nobody says.
    `time_slices` are those that each GPU is offered as, None where jobs have whole ones alone."""

    names: tuple[str, ...]
    node_type: str | None = None
    gpu: str
    gpu_product: str
    gpus: int
    sockets: int
    cores: int
    threads_per_core: int
    memory_bytes: int
    kept_cores: int
    kept_memory_bytes: int
    gpu_cores: tuple[GpuCores, ...] = ()
    gpu_links: tuple[GpuLinks, ...] = ()
    nvlink_domain: str | None = None
    adapters: tuple[str, ...] = ()
    time_slices: int | None = None
    origin: Origin | None = origin_field()


@record
class Switch:
    """A switch of the network: the machines and the other switches that are plugged into it."""

    name: str
    hosts: tuple[str, ...] = ()
    switches: tuple[str, ...] = ()


@record
class Reservation:
    """Nodes that are kept for a workload from a local time on, `2026-12-01T08:00:00`; for as long
    as it may take, where `seconds` is None."""

    workload: str
    start: str
    seconds: float | None = None


@record
class Cluster:
    """`controller` and `database` are hosts; `storage` is a folder that all machines mount."""

    controller: str
    database: str
    storage: str
    containers: Containers
    machines: tuple[Machine, ...]
    switches: tuple[Switch, ...] = ()
    reservations: tuple[Reservation, ...] = ()
