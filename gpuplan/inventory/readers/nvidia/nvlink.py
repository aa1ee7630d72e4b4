"""`nvidia-smi nvlink --status`: how many NVLinks of each GPU are up."""

from __future__ import annotations

import re

from gpuplan.inventory.facts import Reader, Reading, Subject
from gpuplan.inventory.readers.gather import Gathering
from gpuplan.inventory.readers.nvidia.nvidia_fields import add_identities
from gpuplan.inventory.readers.nvidia.nvidia_list import GPU, add_gaps, add_listed
from gpuplan.inventory.readers.words import Word, lines_of
from gpuplan.source import SourceDocument

TOOL = "nvidia-smi nvlink --status"
_LINK = re.compile(r"\bLink (?P<number>\d{1,9}): (?P<state>\S.*)")
_UP = re.compile(r"[0-9]+(?:\.[0-9]+)? GB/s")
_NONE = re.compile(r"(?:NVML: )?Unable to retrieve NVLink information as all links are inActive")


def _recognises(text: str) -> bool:
    gpu = re.search(GPU.pattern, text, re.MULTILINE)
    states = (m["state"].strip() for m in re.finditer(_LINK.pattern, text, re.MULTILINE))
    return bool(gpu) and (any(map(_state, states)) or bool(_NONE.search(text)))


def _state(text: str) -> bool:
    return bool(_UP.fullmatch(text)) or "inactive" in text.lower()


def _read(document: SourceDocument) -> tuple[Reading, ...]:
    gathering = Gathering(TOOL, document.name)
    subjects: list[Subject] = []
    links: dict[Subject, list[Word]] = {}
    heads: dict[Subject, Word] = {}
    for line in lines_of(document):
        match = GPU.search(line.text)
        if match:
            subjects.append(add_listed(gathering, line, match))
            heads[subjects[-1]] = line.word(match.start("index"), match.end("index"))
        match = _LINK.search(line.text)
        if match and subjects:
            links.setdefault(subjects[-1], []).append(line.group(match, "state"))
            _number(gathering, subjects[-1], line.group(match, "number"), links[subjects[-1]])
        elif _NONE.search(line.text) and subjects:
            links.setdefault(subjects[-1], [])
    for subject, states in links.items():
        _count(gathering, subject, states, heads[subject])
    _compare(gathering, links, heads)
    add_identities(gathering, subjects)
    if subjects:
        add_gaps(gathering, subjects, heads[subjects[-1]])
    return (gathering.reading(),)


def _number(gathering: Gathering, subject: Subject, number: Word, before: list[Word]) -> None:
    """Links count from 0 without gaps, where no line is lost."""
    if int(number.text) != len(before) - 1:
        fact = f"the number of a link of {subject[1]}"
        expected = f"the next, {len(before) - 1}: a line is lost"
        gathering.not_understood(fact, number, expected)
        gathering.drop(subject, "nvlinks")


def _count(gathering: Gathering, subject: Subject, states: list[Word], head: Word) -> None:
    strange = [word for word in states if not _state(word.text)]
    for word in strange:
        expected = "a rate in GB/s or <inactive>"
        gathering.not_understood(f"a link of {subject[1]}", word, expected)
    if not strange:
        up = sum("inactive" not in word.text.lower() for word in states)
        gathering.add(subject, "nvlinks", up, head.place)


def _compare(
    gathering: Gathering, links: dict[Subject, list[Word]], heads: dict[Subject, Word]
) -> None:
    """GPUs of one product have as many lines of links, or none where all are inactive."""
    most: dict[object, int] = {}
    for subject, states in links.items():
        product = gathering.value(subject, "product")
        most[product] = max(most.get(product, 0), len(states))
    for subject, head in heads.items():
        listed, all_of = links.get(subject), most.get(gathering.value(subject, "product"), 0)
        if listed is None or 0 < len(listed) < all_of:
            part = f"lines of all {all_of or ''} links of {subject[1]}".replace("  ", " ")
            gathering.lacks(part, head.place)
            gathering.drop(subject, "nvlinks")


READER = Reader(tool=TOOL, recognises=_recognises, read=_read)
