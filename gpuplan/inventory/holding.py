"""`gpuplan inventory allocate` and `release`: an inventory's file with other holders."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

from gpuplan.errors import Rejected
from gpuplan.inventory import allocations
from gpuplan.inventory.read import RejectedInventory, read_inventory
from gpuplan.inventory.v1 import Allocation, HeldCut, HeldHost, Inventory
from gpuplan.manifest.load import validate
from gpuplan.manifest.text import read_yaml
from gpuplan.plan.model import Plan, named_hosts


def allocate(path: Path, plans: Sequence[Plan]) -> tuple[str, tuple[Allocation, ...]]:
    """The text of the inventory at `path` once the stacks of `plans` hold the hosts that they name,
    and what each of these holds. Raises `Rejected` where another stack holds one of them."""
    if nameless := [p.name for p in plans if not named_hosts(p)]:
        raise Rejected(map(allocations.no_named_hosts, nameless))
    inventory, sources = read_inventory(path)
    new = tuple(Allocation(stack=p.name, hosts=[*_held(p)]) for p in plans)
    every = allocations.replaced(inventory, new)
    changed = inventory.model_copy(update={"allocations": list(every)})
    if wrong := [*allocations.problems(changed, "")]:
        raise RejectedInventory([replace(d, origin=None) for d in wrong], sources)
    return _written(path, inventory, every), new


def release(path: Path, stacks: Sequence[str]) -> str:
    """The text of the inventory at `path` once `stacks` hold nothing. Raises `Rejected` for one
    that holds nothing now."""
    inventory, sources = read_inventory(path)
    known = [a.stack for a in inventory.allocations]
    if missing := [s for s in stacks if s not in known]:
        problems = (allocations.holds_nothing(s, known) for s in missing)
        raise RejectedInventory([*problems], sources)
    return _written(path, inventory, [a for a in inventory.allocations if a.stack not in stacks])


def _held(plan: Plan) -> Iterator[HeldHost]:
    for name, pool in named_hosts(plan).items():
        layouts = (n for n in pool.layouts if name in n.node_names)
        cuts = [
            HeldCut(
                gpus=list(cut.gpus),
                instances=[f"{i.profile}@{i.start}:{i.size}" for i in cut.instances],
            )
            for layout in layouts
            for cut in layout.gpus
        ]
        yield HeldHost(name=name, gpus=pool.gpus_per_node, mig=cuts)


def _written(path: Path, inventory: Inventory, every: Sequence[Allocation]) -> str:
    """The new text, which reads as the old one but for its allocations. Raises `Rejected` where the
    old one is written so that this cannot be done."""
    text = allocations.rewritten(path.read_text(encoding="utf-8"), every)
    wanted = inventory.model_copy(update={"allocations": list(every)})
    read_back = [validate(Inventory, document)[0] for document, _ in read_yaml(path.name, text)]
    if read_back != [wanted]:
        raise Rejected([allocations.not_rewritten(path.name)])
    return text
