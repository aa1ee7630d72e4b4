"""`nvidia-smi --query-gpu=… --format=csv`: any columns, by the names in its header."""

from __future__ import annotations

import re

from gpuplan.inventory.facts import Reader, Reading, Subject
from gpuplan.inventory.readers.gather import HOST, Gathering
from gpuplan.inventory.readers.nvidia.nvidia_fields import add_gpu, add_identities
from gpuplan.inventory.readers.words import Line, Word, absent, lines_of, pci_address, whole
from gpuplan.source import SourceDocument

TOOL = "nvidia-smi --query-gpu"
_NAME = re.compile(r"[a-z][A-Za-z0-9_.]*(?: \[[^\],]{1,8}\])?")
_FIRST = re.compile(rf"(?:^|\s)(?P<name>{_NAME.pattern})$")
_KNOWN = {
    "name": "product",
    "gpu_name": "product",
    "uuid": "uuid",
    "gpu_uuid": "uuid",
    "index": "index",
    "pci.bus_id": "address",
    "gpu_bus_id": "address",
    "pci.device_id": "pci_id",
    "memory.total": "memory_bytes",
    "mig.mode.current": "mig",
    "module_id": "module_id",
    "gpu_module_id": "module_id",
    "platform.module_id": "module_id",
    "enforced.power.limit": "watts",
    "pcie.link.gen.max": "pcie_generation",
    "pcie.link.width.max": "pcie_width",
    "fabric.state": "fabric",
}
_OTHERS = frozenset(("pid", "retired_pages.address", "session_id"))  # queries of other things
_PROMPT = re.compile(r"[#$]\s|nvidia-smi\b")
_TELLING = frozenset(_KNOWN) | {"driver_version", "count", "timestamp", "power.limit"}


def _columns(line: Line) -> tuple[Word, ...]:
    """The names of a header line, with their units; none where the line is no header."""
    first, *others = line.text.split(",")
    start = _FIRST.search(first)
    if not start or not others or not all(_NAME.fullmatch(part.strip()) for part in others):
        return ()
    words = _split(line, start.start("name"), len(line.text))
    names = [word.text.split(" [")[0] for word in words]
    telling = sum(name in _TELLING for name in names)
    return words if telling >= 2 and _OTHERS.isdisjoint(names) else ()


def _split(line: Line, start: int, end: int) -> tuple[Word, ...]:
    """The values between commas; nvidia-smi quotes none."""
    cells = []
    for part in line.text[start:end].split(","):
        cells.append(line.word(start, start + len(part)))
        start += len(part) + 1
    return tuple(cells)


def _recognises(text: str) -> bool:
    return any(_columns(line) for line in lines_of(SourceDocument("", text)))


def _read(document: SourceDocument) -> tuple[Reading, ...]:
    """A reading for each header and the lines below it."""
    lines = lines_of(document)
    heads = [(at, columns) for at, line in enumerate(lines) if (columns := _columns(line))]
    ends = [*(at for at, _ in heads[1:]), len(lines)]
    return tuple(
        _table(document, columns, lines[at + 1 : end])
        for (at, columns), end in zip(heads, ends, strict=False)
    )


def _table(document: SourceDocument, header: tuple[Word, ...], lines: tuple[Line, ...]) -> Reading:
    """Ends with a blank line, a prompt, or a line that is no list of values."""
    gathering, subjects, hosts = Gathering(TOOL, document.name), [], set()
    start = header[0].place.span.column
    for line in lines:
        if "," not in line.text or _PROMPT.search(line.text):
            break
        begin = start - 1
        words = _split(line, begin, len(line.text))
        subject = _row(gathering, header, words, line)
        subjects += [subject] if subject else []
        hosts |= {w.text for n, w in zip(header, words, strict=False) if n.text == "hostname"}
    add_identities(gathering, subjects)
    named = [host for host in hosts if not absent(host)]
    return gathering.reading(named[0] if len(named) == 1 else None)


def _row(
    gathering: Gathering, header: tuple[Word, ...], words: tuple[Word, ...], line: Line
) -> Subject | None:
    if len(words) != len(header):
        gathering.cut_off(f"a line has {len(words)} of {len(header)} values", line.word().place)
        return None
    values: dict[str, Word | None] = {}
    for name, word in zip(header, words, strict=True):
        plain, _, unit = name.text.partition(" [")
        if plain == "driver_version" and not absent(word.text):
            gathering.add(HOST, "driver_version", word.text, word.place)
        elif plain in _KNOWN and _KNOWN[plain] not in values:
            values[_KNOWN[plain]] = _with_unit(word, unit.rstrip("]"))
    return _gpu(gathering, values, line)


def _with_unit(word: Word, unit: str) -> Word:
    """`81559` below `memory.total [MiB]` (`nounits`)."""
    if unit == "MiB" and whole(word.text) is not None:
        return Word(text=f"{word.text} MiB", place=word.place)
    return word


def _gpu(gathering: Gathering, values: dict[str, Word | None], line: Line) -> Subject | None:
    """A GPU is known by its address, else its number, else its UUID; a line that has none of them
    says nothing of a certain GPU."""
    address, index, uuid = (values.get(name) for name in ("address", "index", "uuid"))
    key = pci_address(address.text) if address else None
    if key is None and index is not None and whole(index.text) is not None:
        key = f"GPU{whole(index.text)}"
    if key is None and uuid is not None and uuid.text.startswith("GPU-"):
        key = uuid.text
    if key is None:
        fault = "a line names no GPU: ask for index, uuid or pci.bus_id too"
        gathering.cut_off(fault, line.word().place)
        return None
    subject = "gpu", key
    add_gpu(gathering, subject, values, line.word().place)
    return subject


READER = Reader(tool=TOOL, recognises=_recognises, read=_read)
