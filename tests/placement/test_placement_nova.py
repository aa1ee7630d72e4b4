"""Whether a guest fits on a host, beside OpenStack nova's own answer (`tests/tools/nova_fit.py`).

nova knows nothing of what a hypervisor host keeps, so the test gives it what is left: no
housekeeping cores (nova's `cpu_dedicated_set`), and the pages beside the host's reserve and each
guest's overhead. Emulator threads run on housekeeping cores in both (nova's policy `share`). GPUs
are PCI requests with affinity `required`. What is in use comes from guests that gpuplan placed.
"""

from __future__ import annotations

import json
import random
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pytest

from gpuplan.placement.machines.choose import choices
from gpuplan.placement.machines.guests import Guest, guests
from gpuplan.placement.machines.hypervisors import lower
from gpuplan.placement.machines.state import GpuChoice, HostState, empty
from tests.support.placement_hosts import as_inventory, cards, host
from tests.support.placement_samples import l40s
from tests.support.require import require
from tests.tools import nova

pytestmark = pytest.mark.nova

MOST_CELLS = 3  # of a guest: nova tries every order of cells


@dataclass(frozen=True)
class Machine:
    """A host in plain numbers: GPUs, cores and GiB of each node."""

    gpus: tuple[int, ...]
    cores: tuple[int, ...]
    memory: tuple[int, ...]
    threads: int
    siblings: str

    def state(self) -> HostState:
        spec = host([n for n, count in enumerate(self.gpus) for _ in range(count)], nodes=0)
        spec["threads_per_core"] = self.threads
        spec["numa_nodes"] = [
            {
                "cpus": ",".join(str(cpu) for core in self.all_cores(node) for cpu in core),
                "siblings": self.siblings,
                "memory": f"{self.memory[node]} GiB",
            }
            for node in range(len(self.gpus))
        ]
        (hypervisor,) = lower(as_inventory(spec), "inventory.yaml", ()).hypervisors
        return empty(hypervisor)

    def all_cores(self, node: int) -> list[list[int]]:
        """The CPUs of each core, as Linux numbers them."""
        first, step = sum(self.cores[:node]), sum(self.cores)
        if self.siblings == "adjacent":
            first, step = first * self.threads, 1
        width = self.threads if step == 1 else 1
        return [
            [first + core * width + thread * step for thread in range(self.threads)]
            for core in range(self.cores[node])
        ]

    def usable(self, node: int) -> list[list[int]]:
        """All cores but those that the host keeps: two of each node, of one with GPUs where none
        without has room for them."""
        kept = [2] * len(self.cores)
        for busy in (n for n, gpus in enumerate(self.gpus) if gpus):
            room = [
                n for n, gpus in enumerate(self.gpus) if not gpus and self.cores[n] - kept[n] >= 2
            ]
            if room:
                kept[busy] = 0
                kept[min(room, key=lambda n: (kept[n], n))] += 2
        return self.all_cores(node)[kept[node] :]

    def pages(self, node: int) -> int:
        """What guests have with their overhead; nodes without GPUs have none."""
        memory = self.memory[node]
        return max(0, int(memory - max(8, memory / 16))) if self.gpus[node] else 0


def drawn(draw: random.Random, most_gpus: int) -> Machine:
    nodes = draw.randint(1, 8)
    gpus = tuple(draw.choice([0, 1, 1, most_gpus]) for _ in range(nodes))
    even = draw.random() < 0.5
    cores, memory = [
        draw.choices([draw.choice(sizes)] if even else sizes, k=nodes)
        for sizes in ([6, 10, 16, 24], [32, 64, 96, 200])
    ]
    return Machine(
        gpus=gpus if any(gpus) else (1, *gpus[1:]),
        cores=tuple(cores),
        memory=tuple(memory),
        threads=draw.choice([1, 2]),
        siblings=draw.choice(["split", "adjacent"]),
    )


def asked(draw: random.Random, name: str, gpus: int) -> Guest:
    cores, memory = draw.randint(1, 10), draw.choice([4, 16, 24, 40, 64])
    sample = cards(name, gpus, cores=cores * gpus, memory_gib=memory * gpus)
    return next(iter(guests(sample, l40s())))


def place(state: HostState, guest: Guest) -> GpuChoice | None:
    return next((c for c in choices(state, guest) if not state.shortfalls(guest, c)), None)


