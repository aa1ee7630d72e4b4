"""Slurm's files as nodes, GPUs, partitions, switches, qualities of service, accounts and jobs.

Read as far as Slurm reads it: a line that is none of these is somebody else's to judge.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator

from gpuplan.plan.outside.objects import GPUS, JOB, NODE, PARTITION, Setting, Written
from gpuplan.render.tree import File

_FIELD = r"(\w+)=(\S*)"
_ACCOUNT = r"(\w+)=('[^']*'|[^:]*)"
_OPTION = r"--([a-z][a-z-]*)(?:(?:=|\s+)(.*))?"
_REMARK = r"\s#"  # ends an option of sbatch
_KINDS = {"PartitionName": PARTITION, "SwitchName": "switch", "BlockName": "block"}


def read(file: File) -> Iterator[Written]:
    reader = _READERS.get(file.path)
    if file.path.startswith("jobs/") and file.path.endswith(".sbatch"):
        yield _job(file)
    elif reader is not None:
        from gpuplan.render.hostlist import MOST

        left = MOST
        for number, line in enumerate(file.text.split("\n"), start=1):
            for thing in reader(file, number, line, left):
                left -= 1
                yield thing


def _configured(file: File, number: int, line: str, left: int) -> Iterator[Written]:
    """A line of fields. Its first says what it is about; a list of nodes is each of them, or one
    where that are more than are `left`."""
    fields = re.findall(_FIELD, line)
    if line.startswith("#") or not fields:
        return
    settings = tuple(Setting(name=k, value=v, line=number) for k, v in fields[1:])
    key, name = fields[0]
    if key == "NodeName":
        from gpuplan.render.hostlist import hosts

        kind = NODE if file.path.endswith("slurm.conf") else GPUS
        gpus = next((s.value for s in settings if s.name == "File"), "")
        for host in hosts(name, left) or (name,):
            own = f"{host}:{gpus}" if kind == GPUS else host
            yield Written(kind=kind, name=own, file=file.path, settings=settings)
    elif key in _KINDS:
        yield Written(kind=_KINDS[key], name=name, file=file.path, settings=settings)


def _quality(file: File, number: int, line: str, _left: int) -> Iterator[Written]:
    if line.startswith("quality ") and (words := _words(line)):
        pairs = [word.partition("=") for word in words[2:]]
        settings = tuple(Setting(name=k, value=v, line=number) for k, _, v in pairs)
        yield Written(kind="QOS", name=words[1], file=file.path, settings=settings)


def _account(file: File, number: int, line: str, _left: int) -> Iterator[Written]:
    start, _, rest = line.partition(":")
    if start.startswith("Account - ") and (words := _words(start)):
        settings = tuple(
            Setting(name=k, value=v.strip("'"), line=number) for k, v in re.findall(_ACCOUNT, rest)
        )
        yield Written(kind="account", name=words[-1], file=file.path, settings=settings)


def _job(file: File) -> Written:
    """sbatch takes options up to the first command."""
    settings = []
    for number, text in enumerate(file.text.split("\n"), start=1):
        option = re.split(_REMARK, text.removeprefix("#SBATCH"), maxsplit=1)[0].strip()
        if text.startswith("#SBATCH ") and (match := re.match(_OPTION, option)):
            settings.append(Setting(name=f"--{match[1]}", value=match[2] or "", line=number))
        elif text.startswith("image="):
            settings.append(Setting(name="image", value=text[6:], line=number))
            break
    name = file.path.removeprefix("jobs/").removesuffix(".sbatch")
    return Written(kind=JOB, name=name, file=file.path, settings=tuple(settings))


def _words(line: str) -> list[str]:
    """None of a line that no shell would read."""
    import shlex

    try:
        return shlex.split(line)
    except ValueError:
        return []


_READERS: dict[str, Callable[[File, int, str, int], Iterator[Written]]] = {
    "etc/slurm.conf": _configured,
    "etc/gres.conf": _configured,
    "etc/topology.conf": _configured,
    "accounts.sh": _quality,
    "etc/accounts.cfg": _account,
}
