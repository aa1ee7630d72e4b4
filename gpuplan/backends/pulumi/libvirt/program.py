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
    Setting(
        name="sshUser",
        kind="string",
        default="root",
        description="Who sets up the hosts over SSH, with the rights of root",
    ),
    Setting(name="sshPrivateKey", kind="string", secret=True, description="The key of that user"),
    Setting(
        name="hosts",
        kind="object",
        default={},
        description="Addresses for SSH by host, where a host's name is none",
    ),
    Setting(
        name="hostKeys",
        kind="object",
        default={},
        description="Public keys by host: `ssh-ed25519 AAAA…`. `pulumi up` refuses a host without",
    ),
    Setting(
        name="trustUnseenHosts",
        kind="boolean",
        default=False,
        description="Whether a host without a key is believed to be the one it is called",
    ),
)


@record
class HostSection:
    heading: Verbatim
    connection: Verbatim
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


def _folders(plan: Plan, host: Host) -> tuple[str, ...]:
    """The folders below the host's root that have files for it: programs make vGPUs and functions
    of NICs."""
    guests = (m for m in plan.virtual_machines if m.host == host.name)
    programs = any(d.kind in ("vgpu", "nic") for m in guests for d in m.devices)
    return ("etc", "usr") if programs else ("etc",)


def _host(plan: Plan, host: Host, variable: str) -> HostSection:
    folders = _folders(plan, host)
    connection = Call(
        "command.remote.ConnectionArgs",
        (),
        (
            ("host", Call("addresses.get", (host.name, host.name))),
            ("user", Name("user")),
            ("private_key", Name("private_key")),
            ("host_key", Call("host_key", (host.name,))),
        ),
    )
    copies = tuple(_copy(host, folder, variable) for folder in folders)
    cores = sum(len(n.cores) for n in host.numa_nodes)
    heading = f"{host.name}: {cores} cores on {len(host.numa_nodes)} NUMA nodes"
    return HostSection(
        heading=Verbatim(python.comment(heading)),
        connection=Verbatim(python.expression(connection, lead=f"{variable}_connection = ")),
        statements=(*copies, _units(host, folders, variable)),
    )


def _copy(host: Host, folder: str, variable: str) -> Verbatim:
    call = Call(
        "command.remote.CopyToRemote",
        (f"host-{host.name}-{folder}",),
        (
            ("connection", Name(f"{variable}_connection")),
            ("source", Call("pulumi.FileArchive", (f"{HOSTS}/{host.name}/{folder}",))),
            ("remote_path", "/"),
        ),
    )
    return Verbatim(python.expression(call, lead=f"{variable}_{folder}_copy = "))


def _units(host: Host, folders: tuple[str, ...], variable: str) -> Verbatim:
    """Puts the copied files to work, and undoes it. The script holds their digests, so that each
    change of a file runs `update`. No `triggers`: a change of those replaces the resource, and the
    `delete` of the replaced one would undo what its successor did."""
    copies: list[Expression] = [Name(f"{variable}_{folder}_copy") for folder in folders]
    call = Call(
        "command.remote.Command",
        (f"host-{host.name}-units",),
        (
            ("connection", Name(f"{variable}_connection")),
            ("create", "sh -s apply"),
            ("update", "sh -s apply"),
            ("delete", "sh -s remove"),
            ("stdin", file_text(f"{HOSTS}/{host.name}/setup.sh")),
            ("add_previous_output_in_env", False),
            ("opts", Call("pulumi.ResourceOptions", (), (("depends_on", copies),))),
        ),
    )
    return Verbatim(python.expression(call, lead=f"{variable}_units = "))


def _machine(machine: VirtualMachine, host: str) -> MachineSection:
    """No `triggers`: a change of those replaces the resource, which would undefine the guest. The
    XML on standard input is an input like any other, and its change runs `update`."""
    name = shlex.quote(machine.name)
    define = f"{identifier(machine.name)}_define"
    # An NVSwitch partition is active only when somebody activated it since the host's boot.
    by_hand = "--disable " if machine.fabric_partition is not None else ""
    steps = f"{VIRSH} define --validate /dev/stdin && {VIRSH} autostart {by_hand}{name}"
    options = (("depends_on", [Name(f"hosts.{host}_units")]), ("protect", True))
    known = f'guests="$({VIRSH} list --all --name)"'
    undefine = f"{VIRSH} undefine --nvram {name}"
    delete = f'{known} && {{ ! echo "$guests" | grep -qxF {name} || {undefine}; }}'
    kept = "a running guest runs on until it is shut down, and its disks stay"
    call = Call(
        "command.remote.Command",
        (machine.name,),
        (
            ("connection", Name(f"hosts.{host}_connection")),
            ("create", Name(define)),
            ("update", Name(define)),
            ("delete", Commented(kept, delete)),
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
