"""The stack by ssh and virsh alone: what `pulumi up` does, as a shell script and as an Ansible
role, which both run the scripts of each host."""

from __future__ import annotations

from collections.abc import Iterator

from gpuplan.backends.libvirt.view import Placed, PlainStack
from gpuplan.plan.model import Host, Plan
from gpuplan.render.environments import render
from gpuplan.render.tree import File

KEPT = "/var/lib/gpuplan"  # what was applied, on each host
ROLE = "ansible/roles/hypervisor"


def stack_view(plan: Plan, hosts: tuple[Host, ...]) -> PlainStack:
    """The stack on `hosts`, which are all of its hosts or one of them."""
    return PlainStack(
        name=plan.name,
        folder=f"{KEPT}/{plan.name}/host",
        kept=f"{KEPT}/{plan.name}",
        hosts=tuple(
            Placed(
                name=h.name,
                guests=tuple(m.name for m in plan.virtual_machines if m.host == h.name),
            )
            for h in hosts
        ),
    )


def files(plan: Plan) -> Iterator[File]:
    """`apply.sh`, and the role where it is asked for. Names of stacks, hosts and guests are words
    of a shell by their patterns."""
    view = stack_view(plan, plan.hosts)
    text = render("shell", "libvirt/apply.sh.j2", stack=view)
    yield File("apply.sh", text, executable=True)
    if not plan.ansible:
        return
    for path in (
        "ansible/site.yml",
        "ansible/inventory.yml",
        f"{ROLE}/tasks/main.yml",
        f"{ROLE}/defaults/main.yml",
        f"{ROLE}/meta/main.yml",
    ):
        template = path.removesuffix("/main.yml").rpartition("/")[2].removesuffix(".yml")
        yield File(path, render("yaml", f"libvirt/ansible/{template}.yml.j2", stack=view))
