"""`ibstat` and `ibv_devinfo`: network cards that do RDMA, their links and speeds."""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from gpuplan.inventory.facts import Reader, Reading
from gpuplan.inventory.readers.gather import Gathering
from gpuplan.inventory.readers.words import Line, Word, lines_of
from gpuplan.source import SourceDocument
from gpuplan.units import GB

TOOL = "ibstat"
_CARD = re.compile(r"(?:\bCA '(?P<ca>[\w.-]+)'|\bhca_id:\s*(?P<hca>[\w.-]+))\s*$")
_PORT = re.compile(r"(?:^|\s)(?:Port (?P<number>\d{1,9}):|port:\s+(?P<devinfo>\d{1,9}))\s*$")
_PAIR = re.compile(
    r"(?:^|\s)(?P<key>Rate|Link layer|link_layer|State|state|active_speed|active_width):\s*"
    r"(?P<value>\S.*?)?\s*$"
)
_LAYERS = {"infiniband": "infiniband", "ethernet": "ethernet"}
_RATE = re.compile(r"[0-9]{1,5}(?:\.[0-9]+)?")
_UP = re.compile(r"Active\b|PORT_ACTIVE")


@dataclass(slots=True)
class _Card:
    name: Word
    ports: list[dict[str, Word]] = field(default_factory=list)


def _recognises(text: str) -> bool:
    return re.search(_CARD.pattern, text, re.MULTILINE) is not None and bool(
        re.search(r"(?:Port \d{1,9}:|Number of ports:|phys_port_cnt:|CA type:|node_guid:)", text)
    )


def _read(document: SourceDocument) -> tuple[Reading, ...]:
    gathering = Gathering(TOOL, document.name)
    cards: list[_Card] = []
    for line in lines_of(document):
        _line(cards, line)
    for card in cards:
        _card(gathering, card)
    return (gathering.reading(),)


def _line(cards: list[_Card], line: Line) -> None:
    head = _CARD.search(line.text)
    if head:
        cards.append(_Card(line.group(head, "ca" if head["ca"] else "hca")))
    elif cards and _PORT.search(line.text):
        cards[-1].ports.append({})
    elif cards and cards[-1].ports and (pair := _PAIR.search(line.text)):
        key = pair["key"].lower().replace(" ", "_")
        cards[-1].ports[-1].setdefault(key, line.group(pair, "value"))


def _card(gathering: Gathering, card: _Card) -> None:
    """The link that the card's ports share, and the rate of those that are up."""
    subject = "nic", card.name.text
    gathering.add(subject, "name", card.name.text, card.name.place)
    if not card.ports:
        gathering.cut_off(f"{card.name.text} has no port", card.name.place, "its name")
        return
    layers = [word for port in card.ports if (word := port.get("link_layer"))]
    known = {_LAYERS.get(word.text.lower()) for word in layers}
    if None in known:
        expected = "InfiniBand or Ethernet"
        strange = next(word for word in layers if word.text.lower() not in _LAYERS)
        if strange.text.lower() not in ("unspecified", ""):
            gathering.not_understood(f"the link layer of {card.name.text}", strange, expected)
    elif len(known) == 1:
        gathering.add(subject, "link", str(known.pop()), layers[0].place)
    elif not layers:
        gathering.cut_off(f"{card.name.text} has no link layer", card.name.place, "its name")
    _rate(gathering, card)


def _rate(gathering: Gathering, card: _Card) -> None:
    """A port that is down has the rate of the lowest speed, not its own."""
    total, first = 0.0, None
    for port in card.ports:
        rate, state = port.get("rate"), port.get("state")
        if rate is None or state is None or not _UP.search(state.text):
            continue
        if not _RATE.fullmatch(rate.text):
            gathering.not_understood(f"the rate of {card.name.text}", rate, "a number (Gb/s)")
            return
        total, first = total + float(rate.text) * GB / 8, first or rate
    if first:
        gathering.add(("nic", card.name.text), "bytes_per_s", total, first.place)


READER = Reader(tool=TOOL, recognises=_recognises, read=_read)
