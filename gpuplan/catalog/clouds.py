"""Facts about providers' managed Kubernetes, read when a cluster of one is planned."""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any, Literal

from gpuplan.catalog.citations import Citations
from gpuplan.catalog.model import Citation
from gpuplan.frozen import record
from gpuplan.units import GIB

CLOUDS = Path(__file__).with_name("clouds.json")


@record
class ImageFact:
    """A release of the image of nodes with GPUs, and the driver in it."""

    release: str
    driver: str
    source: Citation


@record
class AddonsFact:
    """Versions of add-ons that a provider had together, by the add-on."""

    versions: tuple[tuple[str, str], ...]
    source: Citation


@record
class CloudRelease:
    """A minor release of Kubernetes. Days are `YYYY-MM-DD`, None where no source states one, as of
    its nodes' image and its add-ons."""

    version: str
    standard_until: str
    extended_until: str | None = None
    source: Citation
    image: ImageFact | None = None
    addons: AddonsFact | None = None

    @property
    def number(self) -> tuple[int, ...]:
        return tuple(map(int, self.version.split(".")))


@record
class QuotaFact:
    """How much an account may run of instance types that begin as one of `families`, without any of
    all that have GPUs; counted in `unit`."""

    name: str
    code: str | None
    families: tuple[str, ...]
    unit: Literal["vCPUs", "GPUs"]
    capacity: Literal["on-demand", "spot", "any"]
    source: Citation

    def counts(self, instance: str) -> bool:
        return not self.families or any(instance.startswith(f) for f in self.families)


@record
class InterfacesFact:
    """Network cards of a machine; `first` is what the first one has beside IP, `rdma` where all of
    them are for RDMA alone."""

    cards: int
    first: Literal["efa", "interface", "rdma"]
    source: Citation


@record
class CloudFacts:
    """One provider; machines by instance type. `accelerators` are the provider's names of GPUs by
    how instance types begin, `capacities` the only ways in which a machine can be had, `drives` how
    many local ones it comes with, where the list of instances has none, and `temporary_bytes` of
    the one that an operating system can lie on; only the provider's driver installs on those of
    `own_drivers`."""

    releases: tuple[CloudRelease, ...]
    quotas: tuple[QuotaFact, ...]
    interfaces: dict[str, InterfacesFact]
    numa_nodes: dict[str, int]
    accelerators: dict[str, str]
    capacities: dict[str, tuple[str, ...]]
    drives: dict[str, int]
    temporary_bytes: dict[str, int]
    own_drivers: frozenset[str]

    def accelerator(self, instance: str) -> str | None:
        """By the longest beginning that is known."""
        known = (f for f in self.accelerators if instance.startswith(f))
        return self.accelerators.get(max(known, key=len, default=""))

    @property
    def newest(self) -> CloudRelease:
        return max(self.releases, key=lambda r: r.number)


@cache
def _tree() -> dict[str, Any]:
    tree: dict[str, Any] = json.loads(CLOUDS.read_bytes())["clouds"]
    return tree


def _release(row: dict[str, Any], cite: Callable[[str, str], Citation]) -> CloudRelease:
    image, addons = row.get("image"), row.get("addons")
    return CloudRelease(
        version=row["version"],
        standard_until=row["standard_until"],
        extended_until=row.get("extended_until"),
        source=cite(row["source"], row["version"]),
        image=image and ImageFact(**{**image, "source": cite(image["source"], image["release"])}),
        addons=addons
        and AddonsFact(
            versions=tuple(sorted(addons["versions"].items())),
            source=cite(addons["source"], f"add-ons of {row['version']}"),
        ),
    )


def load_cloud(provider: str) -> CloudFacts | None:
    """None for a provider that no file is about."""
    entry = next((e for e in _tree().values() if e["provider"] == provider), None)
    if entry is None:
        return None
    cite = Citations("clouds", provider, entry).of
    return CloudFacts(
        releases=tuple(_release(row, cite) for row in entry["releases"]),
        quotas=tuple(
            QuotaFact(
                **{
                    **{field: row.get(field) for field in ("name", "code", "capacity")},
                    "families": tuple(row["families"]),
                    "unit": row.get("unit", "vCPUs"),
                    "source": cite(row["source"], row["name"]),
                }
            )
            for row in entry.get("quotas", ())
        ),
        interfaces={
            row["instance"]: InterfacesFact(
                cards=row["cards"],
                first=row["first"],
                source=cite(row["source"], row["instance"]),
            )
            for row in entry.get("interfaces", ())
        },
        numa_nodes={row["instance"]: row["nodes"] for row in entry.get("numa", ())},
        accelerators={
            family: row["name"]
            for row in entry.get("accelerators", ())
            for family in row["families"]
        },
        capacities={row["instance"]: tuple(row["only"]) for row in entry.get("capacities", ())},
        drives={row["instance"]: row["count"] for row in entry.get("drives", ())},
        temporary_bytes={
            row["instance"]: row["gib"] * GIB for row in entry.get("temporary_disks", ())
        },
        own_drivers=frozenset(row["instance"] for row in entry.get("own_drivers", ())),
    )
