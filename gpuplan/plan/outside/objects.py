"""What a stack's files make, in the words of whoever reads them: a scheduler's nodes, partitions,
qualities of service, accounts and jobs, the services of a Compose project; and how they change."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from gpuplan.frozen import record
from gpuplan.render.hostlist import hostlist

NODE, GPUS, PARTITION, JOB = "node", "GPUs", "partition", "job"  # kinds
SERVICE, SHARE, UNIT = "service", "share", "unit"


@record
class Setting:
    """As the file has it. A setting without a value has an empty one."""

    name: str
    value: str
    line: int | None = None


@record
class Written:
    """A thing that a file of the stack makes. `kind` is the reader's own word for it."""

    kind: str
    name: str
    file: str
    settings: tuple[Setting, ...]

    def get(self, name: str) -> Setting | None:
        return next((s for s in self.settings if s.name == name), None)


@record
class SettingChange:
    """None is a side that does not have it."""

    name: str
    base: str | None
    head: str | None


@record
class ObjectChange:
    """A thing, or nodes that change alike. `changes` are all settings where one side has none."""

    kind: str
    name: str
    status: str
    changes: tuple[SettingChange, ...]


def object_changes(base: Sequence[Written], head: Sequence[Written]) -> Iterator[ObjectChange]:
    """In the files' order, the new ones' first; nodes that change alike are one change."""
    old, new = ({(w.kind, w.name): w for w in side} for side in (base, head))
    alike: dict[tuple[str, str, tuple[SettingChange, ...]], list[str]] = {}
    for key in dict.fromkeys((*new, *old)):
        before, after = old.get(key), new.get(key)
        changes = tuple(_settings(before, after))
        status = "added" if before is None else "removed" if after is None else "changed"
        if changes or status != "changed":
            kind, name = key
            alike.setdefault((kind, status, changes), []).append(name)
    for (kind, status, changes), names in alike.items():
        shown = [hostlist(names)] if kind == NODE else names
        for name in shown:
            yield ObjectChange(kind=kind, name=name, status=status, changes=changes)


def _settings(before: Written | None, after: Written | None) -> Iterator[SettingChange]:
    old, new = ({s.name: s.value for s in w.settings} if w else {} for w in (before, after))
    for name in dict.fromkeys((*new, *old)):
        if old.get(name) != new.get(name):
            yield SettingChange(name=name, base=old.get(name), head=new.get(name))
