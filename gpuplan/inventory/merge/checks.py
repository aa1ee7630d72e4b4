"""What tools say of a host as a whole, held against what they list."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from gpuplan.diagnostics import Diagnostic
from gpuplan.inventory.merge.devices import types_of
from gpuplan.inventory.merge.entities import Entity
from gpuplan.inventory.merge.item import Item
from gpuplan.inventory.merge.messages import differs, is_guest, unknown_gpu
from gpuplan.inventory.names import gpu_types, nearest_types
from gpuplan.inventory.words import UNKNOWN


def types(gpus: Sequence[Entity], name: str) -> Iterator[Diagnostic]:
    unknown: set[str] = set()
    for gpu in gpus:
        said = gpu.said.get("product", [])
        types = types_of(gpu)
        if len(types) > 1:
            yield differs(
                f"the product of GPU {gpu.keys[0]} of {name}",
                [(s.value, s.tool, s.place) for s in said],
            )
        product = str(said[0].value) if said else UNKNOWN
        if said and not types and product not in unknown:
            unknown.add(product)
            other_size = gpu.first("memory_bytes") if gpu_types([product]) else None
            yield unknown_gpu(product, nearest_types(product), said[0].place, other_size)


def counted_gpus(
    kinds: Mapping[str, Sequence[Entity]], gpus: Sequence[Entity], name: str
) -> Iterator[Diagnostic]:
    """A count of GPUs that is not the number of those that are listed."""
    counts = [s for p in kinds.get("product", ()) for s in p.said.get("gpus", ())]
    listed = [g for g in gpus if kinds.get("gpu")]
    total = sum(int(str(s.value)) for s in counts)
    if not counts or not listed or total == len(listed):
        return
    first = next(s for said in listed[0].said.values() for s in said)
    pair = [(len(listed), first.tool, first.place), (total, counts[0].tool, counts[0].place)]
    yield differs(f"the number of GPUs of {name}", pair)


def counted_cpus(host: Entity, name: str) -> Iterator[Diagnostic]:
    """A count of CPUs (which Kubernetes says) that is not the number of those that are listed."""
    for listed in host.said.get("cpus", ())[:1]:
        for count in host.said.get("cpu_count", ())[:1]:
            number = len(listed.value) if isinstance(listed.value, tuple) else 0
            if number and number != count.value:
                pair = [
                    (number, listed.tool, listed.place),
                    (count.value, count.tool, count.place),
                ]
                yield differs(f"the number of CPUs of {name}", pair)


def guest(host: Item, gpus: Sequence[Entity], name: str) -> Iterator[Diagnostic]:
    """A virtual machine is said to be one; `nvidia-smi` knows it by how the GPU is attached."""
    for gpu in gpus if "virtualization" not in host.tree else ():
        for said in gpu.said.get("virtualization", ())[:1]:
            if said.value in {"pass-through", "vgpu"}:
                host.put("virtualization", said.value, (said,))
    if "virtualization" in host.tree:
        place = host.sources["virtualization"][0].place
        yield is_guest(name, str(host.tree["virtualization"]), place)
