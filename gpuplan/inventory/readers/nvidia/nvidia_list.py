"""`nvidia-smi -L`: GPUs, their UUIDs, and their MIG devices by profile."""

from __future__ import annotations

import re
from itertools import zip_longest

from gpuplan.inventory.facts import Reader, Reading, Subject
from gpuplan.inventory.readers.gather import Gathering
from gpuplan.inventory.readers.nvidia.nvidia_fields import FAULTS, UNREACHABLE, add_identities, uuid
from gpuplan.inventory.readers.words import Line, Word, absent, lines_of
from gpuplan.source import SourceDocument

TOOL = "nvidia-smi -L"
GPU = re.compile(
    r"(?:^|\s)GPU (?P<index>\d{1,4}): (?P<product>.{1,99}?)\(UUID:\s*(?P<uuid>[^)\s]*)(?P<end>\))?"
)
_MIG = re.compile(r"(?:^|\s)MIG (?P<profile>\S+)\s+Device\s+(?P<number>\d{1,9}):")
_LINK = re.compile(r"\bLink \d{1,9}:|Unable to retrieve NVLink")


def _recognises(text: str) -> bool:
    return "(UUID:" in text and bool(_listed(lines_of(SourceDocument("", text))))


def _listed(lines: tuple[Line, ...]) -> dict[int, re.Match[str]]:
    """The lines of GPUs by number, but those of which `nvlink --status` goes on with links."""
    filled = [line for line in lines if line.text.strip()]
    return {
        line.number: match
        for line, below in zip_longest(filled, filled[1:])
        if (match := GPU.search(line.text)) and not (below and _LINK.search(below.text))
    }


def add_listed(gathering: Gathering, line: Line, match: re.Match[str]) -> Subject:
    """The GPU of a line `GPU 0: name (UUID: …)`."""
    subject = "gpu", f"GPU{int(match['index'])}"
    index, product = line.group(match, "index"), line.group(match, "product")
    gathering.add(subject, "index", int(index.text), index.place)
    if FAULTS.fullmatch(product.text):
        gathering.not_understood(f"the product of {subject[1]}", product, "a name", UNREACHABLE)
    elif not absent(product.text):
        gathering.add(subject, "product", product.text, product.place)
    written = line.group(match, "uuid")
    if uuid(written.text) and match["end"]:
        gathering.add(subject, "uuid", written.text, written.place)
    elif not match["end"]:
        gathering.cut_off(f"the line of {subject[1]} has no end", written.place, "its name")
    else:
        gathering.not_understood(f"the uuid of {subject[1]}", written, "a UUID (GPU-…)")
    return subject


def add_gaps(gathering: Gathering, subjects: list[Subject], last: Word) -> None:
    """Indices go from 0 without gaps, where no line is lost."""
    indices = sorted(int(key.removeprefix("GPU")) for _, key in subjects)
    missing = sorted(set(range(indices[-1] if indices else 0)) - set(indices))
    if missing:
        listed = ", ".join(f"GPU {number}" for number in missing)
        fault = f"it lists GPU {indices[-1]}, but not {listed}"
        gathering.cut_off(fault, last.place, f"{len(indices)} GPUs")


def _read(document: SourceDocument) -> tuple[Reading, ...]:
    gathering = Gathering(TOOL, document.name)
    subjects: list[Subject] = []
    devices: dict[Subject, list[Word]] = {}
    lines = lines_of(document)
    listed, last = _listed(lines), lines[0].word()
    for line in lines:
        match = listed.get(line.number)
        if match:
            subjects.append(add_listed(gathering, line, match))
            last = line.word(match.start("index"), match.end("index"))
        match = _MIG.search(line.text)
        if match:
            _mig(gathering, devices, subjects, line, match)
    for subject, profiles in devices.items():
        value = tuple(sorted(word.text for word in profiles))
        gathering.add(subject, "mig", "on", profiles[0].place)
        gathering.add(subject, "mig_profiles", value, profiles[0].place)
    add_identities(gathering, subjects)
    add_gaps(gathering, subjects, last)
    return (gathering.reading(),)


def _mig(
    gathering: Gathering,
    devices: dict[Subject, list[Word]],
    subjects: list[Subject],
    line: Line,
    match: re.Match[str],
) -> None:
    """A MIG device belongs to the GPU above it; its numbers count from 0 there."""
    profile, number = line.group(match, "profile"), line.group(match, "number")
    if not subjects:
        gathering.cut_off(f"the GPU of the MIG device {profile.text} is missing", profile.place)
        return
    before = devices.setdefault(subjects[-1], [])
    if int(number.text) != len(before):
        fact = f"the number of a MIG device of {subjects[-1][1]}"
        expected = f"the next, {len(before)}: a line is lost"
        gathering.not_understood(fact, number, expected)
    before.append(profile)


READER = Reader(tool=TOOL, recognises=_recognises, read=_read)
