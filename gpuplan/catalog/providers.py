"""Where machines of a provider are ordered, read when a plan has nodes of one."""

from __future__ import annotations

import json
from functools import cache
from typing import Any, Literal

from gpuplan.catalog.citations import Citations
from gpuplan.catalog.clouds import CLOUDS
from gpuplan.catalog.model import CatalogSource
from gpuplan.frozen import record

LINKS = ("machines", "prices", "quotas", "capacity", "kubernetes", "network", "disks", "spot")
STATED = ("machines", "driver", "network", "disks", "quotas")
DriverBy = Literal["provider", "nobody", "choice"]


@record
class Statement:
    """What a source says of a `subject` of `STATED`."""

    subject: str
    about: str
    source: CatalogSource


@record
class ProviderFacts:
    """One provider. `links` are its pages by the subjects of `LINKS`; `driver_by` says who installs
    the GPU driver in its Kubernetes, `node_pools` the API of its node pools where they are objects
    of Kubernetes. None where no source says so."""

    provider: str
    name: str
    links: tuple[tuple[str, CatalogSource], ...]
    statements: tuple[Statement, ...]
    driver_by: DriverBy | None
    node_pools: str | None


@cache
def _tree() -> dict[str, Any]:
    tree: dict[str, Any] = json.loads(CLOUDS.read_bytes())["providers"]
    return tree


def load_provider(name: str) -> ProviderFacts | None:
    """None for a provider that no file is about."""
    entry = next((e for e in _tree().values() if e["provider"] == name), None)
    if entry is None:
        return None
    source = Citations("providers", name, entry).source
    links = entry["links"]
    stated = ((subject, entry[subject]) for subject in STATED if subject in entry)
    return ProviderFacts(
        provider=name,
        name=entry["name"],
        links=tuple((about, source(links[about])) for about in LINKS if about in links),
        statements=tuple(
            Statement(subject=subject, about=row["about"], source=source(row["source"]))
            for subject, row in stated
        ),
        driver_by=entry.get("driver", {}).get("by"),
        node_pools=entry.get("node_pools"),
    )


def provider_entry(name: str) -> dict[str, Any] | None:
    """The whole entry, for its digest."""
    return next((e for e in _tree().values() if e["provider"] == name), None)
