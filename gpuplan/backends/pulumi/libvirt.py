"""Plan → the Pulumi program of a stack of libvirt guests.

The files that it applies are the libvirt backend's: a domain's XML, and for each host a folder that
mirrors its root.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterator

from gpuplan.backends.pulumi.project import Setting
from gpuplan.backends.pulumi.typed import file_text
from gpuplan.backends.pulumi.view import Resource
from gpuplan.plan.model import Host, Plan, VirtualMachine, record
from gpuplan.render import python
from gpuplan.render.environments import Verbatim, render
from gpuplan.render.python import Call, Commented, Expression, Name, identifier, identifiers
from gpuplan.render.tree import File
from gpuplan.units import format_bytes

DOMAINS = "hypervisor/libvirt"
HOSTS = "hypervisor/host"
VIRSH = "virsh --connect qemu:///system"
COMMAND_TYPE = "command:remote:Command"
COPY_TYPE = "command:remote:CopyToRemote"
SETTINGS = (
    Setting(name="sshUser", kind="string", default="root", description="Who runs virsh on hosts"),
    Setting(name="sshPrivateKey", kind="string", secret=True, description="The key of that user"),
    Setting(name="hostKeys", kind="object", default={}, description="Hosts' public keys by name"),
)


@record
class HostSection:
    heading: Verbatim
    connection: Verbatim
    archives: tuple[Verbatim, ...]
    statements: tuple[Verbatim, ...]


@record
class MachineSection:
    heading: Verbatim
    define: Verbatim
    statement: Verbatim


def files(plan: Plan) -> Iterator[File]:
    names = [h.name for h in plan.hosts]
    variables = dict(zip(names, identifiers(names), strict=True))
    hosts = [_host(plan, h, variables[h.name]) for h in plan.hosts]
    machines = [_machine(m, variables[m.host]) for m in plan.virtual_machines]
    yield File("hosts.py", render("python", "pulumi/hosts.py.j2", hosts=hosts))
    placed = {m.name: m.host for m in plan.virtual_machines}
    guests = Verbatim(python.expression(placed, lead="guests = "))
    text = render("python", "pulumi/machines.py.j2", machines=machines, guests=guests)
    yield File("machines.py", text)
    export = Call("pulumi.export", ("guests", Name("machines.guests")))
    yield File(
        "__main__.py",
        render(
            "python",
            "pulumi/main.py.j2",
            modules=[Verbatim("machines")],
            exports=[Verbatim(python.expression(export))],
        ),
    )


def resources(plan: Plan) -> Iterator[Resource]:
    for host in plan.hosts:
        for folder in _folders(plan, host):
            yield Resource(type=COPY_TYPE, name=f"host-{host.name}-{folder}")
        yield Resource(type=COMMAND_TYPE, name=f"host-{host.name}-units")
    for machine in plan.virtual_machines:
        yield Resource(type=COMMAND_TYPE, name=machine.name, marks=("protect",))


def _has_vgpus(plan: Plan, host: Host) -> bool:
    guests = (m for m in plan.virtual_machines if m.host == host.name)
    return any(d.kind == "vgpu" for m in guests for d in m.devices)


def _folders(plan: Plan, host: Host) -> tuple[str, ...]:
    """The folders below the host's root that have files for it."""
    return ("etc", "usr") if _has_vgpus(plan, host) else ("etc",)


def _host(plan: Plan, host: Host, variable: str) -> HostSection:
    folders = _folders(plan, host)
    connection = Call(
        "command.remote.ConnectionArgs",
        (),
        (
            ("host", host.name),
            ("user", Name("user")),
            ("private_key", Name("private_key")),
            ("host_key", Call("host_keys.get", (host.name,))),
        ),
    )
    copies = tuple(_copy(host, folder, variable) for folder in folders)
    units = _units(host, folders, variable, vgpus=_has_vgpus(plan, host))
    cores = sum(len(n.cores) for n in host.numa_nodes)
    heading = f"{host.name}: {cores} cores on {len(host.numa_nodes)} NUMA nodes"
    return HostSection(
        heading=Verbatim(python.comment(heading)),
        connection=Verbatim(python.expression(connection, lead=f"{variable}_connection = ")),
        archives=tuple(_archive(host, folder, variable) for folder in folders),
        statements=(*copies, units),
    )


def _archive(host: Host, folder: str, variable: str) -> Verbatim:
    value = Call("pulumi.FileArchive", (f"{HOSTS}/{host.name}/{folder}",))
    return Verbatim(python.expression(value, lead=f"{variable}_{folder} = "))


def _copy(host: Host, folder: str, variable: str) -> Verbatim:
    call = Call(
        "command.remote.CopyToRemote",
        (f"host-{host.name}-{folder}",),
        (
            ("connection", Name(f"{variable}_connection")),
            ("source", Name(f"{variable}_{folder}")),
            ("remote_path", "/"),
        ),
    )
    return Verbatim(python.expression(call, lead=f"{variable}_{folder}_copy = "))


def _units(host: Host, folders: tuple[str, ...], variable: str, *, vgpus: bool) -> Verbatim:
    """Makes the copied files known. Running it again does no harm, so a change may replace it."""
    steps = ["systemctl daemon-reload", "systemctl enable gpuplan-hugepages.service"]
    if vgpus:
        steps.insert(0, "chmod 0755 /usr/local/sbin/gpuplan-vgpus")
        steps.append("systemctl enable gpuplan-vgpus.service")
    steps.append("update-grub")
    copies: list[Expression] = [Name(f"{variable}_{folder}_copy") for folder in folders]
    call = Call(
        "command.remote.Command",
        (f"host-{host.name}-units",),
        (
            ("connection", Name(f"{variable}_connection")),
            ("create", " && ".join(steps)),
            ("add_previous_output_in_env", False),
            ("triggers", [Name(f"{variable}_{folder}") for folder in folders]),
            ("opts", Call("pulumi.ResourceOptions", (), (("depends_on", copies),))),
        ),
    )
    return Verbatim(python.expression(call, lead=f"{variable}_units = "))


def _machine(machine: VirtualMachine, host: str) -> MachineSection:
    """No `triggers`: a change of those replaces the resource, which would undefine the guest. The
    XML on standard input is an input like any other, and its change runs `update`."""
    name = shlex.quote(machine.name)
    define = f"{identifier(machine.name)}_define"
    steps = f"{VIRSH} define --validate /dev/stdin && {VIRSH} autostart {name}"
    options = (("depends_on", [Name(f"hosts.{host}_units")]), ("protect", True))
    undefine = "a running guest runs on until it is shut down, and its disks stay"
    call = Call(
        "command.remote.Command",
        (machine.name,),
        (
            ("connection", Name(f"hosts.{host}_connection")),
            ("create", Name(define)),
            ("update", Name(define)),
            ("delete", Commented(undefine, f"{VIRSH} undefine --nvram {name}")),
            ("stdin", file_text(f"{DOMAINS}/{machine.name}.xml")),
            ("add_previous_output_in_env", False),
            ("opts", Call("pulumi.ResourceOptions", (), options)),
        ),
    )
    return MachineSection(
        heading=Verbatim(python.comment(_heading(machine))),
        define=Verbatim(python.expression(steps, lead=f"{define} = ")),
        statement=Verbatim(python.expression(call)),
    )


def _heading(machine: VirtualMachine) -> str:
    cpus = sum(len(c.pins) for c in machine.cells)
    devices = ", ".join(d.name for d in machine.devices)
    memory = format_bytes(machine.memory_bytes)
    return f"{machine.name} on {machine.host}: {cpus} CPUs, {memory}, {devices or 'no device'}"