def cells(machine: Machine, state: HostState) -> list[dict[str, Any]]:
    """The host as nova sees it."""
    found = []
    for node, left in enumerate(state.nodes):
        free = {cpu for core in left.cores for cpu in core.cpus}
        usable = machine.usable(node)
        everything = {cpu for core in usable for cpu in core}
        assert free <= everything, "a core is given away that the host keeps"
        users = [g for g in state.gpus.values() if g.node == node]
        found.append(
            {
                "cores": usable,
                "pinned": sorted(everything - free),
                "pages": machine.pages(node),
                "used": left.usable_pages - left.free_pages,
                "gpus": sum(not g.users for g in users),
            }
        )
    return found


def part(guest: Guest, machine: Machine, gpus: int) -> dict[str, int]:
    """A cell with so many GPUs; each guest takes 1 GiB of a node beside its memory."""
    return {"vcpus": guest.cores * gpus * machine.threads, "pages": guest.pages * gpus + 1}


def sequences(seed: int, count: int, most_gpus: int) -> Iterator[tuple[Machine, HostState, Guest]]:
    """Hosts with some guests on them, and one more guest each."""
    draw = random.Random(seed)
    for number in range(count):
        machine = drawn(draw, most_gpus)
        state = machine.state()
        for earlier in range(draw.randint(0, 3)):
            guest = asked(draw, f"earlier-{earlier}", draw.randint(1, 2))
            choice = place(state, guest)
            if choice is not None:
                state.take(guest, choice)
        yield machine, state, asked(draw, f"guest-{number}", draw.randint(1, MOST_CELLS))


def agree(pairs: list[tuple[bool, bool, Any]]) -> None:
    """Ours and nova's verdicts are the same; both kinds occur often."""
    differing = [what for ours, theirs, what in pairs if ours != theirs]
    assert not differing, f"{len(differing)} of {len(pairs)} differ:\n{json.dumps(differing[0])}"
    fitting = sum(theirs for _, theirs, _ in pairs)
    assert len(pairs) / 10 < fitting < len(pairs) * 9 / 10


@pytest.fixture(autouse=True)
def present() -> None:
    if missing := nova.absent():
        require("nova", missing)


def test_guests_of_one_gpu_a_node_fit_where_nova_fits_them() -> None:
    """As many cells as GPUs: nova looks for cells with cores, pages and a GPU each."""
    cases = list(sequences(1, 1200, most_gpus=1))
    questions = [
        {
            "cells": cells(machine, state),
            "machine": {
                "threads": machine.threads,
                "gpus": guest.gpus,
                "cells": [part(guest, machine, 1)] * guest.gpus,
            },
        }
        for machine, state, guest in cases
    ]
    answers = nova.ask(questions)
    agree(
        [
            (place(state, guest) is not None, theirs is not None, question)
            for (_, state, guest), question, theirs in zip(cases, questions, answers, strict=True)
        ]
    )


def test_guests_of_several_gpus_fit_where_nova_fits_their_parts() -> None:
    """Each node with each number of its free GPUs is one question; a guest fits where parts that
    nova fits add up to its GPUs."""
    cases = list(sequences(2, 400, most_gpus=3))
    asks = [
        (number, node, count, question)
        for number, (machine, state, guest) in enumerate(cases)
        for node, cell in enumerate(cells(machine, state))
        for count in range(1, min(cell["gpus"], guest.gpus) + 1)
        for question in [
            {
                "cells": [cell],
                "machine": {
                    "threads": machine.threads,
                    "gpus": count,
                    "cells": [part(guest, machine, count)],
                },
            }
        ]
    ]
    answers = nova.ask([question for *_, question in asks])
    parts: dict[int, dict[int, set[int]]] = {}
    for (number, node, count, _), theirs in zip(asks, answers, strict=True):
        if theirs is not None:
            parts.setdefault(number, {}).setdefault(node, set()).add(count)
    pairs = []
    for number, (machine, state, guest) in enumerate(cases):
        sums = {0}
        for counts in parts.get(number, {}).values():
            sums |= {have + count for have in sums for count in counts}
        choice = place(state, guest)
        pairs.append((choice is not None, guest.gpus in sums, [str(machine), str(guest.gpus)]))
    agree(pairs)
