"""The files of one host, and the script that installs, compares and removes them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from gpuplan.backends.libvirt.view import HostView, Installed, PlainStack, Setup
from gpuplan.plan.changes.guests import HOSTS, SEEDS
from gpuplan.render.checksums import sha256
from gpuplan.render.environments import Syntax, render
from gpuplan.render.tree import File

# Every file that a host may need, by its path there.
TEMPLATES: dict[str, tuple[Syntax, str]] = {
    "/etc/default/grub.d/60-gpuplan.cfg": ("shell", "grub.cfg"),
    "/etc/libvirt/hooks/qemu.d/gpuplan": ("shell", "hook.sh"),
    "/etc/modprobe.d/60-gpuplan.conf": ("conf", "scheduler.conf"),
    "/etc/modules-load.d/gpuplan-vfio.conf": ("conf", "modules.conf"),
    "/etc/sysctl.d/60-gpuplan.conf": ("conf", "sysctl.conf"),
    "/etc/systemd/system.conf.d/60-gpuplan.conf": ("conf", "system.conf"),
    "/etc/systemd/system/gpuplan-hugepages.service": ("conf", "hugepages.service"),
    "/etc/systemd/system/gpuplan-settings.service": ("conf", "settings.service"),
    "/etc/systemd/system/irqbalance.service.d/60-gpuplan.conf": ("conf", "irqs.conf"),
    "/etc/systemd/system/libvirtd.service.d/60-gpuplan.conf": ("conf", "order.conf"),
    "/etc/systemd/system/virtqemud.service.d/60-gpuplan.conf": ("conf", "order.conf"),
    "/etc/udev/rules.d/60-gpuplan-vfio.rules": ("conf", "vfio.rules"),
    "/usr/local/sbin/gpuplan-devices": ("shell", "devices.sh"),
    "/usr/local/sbin/gpuplan-disks": ("shell", "disks.sh"),
    "/usr/local/sbin/gpuplan-nics": ("shell", "nics.sh"),
    "/usr/local/sbin/gpuplan-settings": ("shell", "settings.sh"),
    "/usr/local/sbin/gpuplan-vgpus": ("shell", "vgpus.sh"),
}
# Files of earlier versions, which kept libvirt from starting where one failed.
FORMER = (
    "/etc/systemd/system/gpuplan-nics.service",
    "/etc/systemd/system/gpuplan-vgpus.service",
)
PROGRAMS = ("/usr/", "/etc/libvirt/hooks/")


def _absent(view: HostView) -> Iterator[str]:
    """The files that the host does not need."""
    needed = {
        "modules-load": view.has_vfio,
        "rules": bool(view.bound_at_boot),
        "gpuplan-nics": bool(view.nics),
        "gpuplan-vgpus": view.has_vgpus,
        "gpuplan-settings": view.settings.has_program,
        "sysctl": view.settings.no_numa_balancing,
        "irqbalance": view.settings.has_irqs,
        "modprobe": view.settings.has_scheduler,
        "gpuplan-disks": view.has_image,
    }
    for path in TEMPLATES:
        if any(part in path and not wanted for part, wanted in needed.items()):
            yield path


def _mode(path: str) -> str:
    if path.startswith(PROGRAMS):
        return "0755"
    return "0600" if path.startswith(SEEDS) else "0644"


def host_files(view: HostView, stack: PlainStack, seeds: Sequence[File]) -> Iterator[File]:
    """The host's files, below a folder that mirrors its root; what puts them to work and defines
    the guests of `stack` here; a page. `seeds` are those of its guests, which are in the stack
    already."""
    folder = f"{HOSTS}/{view.name}"
    given = {f.path.removeprefix(folder): f.text for f in seeds}
    stale = tuple(_absent(view))
    texts = {
        path: render(syntax, f"libvirt/host/{template}.j2", host=view)
        for path, (syntax, template) in TEMPLATES.items()
        if path not in stale
    }
    for path, text in sorted(texts.items()):
        yield File(f"{folder}{path}", text, executable=path.startswith(PROGRAMS))
    setup = Setup(
        requirements=view.requirements,
        files=tuple(
            Installed(
                path=path,
                name=path.removeprefix("/"),
                sha256=sha256(text.encode()),
                mode=_mode(path),
            )
            for path, text in {**texts, **given}.items()
        ),
        stale=(*stale, *FORMER),
        units=tuple(f"{unit}.service" for unit in view.units),
    )
    script = render("shell", "libvirt/host/setup.sh.j2", host=view, setup=setup)
    yield File(f"{folder}/setup.sh", script, executable=True)
    script = render("shell", "libvirt/host/guests.sh.j2", stack=stack, seeds=SEEDS)
    yield File(f"{folder}/guests.sh", script, executable=True)
    yield File(f"{folder}/README.md", render("markdown", "libvirt/host/README.md.j2", host=view))
