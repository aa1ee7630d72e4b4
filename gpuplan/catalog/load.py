"""The catalogue at run time: one compiled file, read in a millisecond, records built on demand.

`compiled.json` is made from `data/**.yaml` by `python -m gpuplan.catalog.compile`.
"""

from __future__ import annotations

import json
from dataclasses import replace
from decimal import Decimal
from functools import cache
from pathlib import Path
from typing import Any, Literal

from gpuplan.catalog.model import (
    CatalogSource,
    ComponentPin,
    EnginePin,
    Fact,
    Gpu,
    MigProfile,
    NodeTemplate,
    Price,
    VgpuType,
)

COMPILED = Path(__file__).with_name("compiled.json")
Kind = Literal["gpus", "nodes", "prices", "components", "engines"]

# Field of the record: field of the file, base unit.
FACTS = {
    "memory_bytes": ("memory", "B"),
    "memory_bytes_per_s": ("memory_bandwidth", "B/s"),
    "peak_bf16": ("peak_bf16", "FLOP/s"),
    "peak_fp8": ("peak_fp8", "FLOP/s"),
    "peak_int8": ("peak_int8", "FLOP/s"),
    "peak_fp4": ("peak_fp4", "FLOP/s"),
    "nvlink_bytes_per_s": ("nvlink", "B/s"),
    "pcie_bytes_per_s": ("pcie", "B/s"),
    "watts": ("power", "W"),
    "bar_bytes": ("bar", "B"),
}

ENOUGH_VCPUS = 8  # a GPU: four physical cores, the least that a GPU should have
ENOUGH_MEMORY_BYTES = 32 * 2**30
PRICE_RULE = (
    "the cheapest dated on-demand listing of whole GPUs with at least 8 vCPU and 32 GiB a GPU; "
    "without one, the cheapest dated, then any"
)


class Catalog:
    """Hardware, prices and pins by identifier. Unknown identifiers are None, never an error."""

    def __init__(self, tree: dict[str, Any]) -> None:
        self._tree = tree
        self._gpus: dict[str, Gpu] = {}

    @property
    def sha256(self) -> str:
        """Digest of the catalogue's content."""
        return str(self._tree["sha256"])

    @property
    def gpu_ids(self) -> tuple[str, ...]:
        return self.ids("gpus")

    def ids(self, kind: Kind) -> tuple[str, ...]:
        """Identifiers of the files of `kind`, sorted."""
        return tuple(self._tree[kind])

    def gpu(self, identifier: str) -> Gpu | None:
        entry = self._tree["gpus"].get(identifier)
        if entry is None:
            return None
        if identifier not in self._gpus:
            self._gpus[identifier] = _gpu(entry, _Citations("gpus", identifier, entry))
        return self._gpus[identifier]

    def node(self, gpu: str) -> NodeTemplate | None:
        """The reference node for a GPU type, if one is known."""
        for identifier, entry in self._tree["nodes"].items():
            if entry["gpu"] == gpu:
                source = _Citations("nodes", identifier, entry).of(entry["source"])
                return NodeTemplate(**_plain(entry, identifier=identifier, source=source))
        return None

    def prices(self, gpu: str) -> tuple[Price, ...]:
        """Every on-demand listing of the GPU type, cheapest first."""
        return tuple(price for price, _ in self._listings(gpu))

    def price(self, gpu: str) -> Price | None:
        """The price to reckon with: see `PRICE_RULE`."""
        best = min(self._listings(gpu), key=lambda item: item[1], default=None)
        if best is None:
            return None
        price = best[0]
        return replace(price, source=f"{price.source}: {PRICE_RULE}")

    def _listings(self, gpu: str) -> list[tuple[Price, tuple[int, Decimal, str]]]:
        """Listings with their rank under `PRICE_RULE`, cheapest first."""
        found: list[tuple[Price, tuple[int, Decimal, str]]] = []
        for identifier, entry in self._tree["prices"].items():
            citations = _Citations("prices", identifier, entry)
            found.extend(_listing(row, citations) for row in entry["listings"] if row["gpu"] == gpu)
        return sorted(found, key=lambda item: (item[0].usd_per_hour, item[1]))

    def component(self, name: str) -> ComponentPin | None:
        entry = self._tree["components"].get(name)
        if entry is None:
            return None
        source = _Citations("components", name, entry).of(entry["source"], "version")
        return ComponentPin(**_plain(entry, name=name, source=source))

    def engine(self, name: str) -> EnginePin | None:
        entry = self._tree["engines"].get(name)
        if entry is None:
            return None
        source = _Citations("engines", name, entry).of(entry["source"], "image")
        tasks = tuple(entry["tasks"])
        return EnginePin(**_plain(entry, "default_for", name=name, tasks=tasks, source=source))

    def default_engine(self, task: str) -> EnginePin | None:
        """The engine for a task when the manifest names none."""
        for name, entry in self._tree["engines"].items():
            if task in entry["default_for"]:
                return self.engine(name)
        return None

    def sources(self, kind: Kind, identifier: str) -> tuple[CatalogSource, ...]:
        """The sources of one file, for `gpuplan catalog show`; () for an unknown one."""
        entry = self._tree[kind].get(identifier)
        return _Citations(kind, identifier, entry).sources if entry else ()

    def notes(self, kind: Kind, identifier: str) -> tuple[str, ...]:
        """What a reader of one file should know beside its facts."""
        return tuple(self._tree[kind].get(identifier, {}).get("notes", ()))


