"""Generated files as blocks of settings: one form for Python programs, YAML and JSON, so that a
rule reads all three. Nothing is run or imported; what only a run would decide is `known=False`."""

from __future__ import annotations

from collections.abc import Iterable

from gpuplan.policy.api import EVIDENCE_FILE, PLAN_FILE, Block, Unreadable
from gpuplan.render.tree import File

ENDINGS = (".sbatch", ".sh", ".service", ".container")  # of scripts and units
OWN_FILES = (PLAN_FILE, EVIDENCE_FILE, "gpuplan.lock")


def parse(files: Iterable[File]) -> tuple[tuple[Block, ...], tuple[Unreadable, ...]]:
    """The blocks of all files that hold settings, and the files that could not be parsed."""
    blocks: list[Block] = []
    unreadable: list[Unreadable] = []
    for file in files:
        parsed = blocks_of(file)
        if isinstance(parsed, Unreadable):
            unreadable.append(parsed)
        else:
            blocks.extend(parsed)
    return tuple(blocks), tuple(unreadable)


def blocks_of(file: File) -> tuple[Block, ...] | Unreadable:
    if file.path in OWN_FILES:
        return ()
    if file.path.endswith(".py"):
        from gpuplan.policy.python_blocks import program_blocks

        return program_blocks(file)
    if file.path.endswith((".yaml", ".yml", ".json")):
        from gpuplan.policy.yaml_blocks import document_blocks

        return document_blocks(file)
    if file.path.endswith(ENDINGS):
        from gpuplan.policy.script_blocks import script_blocks

        return script_blocks(file)
    return ()
