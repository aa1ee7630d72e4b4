"""A checked file of the catalogue as the entry of `compiled.json` that the loader reads."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

from gpuplan.catalog.compiling.gpu_entry import gpu_entry, number
from gpuplan.catalog.documents.base import SourceEntry
from gpuplan.catalog.documents.cloud import CloudFile
from gpuplan.catalog.documents.component import ComponentFile
from gpuplan.catalog.documents.engine import BuildFile, EngineFile, ImageFile
from gpuplan.catalog.documents.file import AnyFile
from gpuplan.catalog.documents.gpu import GpuFile
from gpuplan.catalog.documents.instance import InstanceFile, RateFile
from gpuplan.catalog.documents.kernels import KernelsFile
from gpuplan.catalog.documents.nic import NicFile
from gpuplan.catalog.documents.node import NodeFile
from gpuplan.catalog.documents.price import PriceFile
from gpuplan.catalog.documents.provider import ProviderFile
from gpuplan.catalog.documents.ranges import RangesFile
from gpuplan.catalog.documents.servers import ServersFile
from gpuplan.catalog.documents.storage import StorageFile
from gpuplan.catalog.documents.tariff import (
    CarbonFile,
    ChargesFile,
    CommitmentsFile,
    InterruptionsFile,
)

_UNUSED = ("id", "kind", "sources", "notes")
DUMPED = (ComponentFile, EngineFile, BuildFile, ImageFile, CloudFile, ProviderFile, KernelsFile)
TREES = (
    NodeFile,
    NicFile,
    StorageFile,
    RangesFile,
    ChargesFile,
    CommitmentsFile,
    CarbonFile,
    InterruptionsFile,
    ServersFile,
)


def _source(source: SourceEntry) -> list[object]:
    where = source.url or f"{source.repository}@{source.commit}:{source.path}"
    return [source.title, where, source.date or source.read, int(source.date is not None)]


def entry(document: AnyFile) -> dict[str, Any]:
    """The facts of one file, in base units, with its sources and notes."""
    common = {
        "sources": {key: _source(value) for key, value in sorted(document.sources.items())},
        "notes": document.notes,
    }
    if isinstance(document, GpuFile):
        return gpu_entry(document) | common
    if isinstance(document, InstanceFile):
        machines = {"provider": document.provider, "instances": _instances(document)}
        labels = {"labels_nodes": document.labels_nodes} if document.labels_nodes else {}
        return machines | labels | common
    if isinstance(document, RateFile):
        return {"provider": document.provider, "rates": _rates(document)} | common
    if isinstance(document, PriceFile):
        return {"listings": _listings(document)} | common
    if isinstance(document, DUMPED):
        return document.model_dump(exclude=set(_UNUSED), exclude_none=True) | common
    if isinstance(document, TREES):
        tree = document.model_dump(exclude=set(_UNUSED), exclude_none=True)
        return {name: _numbers(value) for name, value in tree.items()} | common
    fields = {name: number(value) for name, value in document if name not in _UNUSED}
    return fields | common


def template(node: NodeFile) -> dict[str, Any]:
    """What a plan reads of the node that stands for its GPU."""
    fields = ("gpu", "gpus", "sockets", "cpu_cores", "numa_nodes", "source")
    return {
        **{name: getattr(node, name) for name in fields},
        "memory_bytes": node.memory,
        "sources": {node.source: _source(node.sources[node.source])},
    }


def _numbers(tree: Any) -> Any:
    """`number` of every scalar in a tree."""
    if isinstance(tree, dict):
        return {name: _numbers(value) for name, value in tree.items()}
    return [_numbers(value) for value in tree] if isinstance(tree, list) else number(tree)


def _listings(prices: PriceFile) -> list[dict[str, object]]:
    return [
        {
            "provider": x.provider or prices.provider,
            "instance": x.instance,
            "gpu": x.gpu,
            "gpus": x.gpus,
            "usd_per_hour": _usd(x.price / x.gpus),
            "region": x.region,
            "vcpus": x.vcpus,
            "memory_bytes": x.memory,
            "source": x.source,
        }
        for x in prices.listings
    ]


def _instances(file: InstanceFile) -> list[dict[str, object]]:
    """Without the fields that are not known."""
    return [_known(x.model_dump(exclude_none=True)) for x in file.instances]


def _known(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _known(item) for name, item in value.items()}
    return number(value)


def _rates(file: RateFile) -> list[list[object]]:
    return [
        [
            x.instance,
            {region: _usd(usd) for region, usd in sorted(x.on_demand.items())},
            {region: _usd(usd) for region, usd in sorted(x.spot.items())},
            x.source,
        ]
        for x in file.rates
    ]


def _usd(value: Decimal) -> str:
    """Exact to a micro-dollar, without trailing zeros."""
    return f"{value.quantize(Decimal('0.000001')).normalize():f}"
