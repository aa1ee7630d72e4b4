"""Shell scripts, batch scripts and units as blocks: what they start containers with, and the images
that they fetch. The words of a command that a manifest wrote are data in quotes, and not read."""

from __future__ import annotations

import re
from collections.abc import Iterator

from gpuplan.policy.api import Block, Entry
from gpuplan.render.tree import File

_STARTER = re.compile(r"\s*(?:exec\s+)?(srun|apptainer|podman|docker|enroot)\b|PodmanArgs=")
_FETCH = re.compile(r"\s*fetch\s+\S+\s+'?docker://(\S+?)'?\s*$")
_IMAGE = re.compile(r"Image\s*=\s*(\S+)\s*$")  # of a Quadlet unit: podman-systemd.unit(5)


def script_blocks(file: File) -> tuple[Block, ...]:
    return tuple(_blocks(file))


def _blocks(file: File) -> Iterator[Block]:
    line = 1
    for text in file.text.replace("\\\n", "\0").split("\n"):
        rows = text.count("\0")
        if file.path.endswith(".container") and (match := _IMAGE.match(text)):
            yield _block(file, line, "", Entry(key="image", value=match[1], line=line))
        elif match := _FETCH.match(text):
            image = match[1].replace("#", "/", 1)
            yield _block(file, line, "", Entry(key="image", value=image, line=line))
        elif _STARTER.match(text):
            plain = text.replace("\0", " ")
            yield _block(file, line, "text", Entry(key="text", value=plain, line=line))
        line += 1 + rows


def _block(file: File, line: int, kind: str, entry: Entry) -> Block:
    return Block(file=file.path, kind=kind, resource="", path="", line=line, entries=(entry,))
