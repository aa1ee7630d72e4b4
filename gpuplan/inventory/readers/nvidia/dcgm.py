"""`dcgmi discovery -l`: GPUs with their addresses; what follows of switches and CPUs is counted
there, not described."""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from gpuplan.inventory.facts import Reader, Reading, Subject
from gpuplan.inventory.readers.gather import HOST, Gathering
from gpuplan.inventory.readers.nvidia.nvidia_fields import add_gpu, add_identities
from gpuplan.inventory.readers.words import Line, Word, cpu_list, lines_of, pci_address
from gpuplan.source import SourceDocument

TOOL = "dcgmi discovery -l"
_HEAD = re.compile(r"\|\s*(?P<what>GPU|CPU) ID\s*\|\s*Device Information")
_FOUND = re.compile(r"\b(?P<count>\d{1,9}) (?P<what>GPU|CPU)s? found\b")
_OTHER = re.compile(r"\b\d{1,9} (?:NvSwitch(?:es)?|ConnectX)s? found\b")
_ID = re.compile(r"(?:\|\s*(?P<row>\d{1,9})\s*\||GPU ID: (?P<plain>\d{1,9})\s*$)")
_PAIR = re.compile(
    r"(?:^|[|\s])(?P<key>Name|PCI Bus ID|Device UUID|Status|Cores?)\s*: ?"
    r"(?P<value>.*?)\s*(?:\|\s*)?$"
)
_NULL = "<<<NULL>>>"  # what DCGM prints of a name that the driver does not tell
_CACHED = " (last known)"


@dataclass(slots=True)
class _Device:
    head: Word
    words: dict[str, Word] = field(default_factory=dict)


@dataclass(slots=True)
class _Tables:
    """Devices below `… found`, by kind; `kind` is that of the lines being read."""

    counts: dict[str, Word] = field(default_factory=dict)
    devices: dict[str, list[_Device]] = field(default_factory=lambda: {"GPU": [], "CPU": []})
    heads: dict[str, Word] = field(default_factory=dict)
    kind: str = ""


def _recognises(text: str) -> bool:
    counted = re.search(r"\b\d{1,9} GPUs? found\b", text)
    head = re.search(r"\|\s*GPU ID\s*\|\s*Device Information", text)
    return bool(head) or (bool(counted) and bool(_OTHER.search(text)))


def _read(document: SourceDocument) -> tuple[Reading, ...]:
    gathering, tables = Gathering(TOOL, document.name), _Tables()
    for line in lines_of(document):
        _line(tables, line)
    subjects = [s for d in tables.devices["GPU"] if (s := _gpu(gathering, d)) is not None]
    add_identities(gathering, subjects)
    _cpus(gathering, tables)
    for kind, word in tables.counts.items():
        listed = len(tables.devices[kind])
        if int(word.text) != listed:
            gathering.cut_off(f"{word.text} {kind}s are found, {listed} are listed", word.place)
    for kind, word in tables.heads.items():
        if kind not in tables.counts:
            gathering.lacks(f"number of {kind}s", word.place)
    return (gathering.reading(),)


def _line(tables: _Tables, line: Line) -> None:
    counted = _FOUND.search(line.text)
    if counted:
        tables.kind = counted["what"]
        tables.counts.setdefault(tables.kind, line.group(counted, "count"))
    elif head := _HEAD.search(line.text):
        tables.kind = head["what"]
        tables.heads.setdefault(tables.kind, line.group(head, "what"))
    elif _OTHER.search(line.text):
        tables.kind = ""
    if not tables.kind:
        return
    devices = tables.devices[tables.kind]
    number = _ID.search(line.text)
    if number:
        devices.append(_Device(line.group(number, "row" if number["row"] else "plain")))
    pair = _PAIR.search(line.text)
    if pair and devices:
        devices[-1].words.setdefault(pair["key"], line.group(pair, "value"))


def _gpu(gathering: Gathering, device: _Device) -> Subject | None:
    """A GPU by its address; DCGM's number is its own and no index of nvidia-smi."""
    address = _plain(device.words.get("PCI Bus ID"))
    key = pci_address(address.text) if address else None
    if address is None or key is None:
        fact = f"the address of GPU {device.head.text}"
        if address is None:
            gathering.cut_off(f"{fact} is missing", device.head.place)
        else:
            gathering.not_understood(fact, address, "a PCI address")
        return None
    subject = "gpu", key
    name = _plain(device.words.get("Name"))
    known = name if name and name.text != _NULL else None
    words = {"address": address, "product": known, "uuid": _plain(device.words.get("Device UUID"))}
    if name and known is None:
        gathering.not_understood(f"the product of GPU {key}", name, "a name")
        del words["product"]
    _status(gathering, key, device)
    add_gpu(gathering, subject, words, device.head.place)
    return subject


def _status(gathering: Gathering, key: str, device: _Device) -> None:
    status = device.words.get("Status")
    if status:
        remedy = "DCGM shows what it last knew of this GPU: bring it back, or leave it out"
        gathering.not_understood(f"the status of GPU {key}", status, "one in use", remedy)


def _plain(word: Word | None) -> Word | None:
    """A word without the note that it is a cached one."""
    return Word(text=word.text.removesuffix(_CACHED), place=word.place) if word else None


def _cpus(gathering: Gathering, tables: _Tables) -> None:
    """NVIDIA's own CPUs: one is a socket."""
    devices = tables.devices["CPU"]
    count = tables.counts.get("CPU")
    for device in devices:
        word = device.words.get("Cores") or device.words.get("Core")
        if word and cpu_list(word.text) is None:
            fact = f"the cores of CPU {device.head.text}"
            gathering.not_understood(fact, word, "a list of CPUs (0-71)")
    if count and devices and int(count.text) == len(devices):
        gathering.add(HOST, "sockets", len(devices), count.place)


READER = Reader(tool=TOOL, recognises=_recognises, read=_read)
