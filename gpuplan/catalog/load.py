"""The catalogue at run time: compiled files, read when asked for, records built on demand.

`compiled.json` is made from `data/**.yaml` by `python -m gpuplan.catalog.compile`.
"""

from __future__ import annotations

import hashlib
import json
from decimal import Decimal
from functools import cache
from pathlib import Path
from typing import Any, Literal

from gpuplan.catalog.citations import Citations
from gpuplan.catalog.gpu_load import load_gpu, matching, reports
from gpuplan.catalog.lookup import HARDWARE_FOLDERS, HardwareLookup
from gpuplan.catalog.model import (
    BuildPin,
    CatalogSource,
    ComponentPin,
    CudaPin,
    EnginePin,
    Gpu,
    NodeTemplate,
    Price,
)
from gpuplan.frozen import record
from gpuplan.plan.records import EngineVariable
from gpuplan.vendors import FIRST

COMPILED = Path(__file__).with_name("compiled.json")
Kind = Literal[
    "gpus",
    "nodes",
    "prices",
    "components",
    "engines",
    "cuda",
    "images",
    "builds",
    "nics",
    "storage",
    "power",
    "purchase",
]

ENOUGH_VCPUS = 8  # a GPU: four physical cores, the least that a GPU should have
ENOUGH_MEMORY_BYTES = 32 * 2**30
PRICE_RULE = (
    "the cheapest dated on-demand listing of whole GPUs with at least 8 vCPU and 32 GiB a GPU; "
    "without one, the cheapest dated, then any"
)


@record
class Listing:
    """A price with the machine that it is of; what its list does not say of it is None."""

    price: Price
    gpus: int
    vcpus: int | None
    memory_bytes: int | None

    @property
    def tier(self) -> int:
        """0 is best: dated and with enough beside the GPUs, dated, any."""
        enough = (self.vcpus or 0) >= ENOUGH_VCPUS * self.gpus and (
            self.memory_bytes or 0
        ) >= ENOUGH_MEMORY_BYTES * self.gpus
        return 2 if not self.price.dated else 0 if enough else 1

    @property
    def rank(self) -> tuple[int, Decimal, str]:
        """Its place under `PRICE_RULE`."""
        return self.tier, self.price.usd_per_hour, self.price.source


