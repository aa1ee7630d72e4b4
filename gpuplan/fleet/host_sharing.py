"""How an inventory says that its hosts share GPUs."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING

from gpuplan.catalog.model import Gpu
from gpuplan.diagnostics import Diagnostic
from gpuplan.fleet import messages
from gpuplan.sharing.modes import HostSharing, holds_mixed
from gpuplan.source import Origin

if TYPE_CHECKING:
    from gpuplan.inventory.v1 import HostSpec


def host_sharing(
    spec: HostSpec, gpu: Gpu, at: Origin
) -> tuple[HostSharing, tuple[Diagnostic, ...]]:
    """Hypervisors give vGPUs to guests; time slices are of containers."""
    if spec.hypervisor is None:
        return HostSharing(slices=spec.time_slices or 0), ()
    problems = []
    mixed = spec.hypervisor.vgpu_sizes == "mixed"
    if mixed and not holds_mixed(gpu):
        place = at.child("hypervisor", "vgpu_sizes")
        problems.append(messages.no_placements(gpu.identifier, place))
    if spec.time_slices:
        problems.append(messages.slices_of_guests(at.child("time_slices")))
    return HostSharing(virtual=True, mixed=mixed), tuple(problems)


def common(hosts: Iterable[HostSharing]) -> HostSharing:
    """What all hosts of a GPU type can do: an item may come to stand on any of them."""
    every = tuple(hosts)
    slices = {s.slices for s in every}
    return HostSharing(
        virtual=all(s.virtual for s in every),
        mixed=all(s.mixed for s in every),
        slices=slices.pop() if len(slices) == 1 else 0,
    )


def uneven(
    sharing: Sequence[tuple[str, HostSharing, Origin | None]],
) -> Iterator[Diagnostic]:
    """GPU types that not all hosts share in the same way, so that some way is not used."""
    for gpu in dict.fromkeys(name for name, _, _ in sharing):
        ways = [(way, at) for name, way, at in sharing if name == gpu]
        all_can = common(way for way, _ in ways)
        for way, at in ways:
            lost = [
                word
                for word, has, used in (
                    ("vGPUs", way.virtual, all_can.virtual),
                    ("vGPUs of mixed sizes", way.mixed, all_can.mixed),
                    ("time slices", way.slices, all_can.slices),
                )
                if has and not used
            ]
            if lost:
                yield messages.uneven_sharing(gpu, lost, at and at.child("names"))
