"""The hypervisor hosts: how they are reached, and the files that prepare them.

The kernel line and the huge pages come with the host's next boot. When that is, a person decides.
"""

import pulumi
import pulumi_command as command

config = pulumi.Config()

user = config.get("sshUser") or "root"
private_key = config.require_secret("sshPrivateKey")

# The hosts' public keys by name. A host without one here is trusted unseen.
host_keys: dict[str, str] = config.get_object("hostKeys") or {}

# hv-01: 112 cores on 2 NUMA nodes
hv_01_connection = command.remote.ConnectionArgs(
    host="hv-01",
    user=user,
    private_key=private_key,
    host_key=host_keys.get("hv-01"),
)

hv_01_etc = pulumi.FileArchive("hypervisor/host/hv-01/etc")

hv_01_etc_copy = command.remote.CopyToRemote(
    "host-hv-01-etc",
    connection=hv_01_connection,
    source=hv_01_etc,
    remote_path="/",
)

hv_01_units = command.remote.Command(
    "host-hv-01-units",
    connection=hv_01_connection,
    create="systemctl daemon-reload && systemctl enable gpuplan-hugepages.service && update-grub",
    add_previous_output_in_env=False,
    triggers=[hv_01_etc],
    opts=pulumi.ResourceOptions(depends_on=[hv_01_etc_copy]),
)

# hv-02: 112 cores on 2 NUMA nodes
hv_02_connection = command.remote.ConnectionArgs(
    host="hv-02",
    user=user,
    private_key=private_key,
    host_key=host_keys.get("hv-02"),
)

hv_02_etc = pulumi.FileArchive("hypervisor/host/hv-02/etc")

hv_02_etc_copy = command.remote.CopyToRemote(
    "host-hv-02-etc",
    connection=hv_02_connection,
    source=hv_02_etc,
    remote_path="/",
)

hv_02_units = command.remote.Command(
    "host-hv-02-units",
    connection=hv_02_connection,
    create="systemctl daemon-reload && systemctl enable gpuplan-hugepages.service && update-grub",
    add_previous_output_in_env=False,
    triggers=[hv_02_etc],
    opts=pulumi.ResourceOptions(depends_on=[hv_02_etc_copy]),
)
