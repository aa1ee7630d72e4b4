"""The hypervisor hosts: how they are reached, and the files that prepare them.

The kernel line and the huge pages come with the host's next boot. When that is, a person decides.
"""

import shlex
from pathlib import Path

import pulumi
import pulumi_command as command

config = pulumi.Config()

user = config.get("sshUser") or "root"
private_key = config.require_secret("sshPrivateKey")

addresses: dict[str, str] = config.get_object("hosts") or {}
host_keys: dict[str, str] = config.get_object("hostKeys") or {}


def as_root(command: str) -> str:
    """`command` as the rights of the hosts' user need it: nobody is asked for a password."""
    return command if user == "root" else f"sudo -n sh -c {shlex.quote(command)}"


def host_key(name: str) -> str | None:
    """The public key by which host `name` is known. Without one, anything that answers would be
    handed the host's configuration, so that is refused unless `trustUnseenHosts` allows it."""
    if name in host_keys or config.get_bool("trustUnseenHosts"):
        return host_keys.get(name)
    problem = f"hostKeys has no public key of {name}: README.md says how to set it"
    if not pulumi.runtime.is_dry_run():
        raise pulumi.RunError(problem)
    pulumi.log.warn(problem)
    return None


# hv-04: 64 cores on 2 NUMA nodes
hv_04_connection = command.remote.ConnectionArgs(
    host=addresses.get("hv-04", "hv-04"),
    user=user,
    private_key=private_key,
    host_key=host_key("hv-04"),
)

hv_04_folder = command.remote.Command(
    "host-hv-04-folder",
    connection=hv_04_connection,
    create="mkdir -p -m 0700 .gpuplan/nodes",
    delete="rm -rf .gpuplan/nodes",
    add_previous_output_in_env=False,
)

hv_04_files = command.remote.CopyToRemote(
    "host-hv-04-files",
    connection=hv_04_connection,
    source=pulumi.FileArchive("hypervisor/host/hv-04"),
    remote_path=".gpuplan/nodes",
    opts=pulumi.ResourceOptions(depends_on=[hv_04_folder]),
)

hv_04_units = command.remote.Command(
    "host-hv-04-units",
    connection=hv_04_connection,
    create=as_root("sh -s apply .gpuplan/nodes/hv-04"),
    update=as_root("sh -s apply .gpuplan/nodes/hv-04"),
    delete=as_root("sh -s remove"),
    stdin=Path("hypervisor/host/hv-04/setup.sh").read_text(encoding="utf-8"),
    add_previous_output_in_env=False,
    opts=pulumi.ResourceOptions(depends_on=[hv_04_files]),
)
