"""The table of `assign.sh`: the GPUs and physical cores that the machine gives each container."""

from __future__ import annotations

from collections.abc import Iterator

from gpuplan.plan.outside.objects import SHARE, Setting, Written
from gpuplan.render.tree import File

FILE = "assign.sh"
COLUMNS = ("gpus", "instance", "cores")
_START, _END = "table() {", "END"


def read(file: File) -> Iterator[Written]:
    """The rows between the script's own marks; what is edited around them is shell's to judge."""
    if file.path != FILE:
        return
    inside = False
    for number, line in enumerate(file.text.split("\n"), start=1):
        words = line.split()
        inside = line == _START or (inside and line != _END)
        if inside and len(words) > len(COLUMNS):
            yield Written(
                kind=SHARE,
                name=words[0],
                file=file.path,
                settings=tuple(
                    Setting(name=k, value=v, line=number)
                    for k, v in zip(COLUMNS, words[1:], strict=False)
                ),
            )
