"""Fields of one entry of the inventory, each with the places that its value was read from."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any

from gpuplan.inventory.facts import Value
from gpuplan.inventory.merge.entities import Entity, Said
from gpuplan.inventory.merge.settle import Settler
from gpuplan.render.commented import Inline, Tree


@dataclass(slots=True)
class Item:
    """An entry that grows; `of` is what its facts are about."""

    of: Entity
    settler: Settler
    tree: Tree = field(default_factory=dict)
    sources: dict[str, tuple[Said, ...]] = field(default_factory=dict)

    def value(self, attribute: str) -> Value | None:
        settled = self.settler.value(self.of, attribute)
        return settled.value if settled else None

    def take(
        self, name: str, attribute: str, write: Callable[[Any], Any] | None = None
    ) -> Value | None:
        """Set field `name` to what is said of `attribute`, written by `write`; None and an empty
        value are left out."""
        settled = self.settler.value(self.of, attribute)
        if settled is None:
            return None
        value: Any = write(settled.value) if write else settled.value
        if value is None or value in ((), []):
            return None
        self.tree[name] = Inline(value) if isinstance(value, tuple | list) else value
        self.sources[name] = settled.said
        return settled.value

    def put(self, name: str, value: Any, said: Iterable[Said] = ()) -> None:
        """A value that follows from facts at `said`."""
        if value is not None:
            self.tree[name] = Inline(value) if isinstance(value, list) else value
            self.sources[name] = tuple(said)

    def said(self, attribute: str) -> tuple[Said, ...]:
        settled = self.settler.value(self.of, attribute)
        return settled.said if settled else ()

    def comment(self) -> str:
        """`type smi.xml:12, memory :40, numa_node topo.txt:3`."""
        words: list[str] = []
        document = ""
        for name, said in self.sources.items():
            places = [s.place for s in said[:1]]
            for place in places:
                shown = "" if place.document == document else place.document
                document = place.document
                words.append(f"{name} {shown}:{place.span.line}")
        return ", ".join(words)
