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


# hv-01: 112 cores on 2 NUMA nodes
hv_01_connection = command.remote.ConnectionArgs(
    host=addresses.get("hv-01", "hv-01"),
    user=user,
    private_key=private_key,
    host_key=host_key("hv-01"),
)

hv_01_folder = command.remote.Command(
    "host-hv-01-folder",
    connection=hv_01_connection,
    create="mkdir -p -m 0700 .gpuplan/passthrough",
    delete="rm -rf .gpuplan/passthrough",
    add_previous_output_in_env=False,
)

hv_01_files = command.remote.CopyToRemote(
    "host-hv-01-files",
    connection=hv_01_connection,
    source=pulumi.FileArchive("hypervisor/host/hv-01"),
    remote_path=".gpuplan/passthrough",
    opts=pulumi.ResourceOptions(depends_on=[hv_01_folder]),
)

hv_01_units = command.remote.Command(
    "host-hv-01-units",
    connection=hv_01_connection,
    create=as_root("sh -s apply .gpuplan/passthrough/hv-01"),
    update=as_root("sh -s apply .gpuplan/passthrough/hv-01"),
    delete=as_root("sh -s remove"),
    stdin=Path("hypervisor/host/hv-01/setup.sh").read_text(encoding="utf-8"),
    add_previous_output_in_env=False,
    opts=pulumi.ResourceOptions(depends_on=[hv_01_files]),
)

# hv-02: 112 cores on 2 NUMA nodes
hv_02_connection = command.remote.ConnectionArgs(
    host=addresses.get("hv-02", "hv-02"),
    user=user,
    private_key=private_key,
    host_key=host_key("hv-02"),
)

hv_02_folder = command.remote.Command(
    "host-hv-02-folder",
    connection=hv_02_connection,
    create="mkdir -p -m 0700 .gpuplan/passthrough",
    delete="rm -rf .gpuplan/passthrough",
    add_previous_output_in_env=False,
)

hv_02_files = command.remote.CopyToRemote(
    "host-hv-02-files",
    connection=hv_02_connection,
    source=pulumi.FileArchive("hypervisor/host/hv-02"),
    remote_path=".gpuplan/passthrough",
    opts=pulumi.ResourceOptions(depends_on=[hv_02_folder]),
)

hv_02_units = command.remote.Command(
    "host-hv-02-units",
    connection=hv_02_connection,
    create=as_root("sh -s apply .gpuplan/passthrough/hv-02"),
    update=as_root("sh -s apply .gpuplan/passthrough/hv-02"),
    delete=as_root("sh -s remove"),
    stdin=Path("hypervisor/host/hv-02/setup.sh").read_text(encoding="utf-8"),
    add_previous_output_in_env=False,
    opts=pulumi.ResourceOptions(depends_on=[hv_02_files]),
)
