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

# hv-03: 64 cores on 2 NUMA nodes
hv_03_connection = command.remote.ConnectionArgs(
    host="hv-03",
    user=user,
    private_key=private_key,
    host_key=host_keys.get("hv-03"),
)

hv_03_etc = pulumi.FileArchive("hypervisor/host/hv-03/etc")
hv_03_usr = pulumi.FileArchive("hypervisor/host/hv-03/usr")

hv_03_etc_copy = command.remote.CopyToRemote(
    "host-hv-03-etc",
    connection=hv_03_connection,
    source=hv_03_etc,
    remote_path="/",
)

hv_03_usr_copy = command.remote.CopyToRemote(
    "host-hv-03-usr",
    connection=hv_03_connection,
    source=hv_03_usr,
    remote_path="/",
)

hv_03_units = command.remote.Command(
    "host-hv-03-units",
    connection=hv_03_connection,
    create=(
        "chmod 0755 /usr/local/sbin/gpuplan-vgpus && systemctl daemon-reload && systemctl enable "
        "gpuplan-hugepages.service && systemctl enable gpuplan-vgpus.service && update-grub"
    ),
    add_previous_output_in_env=False,
    triggers=[hv_03_etc, hv_03_usr],
    opts=pulumi.ResourceOptions(depends_on=[hv_03_etc_copy, hv_03_usr_copy]),
)
