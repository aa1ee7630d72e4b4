"""`nvidia-smi mig -lgi`: the MIG instances that there are, and the slices they stand on."""

from __future__ import annotations

import re
from itertools import pairwise

from gpuplan.frozen import record
from gpuplan.inventory.facts import Reader, Reading, Subject
from gpuplan.inventory.readers.gather import Gathering
from gpuplan.inventory.readers.words import Line, Word, lines_of
from gpuplan.plan.partitions import placed
from gpuplan.source import SourceDocument

TOOL = "nvidia-smi mig -lgi"
_HEAD = re.compile(r"\|\s*GPU instances:\s*\|")
_START = re.compile(r"\|\s*(?P<gpu>\d{1,9})\s+MIG\b")
_ROW = re.compile(
    r"\|\s*(?P<gpu>\d{1,9})\s+MIG (?P<profile>\S+)\s+\d+\s+\d+\s+"
    r"(?P<start>\d{1,9}):(?P<size>\d{1,9})\s*\|"
)


@record
class _Instance:
    """An instance, its first slice and the one after its last."""

    name: str
    start: int
    end: int
    word: Word


def _recognises(text: str) -> bool:
    return bool(_HEAD.search(text)) and "Start:Size" in text


def _read(document: SourceDocument) -> tuple[Reading, ...]:
    gathering = Gathering(TOOL, document.name)
    instances_of: dict[Subject, list[_Instance]] = {}
    for line in lines_of(document):
        row = _ROW.search(line.text)
        if row:
            instances_of.setdefault(("gpu", f"GPU{int(row['gpu'])}"), []).append(
                _instance(line, row)
            )
        elif broken := _START.search(line.text):
            subject = "gpu", f"GPU{int(broken['gpu'])}"
            gathering.cut_off(f"an instance of {subject[1]} has no placement", line.word().place)
            gathering.drop(subject, "mig_devices")
    for subject, instances in instances_of.items():
        _add(gathering, subject, sorted(instances, key=lambda each: each.start))
    return (gathering.reading(),)


def _instance(line: Line, row: re.Match[str]) -> _Instance:
    start = int(row["start"])
    name = placed(row["profile"], (start,))
    word = line.word(row.start("start"), row.end("size"))
    return _Instance(name=name, start=start, end=start + int(row["size"]), word=word)


def _add(gathering: Gathering, subject: Subject, instances: list[_Instance]) -> None:
    place = instances[0].word.place
    gathering.add(subject, "index", int(subject[1].removeprefix("GPU")), place)
    gathering.add(subject, "mig", "on", place)
    for first, second in pairwise(instances):
        if second.start < first.end:
            both, places = (first.name, second.name), (first.word.place, second.word.place)
            gathering.contradiction(f"the slices of {subject[1]}", both, places)
            gathering.drop(subject, "mig_devices")
    gathering.add(subject, "mig_devices", tuple(each.name for each in instances), place)


READER = Reader(tool=TOOL, recognises=_recognises, read=_read)
