"""The words of `nvidia-smi topo -m`: links, and the legend that names network cards."""

from __future__ import annotations

import re

from gpuplan.inventory.readers.words import Line, Word

CELL = r"(?:X|NV[0-9]{1,2}|PIX|PXB|PHB|NODE|SYS|SOC|PSB|N/A)"
LINKS = {"SOC": "SYS"}  # drivers before 396 called it so
_CARD = re.compile(r"(?:^|\s)(?P<name>NIC\d{1,9})\s*:\s*(?P<card>[\w.:-]+)\s*$")


def sorted_key(first: str, second: str) -> str:
    """The key of a pair: `GPU0 NIC1`."""
    return " ".join(sorted((first, second)))


def cards(lines: tuple[Line, ...]) -> dict[str, Word]:
    """`NIC0: mlx5_0` → the card's name and its place."""
    named: dict[str, Word] = {}
    for line in lines:
        match = _CARD.search(line.text)
        if match:
            named.setdefault(match["name"], line.group(match, "card"))
    return named
