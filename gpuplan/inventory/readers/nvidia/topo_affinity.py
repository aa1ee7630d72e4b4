"""The last columns of `nvidia-smi topo -m`: CPUs and NUMA nodes near a GPU."""

from __future__ import annotations

import re

from gpuplan.inventory.readers.gather import Gathering
from gpuplan.inventory.readers.words import Word, absent, cpu_list, whole

TOOL = "nvidia-smi topo -m"
CPUS, NUMA, MEMORY = "CPU Affinity", "NUMA Affinity", "GPU NUMA ID"
_COLUMN = re.compile(r"CPU Affinity|GPU NUMA ID|NUMA Affinity")


def affinity_columns(rest: str) -> tuple[str, ...]:
    """The columns that a header has after its devices. A header cut within one has it all the
    same: only CPUs are no CPU list."""
    return tuple(match[0] for match in _COLUMN.finditer(rest))


def add_affinity(
    gathering: Gathering, columns: tuple[str, ...], name: Word, rest: str, words: list[Word]
) -> None:
    """`rest` is the row's text after its links, `words` are those in it."""
    if not columns:
        return
    values = _assign(columns, rest, words)
    if values is None:
        place = words[0].place if words else name.place
        gathering.lacks(f"whole {', '.join(columns)} of {name.text}", place)
        return
    _cpus(gathering, name.text, values.get(CPUS))
    _numa(gathering, name.text, values.get(NUMA))
    memory = values.get(MEMORY)
    if memory and not absent(memory.text):
        number = whole(memory.text)
        if number is None:
            gathering.not_understood(f"the GPU NUMA ID of {name.text}", memory, "a number")
        else:
            gathering.add(("gpu", name.text), "memory_node", number, memory.place)


def _assign(columns: tuple[str, ...], rest: str, words: list[Word]) -> dict[str, Word] | None:
    """Which word stands in which column; None where that cannot be told. nvidia-smi separates
    them by tabs, and has an empty one before the last."""
    if len(words) == len(columns):
        return dict(zip(columns, words, strict=True))
    fields = [field.strip() for field in rest.split("\t")[1:]]
    if len(words) > len(columns) or len(fields) < len(columns):
        return None
    if len(columns) == 3:
        fields = [*fields[:2], next((field for field in fields[2:] if field), "")]
        if not fields[2]:
            return None
    by_text = {word.text: word for word in words}
    assigned = {c: by_text[f] for c, f in zip(columns, fields, strict=False) if f in by_text}
    return assigned if len(assigned) == len(words) else None


def _cpus(gathering: Gathering, name: str, word: Word | None) -> None:
    if word is None or absent(word.text):
        return
    cpus = cpu_list(word.text)
    if cpus is None:
        fact = f"the CPU affinity of {name}"
        gathering.not_understood(fact, word, "a list of CPUs (0-55,112-167)")
    elif cpus:
        gathering.add(("gpu", name), "cpus", cpus, word.place)


def _numa(gathering: Gathering, name: str, word: Word | None) -> None:
    """A GPU that is near several nodes (guests, hosts that show each GPU's memory as nodes)."""
    if word is None or absent(word.text):
        return
    nodes = cpu_list(word.text)
    if nodes is None or not nodes:
        gathering.not_understood(f"the NUMA affinity of {name}", word, "a number")
    elif len(nodes) == 1:
        gathering.add(("gpu", name), "numa_node", nodes[0], word.place)
    else:
        gathering.several(
            f"the NUMA affinity of {name}", word, "its node is left out", "lspci -vv or lstopo"
        )