class Catalog(HardwareLookup):
    """Hardware, prices and pins by identifier. Unknown identifiers are None, never an error."""

    def __init__(self, tree: dict[str, Any], hardware: dict[str, Any] | None = None) -> None:
        super().__init__(hardware)
        self._tree = tree
        self._gpus: dict[str, Gpu] = {}

    @property
    def gpu_ids(self) -> tuple[str, ...]:
        return self.ids("gpus")

    def ids(self, kind: Kind) -> tuple[str, ...]:
        """Identifiers of the files of `kind`, sorted."""
        return tuple(self._files(kind))

    def gpu(self, identifier: str) -> Gpu | None:
        entry = self._tree["gpus"].get(identifier)
        if entry is None:
            return None
        if identifier not in self._gpus:
            citations = Citations("gpus", identifier, entry)
            self._gpus[identifier] = load_gpu(entry, citations, self._known)
        return self._gpus[identifier]

    def _known(self, identifier: str) -> Gpu:
        gpu = self.gpu(identifier)
        assert gpu is not None, "compiled files name no other"
        return gpu

    def match_gpus(
        self,
        product: str | None = None,
        pci_id: str | None = None,
        memory_bytes: float | None = None,
    ) -> tuple[str, ...]:
        """The GPU types that a device may be: its name as `nvidia-smi` or a node label prints it,
        vendor and device as `lspci -n` does, and the memory it reports. One: that it is; several:
        what is known does not tell them apart; (): none is like that."""
        return matching(self._tree["gpus"], product, pci_id, memory_bytes)

    def has_memory(self, gpu: str, memory_bytes: float | None) -> bool:
        """Whether a device that reports so much, if it reports any, may be of the GPU type."""
        return memory_bytes is None or reports(self._tree["gpus"][gpu], memory_bytes)

    def node(self, gpu: str) -> NodeTemplate | None:
        """The reference node for a GPU type, if one is known."""
        for identifier, entry in self._tree["nodes"].items():
            if entry["gpu"] == gpu:
                source = Citations("nodes", identifier, entry).of(entry["source"])
                return NodeTemplate(**_plain(entry, identifier=identifier, source=source))
        return None

    def prices(self, gpu: str) -> tuple[Price, ...]:
        """Every on-demand listing of the GPU type, cheapest first."""
        return tuple(listing.price for listing in self.listings(gpu))

    def price(self, gpu: str) -> Price | None:
        """The price to reckon with: see `PRICE_RULE`."""
        best = min(self.listings(gpu), key=lambda x: x.rank, default=None)
        return best.price if best else None

    def listings(self, gpu: str) -> list[Listing]:
        """Every on-demand listing of the GPU type with its machine, cheapest first."""
        listings: list[Listing] = []
        for identifier, entry in self._tree["prices"].items():
            citations = Citations("prices", identifier, entry)
            listings += (_listing(row, citations) for row in entry["listings"] if row["gpu"] == gpu)
        return sorted(listings, key=lambda x: (x.price.usd_per_hour, x.rank))

    def component(self, name: str, version: str | None = None) -> ComponentPin | None:
        """The chart at the version that is installed, or at another one that a source states."""
        entry = self._tree["components"].get(name)
        wanted = entry and (version or entry["version"])
        for row in entry["releases"] if entry else ():
            if row["version"] == wanted:
                return _release(name, entry, row)
        return None

    def releases(self, name: str) -> tuple[str, ...]:
        """The versions of a component that a source states, as they are listed: the newest first;
        () for an unknown one."""
        entry = self._tree["components"].get(name)
        return tuple(row["version"] for row in entry["releases"]) if entry else ()

    def cuda(self, name: str) -> CudaPin | None:
        entry = self._tree["cuda"].get(name)
        if entry is None:
            return None
        source = Citations("cuda", name, entry).of(entry["source"], "driver")
        return CudaPin(name=name, driver=entry["driver"], source=source)

    def engine(self, name: str) -> EnginePin | None:
        entry = self._tree["engines"].get(name)
        if entry is None:
            return None
        citations = Citations("engines", name, entry)
        cuda = entry.get("cuda")
        return EnginePin(
            name=name,
            version=entry["version"],
            image=entry["image"],
            digest=entry.get("digest"),
            tasks=tuple(entry["tasks"]),
            source=citations.of(entry["source"], "image"),
            cuda=cuda and cuda["version"],
            cuda_source=cuda and citations.of(cuda["source"], "cuda"),
            builds=self.builds(name),
            processors=_processors(entry),
        )

    def image(self, name: str) -> EnginePin | None:
        """A program that a target needs beside the workloads, which has no tasks."""
        entry = self._tree["images"].get(name)
        if entry is None:
            return None
        source = Citations("images", name, entry).of(entry["source"], "image")
        return EnginePin(
            name=name,
            version=entry["version"],
            image=entry["image"],
            digest=entry.get("digest"),
            tasks=(),
            source=source,
            processors=_processors(entry),
        )

    def build(self, name: str) -> BuildPin | None:
        entry = self._tree["builds"].get(name)
        if entry is None:
            return None
        names = ("name", "value", "reason")
        return BuildPin(
            name=name,
            engine=entry["engine"],
            vendor=entry["vendor"],
            architectures=tuple(entry["architectures"]),
            version=entry["version"],
            image=entry["image"],
            digest=entry.get("digest"),
            tasks=tuple(entry["tasks"]),
            source=Citations("builds", name, entry).of(entry["source"], "image"),
            environment=tuple(
                EngineVariable(**{n: row[n] for n in names}) for row in entry["environment"]
            ),
        )

    def builds(self, engine: str) -> tuple[BuildPin, ...]:
        """The images of an engine for GPUs of other vendors, by name."""
        names = (n for n, e in self._tree["builds"].items() if e["engine"] == engine)
        return tuple(pin for name in sorted(names) if (pin := self.build(name)))

    def plannable(self, gpu: Gpu) -> bool:
        """Whether some engine has an image for its kind."""
        builds = self._tree["builds"].values()
        return gpu.vendor == FIRST or any(
            gpu.vendor == b["vendor"] and gpu.architecture in b["architectures"] for b in builds
        )

    def default_engine(self, task: str) -> EnginePin | None:
        """The engine for a task when the manifest names none."""
        for name, entry in self._tree["engines"].items():
            if task in entry["default_for"]:
                return self.engine(name)
        return None

    def engines(self, task: str) -> tuple[EnginePin, ...]:
        """All that do a task, by name."""
        names = (n for n, entry in self._tree["engines"].items() if task in entry["tasks"])
        return tuple(pin for name in sorted(names) if (pin := self.engine(name)))

    def sources(self, kind: Kind, identifier: str) -> tuple[CatalogSource, ...]:
        """The sources of one file, for `gpuplan catalog show`; () for an unknown one."""
        entry = self._files(kind).get(identifier)
        return Citations(kind, identifier, entry).sources if entry else ()

    def notes(self, kind: Kind, identifier: str) -> tuple[str, ...]:
        """What a reader of one file should know beside its facts."""
        return tuple(self._files(kind).get(identifier, {}).get("notes", ()))

    def sha256(self, kind: Kind, identifier: str) -> str:
        """Digest of what plans read of an entry, in canonical form: its facts with their sources,
        without notes."""
        facts = self._tree[kind][identifier].items()
        return digest({key: value for key, value in facts if key != "notes"})

    def _files(self, kind: Kind) -> dict[str, Any]:
        return (self._hardware if kind in HARDWARE_FOLDERS else self._tree)[kind]  # type: ignore[no-any-return]


