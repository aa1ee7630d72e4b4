"""What nvidia-smi prints where it reaches no driver, or not all GPUs."""

from __future__ import annotations

import re

from gpuplan.inventory.facts import Reader, Reading
from gpuplan.inventory.readers.gather import unreadable
from gpuplan.inventory.readers.words import lines_of
from gpuplan.source import SourceDocument

TOOL = "nvidia-smi"
_FAULT = re.compile(
    r"NVIDIA-SMI has failed because .*|Failed to initialize NVML: .*|No devices were found|"
    r"Unable to determine the device handle for \S+ ?\S*: .*|"
    r"NVIDIA-SMI couldn't find .*|nvidia-smi: (?:command )?not found"
)


def _recognises(text: str) -> bool:
    return _FAULT.search(text) is not None


def _read(document: SourceDocument) -> tuple[Reading, ...]:
    remedy = "repair the driver (dmesg, nvidia-bug-report.sh), then run the command again"
    problems = tuple(
        unreadable(
            TOOL, match[0].strip().rstrip("."), line.word(match.start(), match.end()).place, remedy
        )
        for line in lines_of(document)
        if (match := _FAULT.search(line.text))
    )
    return (Reading(tool=TOOL, document=document.name, problems=problems),)


READER = Reader(tool=TOOL, recognises=_recognises, read=_read)
