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
        description="Who sets up the hosts over SSH: root, or a user who may `sudo` without a word",
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
        yield Resource(type=COMMAND_TYPE, name=f"host-{host.name}-folder")
        yield Resource(type=COPY_TYPE, name=f"host-{host.name}-files")
        yield Resource(type=COMMAND_TYPE, name=f"host-{host.name}-units")
    for machine in plan.virtual_machines:
        yield Resource(type=COMMAND_TYPE, name=_resource(machine), marks=("protect",))


def _resource(machine: VirtualMachine) -> str:
    """With the host, so that a guest that moves is undefined where it was: `update` would run on
    its new host, and leave two hosts with one guest."""
    return f"{machine.name}-on-{machine.host}"


def _host(plan: Plan, host: Host, variable: str) -> HostSection:
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
    cores = sum(len(n.cores) for n in host.numa_nodes)
    heading = f"{host.name}: {cores} cores on {len(host.numa_nodes)} NUMA nodes"
    return HostSection(
        heading=Verbatim(python.comment(heading)),
        connection=Verbatim(python.expression(connection, lead=f"{variable}_connection = ")),
        statements=(
            _folder(plan, host, variable),
            _copy(plan, host, variable),
            _units(plan, host, variable),
        ),
    )


def _staging(plan: Plan) -> str:
    """Where a host's files wait, below the home of the user who copies them."""
    return f".gpuplan/{plan.name}"


def _folder(plan: Plan, host: Host, variable: str) -> Verbatim:
    path = shlex.quote(_staging(plan))
    call = Call(
        "command.remote.Command",
        (f"host-{host.name}-folder",),
        (
            ("connection", Name(f"{variable}_connection")),
            ("create", f"mkdir -p -m 0700 {path}"),
            ("delete", f"rm -rf {path}"),
            ("add_previous_output_in_env", False),
        ),
    )
    return Verbatim(python.expression(call, lead=f"{variable}_folder = "))


def _copy(plan: Plan, host: Host, variable: str) -> Verbatim:
    """Into the folder that is there, under the host's name."""
    after = Call("pulumi.ResourceOptions", (), (("depends_on", [Name(f"{variable}_folder")]),))
    call = Call(
        "command.remote.CopyToRemote",
        (f"host-{host.name}-files",),
        (
            ("connection", Name(f"{variable}_connection")),
            ("source", Call("pulumi.FileArchive", (f"{HOSTS}/{host.name}",))),
            ("remote_path", _staging(plan)),
            ("opts", after),
        ),
    )
    return Verbatim(python.expression(call, lead=f"{variable}_files = "))


def _units(plan: Plan, host: Host, variable: str) -> Verbatim:
    """Puts the copied files to work, and undoes it. The script holds their digests, so that each
    change of a file runs `update`. No `triggers`: a change of those replaces the resource, and the
    `delete` of the replaced one would undo what its successor did."""
    folder = shlex.quote(f"{_staging(plan)}/{host.name}")
    apply: Expression = Call("as_root", (f"sh -s apply {folder}",))
    after: list[Expression] = [Name(f"{variable}_files")]
    call = Call(
        "command.remote.Command",
        (f"host-{host.name}-units",),
        (
            ("connection", Name(f"{variable}_connection")),
            ("create", apply),
            ("update", apply),
            ("delete", Call("as_root", ("sh -s remove",))),
            ("stdin", file_text(f"{HOSTS}/{host.name}/setup.sh")),
            ("add_previous_output_in_env", False),
            ("opts", Call("pulumi.ResourceOptions", (), (("depends_on", after),))),
        ),
    )
    return Verbatim(python.expression(call, lead=f"{variable}_units = "))


def _machine(machine: VirtualMachine, host: str) -> MachineSection:
    """No `triggers`: a change of those replaces the resource, which would undefine the guest. The
    XML on standard input is an input like any other, and its change runs `update`."""
    name = shlex.quote(machine.name)
    define = f"{identifier(machine.name)}_define"
    steps: Expression = Call(
        "hosts.as_root", (f"{VIRSH} define --validate /dev/stdin && {VIRSH} autostart {name}",)
    )
    options = (("depends_on", [Name(f"hosts.{host}_units")]), ("protect", True))
    known = f'guests="$({VIRSH} list --all --name)"'
    undefine = f"{VIRSH} undefine --nvram {name}"
    delete = f'{known} && {{ ! echo "$guests" | grep -qxF {name} || {undefine}; }}'
    kept = "a running guest runs on until it is shut down, and its disks stay"
    call = Call(
        "command.remote.Command",
        (_resource(machine),),
        (
            ("connection", Name(f"hosts.{host}_connection")),
            ("create", Name(define)),
            ("update", Name(define)),
            ("delete", Commented(kept, Call("hosts.as_root", (delete,)))),
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