@cache
def load_catalog() -> Catalog:
    return Catalog(json.loads(COMPILED.read_bytes()))


class _Citations:
    """Writes the `source` of a fact of one file: `catalog: FILE FIELD (TITLE, DATE)`."""

    def __init__(self, folder: str, identifier: str, entry: dict[str, Any]) -> None:
        self.file = f"{folder}/{identifier}.yaml"
        self.sources = tuple(
            CatalogSource(key=key, title=title, where=where, date=date, published=bool(published))
            for key, (title, where, date, published) in entry["sources"].items()
        )

    def source(self, key: str) -> CatalogSource:
        return next(s for s in self.sources if s.key == key)

    def of(self, key: str, field: str = "") -> str:
        return f"catalog: {self.file}{field and ' '}{field} ({self.source(key).citation})"


def _plain(entry: dict[str, Any], *drop: str, **replace: object) -> dict[str, Any]:
    """The fields of a flat record."""
    unused = {"sources", "notes", *drop}
    return {k: v for k, v in entry.items() if k not in unused} | replace


def _facts(facts: dict[str, Any], citations: _Citations) -> dict[str, Any]:
    return {
        field: Fact(value=facts[name][0], unit=unit, source=citations.of(facts[name][1], name))
        if name in facts
        else None
        for field, (name, unit) in FACTS.items()
    }


def _gpu(entry: dict[str, Any], citations: _Citations) -> Gpu:
    return Gpu(
        **entry["plain"],
        **_facts(entry["facts"], citations),
        mig_profiles=tuple(
            MigProfile(
                name=name,
                compute_slices=compute,
                memory_slices=slices,
                memory_bytes=memory,
                maximum=maximum,
                starts=tuple(starts),
                source=citations.of(key, f"mig {name}"),
            )
            for name, compute, slices, memory, maximum, starts, key in entry["mig"]
        ),
        vgpu_types=tuple(
            VgpuType(
                name=name,
                memory_bytes=memory,
                maximum=maximum,
                mig_profile=profile,
                source=citations.of(key, f"vgpu {name}"),
            )
            for name, memory, maximum, profile, key in entry["vgpu"]
        ),
    )


def _listing(row: dict[str, Any], citations: _Citations) -> tuple[Price, tuple[int, Decimal, str]]:
    source = citations.source(row["source"])
    what = row["instance"] or f"{row['provider']} {row['gpus']} x {row['gpu']}"
    price = Price(
        gpu=row["gpu"],
        usd_per_hour=Decimal(row["usd_per_hour"]),
        provider=row["provider"],
        region=row["region"],
        date=source.date,
        source=citations.of(row["source"], what),
        dated=source.published,
        instance=row["instance"],
    )
    enough = (row["vcpus"] or 0) >= ENOUGH_VCPUS * row["gpus"] and (
        row["memory_bytes"] or 0
    ) >= ENOUGH_MEMORY_BYTES * row["gpus"]
    tier = 2 if not source.published else 0 if enough else 1
    return price, (tier, price.usd_per_hour, price.source)
