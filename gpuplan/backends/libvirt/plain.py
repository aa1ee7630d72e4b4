"""The stack by ssh and virsh alone: what `pulumi up` does, as a shell script."""

from __future__ import annotations

from gpuplan.backends.libvirt.view import Placed, PlainStack
from gpuplan.plan.model import Plan
from gpuplan.render.environments import render
from gpuplan.render.tree import File

KEPT = "/var/lib/gpuplan"  # what was applied, on each host


def script(plan: Plan) -> File:
    """`apply.sh`. Names of stacks, hosts and guests are words of a shell by their patterns."""
    view = PlainStack(
        name=plan.name,
        staging=staging(plan.name),
        kept=f"{KEPT}/{plan.name}",
        hosts=tuple(h.name for h in plan.hosts),
        guests=tuple(Placed(name=m.name, host=m.host) for m in plan.virtual_machines),
    )
    text = render("shell", "libvirt/apply.sh.j2", stack=view)
    return File("apply.sh", text, executable=True)


def staging(stack: str) -> str:
    """Where a host's files wait, below the home of the user who copies them."""
    return f".gpuplan/{stack}"
