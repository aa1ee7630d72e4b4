"""Machines that somebody orders of a provider: the stack does not make them."""

from __future__ import annotations

from typing import Literal

from gpuplan.frozen import record

Subject = Literal[
    "machines", "prices", "quotas", "capacity", "kubernetes", "network", "disks", "spot", "driver"
]
Architecture = Literal["amd64", "arm64"]


@record
class Page:
    """A page of the provider about a subject; `date` is when it was read."""

    subject: Subject
    title: str
    url: str
    date: str


@record
class Statement:
    """What a source says of the provider's nodes."""

    subject: Subject
    about: str
    source: str


@record
class OrderedMachine:
    """Machines of a pool. `scratch_bytes` is what the pods of one write to its own disks, beside
    images; `nvme_bytes` of all its local drives. Where work spans machines they are `together`, in
    one network for traffic between GPUs. None is unknown."""

    pool: str
    architecture: Architecture | None = None
    vcpus: int | None = None
    nvme_drives: int | None = None
    nvme_bytes: int | None = None
    rdma: str | None = None
    scratch_bytes: int = 0
    together: bool = False


@record
class Order:
    """What is ordered of one provider. `driver_by`: who installs the GPU driver in its Kubernetes;
    `node_pools` the API of its node pools, where they are objects of Kubernetes; `not_known` the
    subjects that no page or statement of the catalogue is about."""

    provider: str
    name: str
    machines: tuple[OrderedMachine, ...]
    pages: tuple[Page, ...] = ()
    statements: tuple[Statement, ...] = ()
    driver_by: Literal["provider", "nobody", "choice"] | None = None
    node_pools: str | None = None
    not_known: tuple[Subject, ...] = ()
