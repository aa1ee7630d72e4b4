"""Guests that a change puts on another host, in the words that every verb has for it."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Sequence

from gpuplan.diagnostics import Diagnostic, warning
from gpuplan.plan.model import Disk, Plan, VirtualMachine, record
from gpuplan.units import format_bytes


@record
class Move:
    """`before` and `after` are one guest, on two hosts."""

    before: VirtualMachine
    after: VirtualMachine

    @property
    def text(self) -> str:
        return (
            f"VM {self.after.name} moves from {self.before.host} to {self.after.host}, where it"
            f" starts anew: {self._disks()}"
        )

    def _disks(self) -> str:
        if not self.before.disks:
            return "it has no disks"
        listed = ", ".join(f"{d.source} ({format_bytes(d.size_bytes)})" for d in self.before.disks)
        total = format_bytes(sum(d.size_bytes for d in self.before.disks))
        copied = f", {total} to copy" if len(self.before.disks) > 1 else " to copy"
        return f"its disks stay on {self.before.host}: {listed}{copied}"

    @property
    def remedy(self) -> str:
        """What a person does, so that no two hosts ever run it."""
        old, new = f"root@{self.before.host}", f"root@{self.after.host}"
        stop = shlex.join(["ssh", old, "virsh", "shutdown", self.before.name])
        steps = [f"`{stop}`", *self._copies(old, new), "`pulumi state unprotect` of the old one"]
        return f"before `pulumi up`: {', '.join(steps)}"

    def _copies(self, old: str, new: str) -> Iterator[str]:
        made = {disk.name: disk for disk in self.after.disks}
        for disk in self.before.disks:
            if disk.name in made:
                yield f"make and copy {disk.name}: `{_copy(disk, made[disk.name], old, new)}`"


def _copy(disk: Disk, made: Disk, old: str, new: str) -> str:
    read, write = (shlex.quote(d.source) for d in (disk, made))
    return f"ssh {old} dd if={read} bs=16M | ssh {new} dd of={write} bs=16M conv=sparse"


def moves(before: Plan, after: Plan) -> Iterator[Move]:
    """The guests that both plans have, on different hosts."""
    former = {machine.name: machine for machine in before.virtual_machines}
    for machine in after.virtual_machines:
        old = former.get(machine.name)
        if old is not None and old.host != machine.host:
            yield Move(before=old, after=machine)


def moved(move: Move) -> Diagnostic:
    return warning("GP025", move.text, move.after.origin, help=move.remedy)


def carry_over(
    before: Plan, after: Plan, _: Sequence[str] = ()
) -> tuple[Plan, tuple[Diagnostic, ...]]:
    """`after` as an update of `before`, whose guests stayed where they could; those that move."""
    return after, tuple(map(moved, moves(before, after)))