def digest(tree: Any) -> str:
    """SHA-256 of plain data in canonical JSON."""
    text = json.dumps(tree, ensure_ascii=False, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()


@cache
def load_catalog() -> Catalog:
    return Catalog(json.loads(COMPILED.read_bytes()))


def _plain(entry: dict[str, Any], *drop: str, **replace: object) -> dict[str, Any]:
    """The fields of a flat record."""
    unused = {"sources", "notes", *drop}
    return {k: v for k, v in entry.items() if k not in unused} | replace


def _release(name: str, entry: dict[str, Any], row: dict[str, Any]) -> ComponentPin:
    citations = Citations("components", name, entry)
    tested, kubernetes = row.get("tested"), row.get("kubernetes")
    removed = row.get("uninstall_removes")
    return ComponentPin(
        name=name,
        version=row["version"],
        app_version=row.get("app_version"),
        repository=entry["repository"],
        chart=entry["chart"],
        digest=row.get("digest"),
        namespace=entry["namespace"],
        kubernetes_minimum=entry.get("kubernetes_minimum"),
        driver=row.get("driver"),
        source=citations.of(row["source"], "version"),
        drivers=tuple(row["drivers"]),
        kubernetes_tested=(kubernetes["oldest"], kubernetes["newest"]) if kubernetes else (),
        tested=citations.of(tested, row["version"]) if tested else None,
        needed_for=entry.get("needed_for"),
        uninstall_removes=tuple(removed["definitions"]) if removed else (),
    )


def _listing(row: dict[str, Any], citations: Citations) -> Listing:
    source = citations.source(row["source"])
    subject = row["instance"] or f"{row['provider']} {row['gpus']} x {row['gpu']}"
    price = Price(
        gpu=row["gpu"],
        usd_per_hour=Decimal(row["usd_per_hour"]),
        provider=row["provider"],
        region=row["region"],
        date=source.date,
        source=citations.of(row["source"], subject),
        dated=source.published,
        instance=row["instance"],
    )
    return Listing(
        price=price, gpus=row["gpus"], vcpus=row["vcpus"], memory_bytes=row["memory_bytes"]
    )


def _processors(entry: dict[str, Any]) -> tuple[str, ...]:
    return tuple(entry.get("processors", {}).get("values", ()))
