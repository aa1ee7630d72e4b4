"""One value from what several tools say, or the contradiction.

Some facts differ between tools by nature and not by mistake: what they name, round, or measure at
another moment. All others must be equal.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from gpuplan.diagnostics import Diagnostic
from gpuplan.frozen import record
from gpuplan.inventory.facts import Value
from gpuplan.inventory.merge.entities import Entity, Said
from gpuplan.inventory.merge.messages import differs

# Each tool has its own wording of these; the first tool of `PREFERRED` that says one is taken.
WORDINGS = frozenset(
    {"product", "name", "cpu_model", "node_type", "kernel_parameters", "fabric", "watts"}
)
# A link that is idle or in a narrower slot shows less than it can: the most that is said counts.
# Links that count: of NVLinks, tools may show those that are up now.
MOST = frozenset({"pcie_generation", "pcie_width", "nvlinks", "bytes_per_s"})
# Tools round to MiB, and count or leave out what firmware and kernel keep: two per cent.
NEAR = frozenset({"memory_bytes", "bar_bytes", "size_bytes"})
TOLERANCE = 0.02
PREFERRED = ("nvidia-smi", "kubectl", "hwloc", "lspci")


@record
class Settled:
    value: Value
    said: tuple[Said, ...]


class Settler:
    """Settles values of a host; every contradiction goes to `problems` once."""

    def __init__(self, host: str) -> None:
        self.host = host
        self.problems: list[Diagnostic] = []
        self._done: dict[tuple[int, str], Settled | None] = {}

    def value(self, entity: Entity, attribute: str, fact: str = "") -> Settled | None:
        key = id(entity), attribute
        if key not in self._done:
            self._done[key] = self._settle(entity, attribute, fact)
        return self._done[key]

    def _settle(self, entity: Entity, attribute: str, fact: str) -> Settled | None:
        said = sorted(entity.said.get(attribute, ()), key=_preference)
        if not said:
            return None
        if attribute in WORDINGS:
            return Settled(value=said[0].value, said=tuple(said))
        if attribute in MOST:
            most = max(said, key=lambda s: float(str(s.value)))
            return Settled(value=most.value, said=tuple(said))
        if attribute in NEAR and _near([float(str(s.value)) for s in said]):
            most = max(said, key=lambda s: float(str(s.value)))
            return Settled(value=most.value, said=tuple(said))
        different = _different(said)
        if len(different) == 1:
            return Settled(value=said[0].value, said=tuple(said))
        subject = fact or _subject(entity, attribute)
        self.problems.append(
            differs(
                f"{subject} of {self.host}"
                if entity.kind == "host"
                else f"{subject} on {self.host}",
                [(s.value, s.tool, s.place) for s in different],
            )
        )
        return None


def _preference(said: Said) -> tuple[int, str, int, int, str]:
    rank = next((i for i, tool in enumerate(PREFERRED) if said.tool.startswith(tool)), 9)
    return rank, said.place.document, said.place.span.line, said.place.span.column, said.tool


def _near(values: Sequence[float]) -> bool:
    return max(values) - min(values) <= TOLERANCE * max(values)


def _different(said: Iterable[Said]) -> list[Said]:
    """One of each value; lists are equal in any order where they are sets."""
    seen: dict[object, Said] = {}
    for statement in said:
        value = statement.value
        nested = isinstance(value, tuple) and value and isinstance(value[0], tuple)
        seen.setdefault(frozenset(value) if nested else value, statement)  # type: ignore[arg-type]
    return list(seen.values())


NAMES = {"cpus": "CPUs", "numa_node": "NUMA node", "uuid": "UUID", "mig": "MIG mode"}
NAMES |= {"memory_bytes": "memory", "size_bytes": "size", "bar_bytes": "window on the bus"}
NAMES |= {"pci_id": "PCI identifier", "iommu_group": "IOMMU group", "iommu": "IOMMU"}
KINDS = {"gpu": "GPU", "numa": "NUMA node", "nic": "network card", "nvme": "drive"}


def _subject(entity: Entity, attribute: str) -> str:
    """`the NUMA node of GPU 0000:1b:00.0`."""
    key = max(entity.keys, key=lambda k: (len(k), k), default="")
    name = NAMES.get(attribute, attribute.replace("_", " "))
    return f"the {name} of {KINDS.get(entity.kind, entity.kind)} {key}" if key else f"the {name}"
