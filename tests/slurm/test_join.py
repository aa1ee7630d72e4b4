"""A guest with `hypervisor.join: slurm` becomes a node of the real slurmctld by its own script."""

from __future__ import annotations

from pathlib import Path

import pytest

from gpuplan.backends.libvirt import emit
from tests.backends.test_joins import guest, joined
from tests.tools import slurm
from tests.tools.slurm import Cluster

pytestmark = pytest.mark.slurm

# Of the administrator, who includes the lines that the stack has of guests.
CONF = """\
ClusterName=cluster
SlurmctldHost=slurm-01
SlurmctldParameters=enable_configless
SlurmUser=slurm
AuthType=auth/munge
SelectType=select/cons_tres
SelectTypeParameters=CR_Core_Memory
GresTypes=gpu
StateSaveLocation=/var/spool/slurmctld
ReturnToService=2
{own}
Include nodes.conf
PartitionName=guests Nodes=ALL Default=YES State=UP
"""
# What systemd does with Debian's units, whose words these are.
SYSTEMCTL = """\
#!/bin/bash
echo "systemctl $*" >>/systemctl.log
case "$2" in
munge.service)
    pkill -x munged
    while [ -e /run/munge/munge.socket.2 ]; do sleep 0.1; done
    exec setpriv --reuid=munge --regid=munge --clear-groups munged ;;
slurmd.service)
    . /etc/default/slurmd
    exec slurmd -N big-0 $SLURMD_OPTIONS ;;
esac
"""
KEY = "/etc/munge/munge.key"


def join(cluster: Cluster, key: str) -> str:
    """What the guest's script says; its credential is `key`, a file of the cluster's or none."""
    files = guest("slurm")
    install = files["/usr/local/sbin/gpuplan-join-install"]
    cluster.write("/usr/local/bin/apt-get", '#!/bin/sh\necho apt-get "$@" >>/apt.log\n', 0o755)
    cluster.write("/usr/local/bin/systemctl", SYSTEMCTL, 0o755)
    cluster.write("/usr/local/sbin/gpuplan-join-install", install, 0o755)
    cluster.write("/usr/local/sbin/gpuplan-join", files["/usr/local/sbin/gpuplan-join"], 0o755)
    cluster.shell(f"mkdir -p /run/credentials; cp {key} /run/credentials/join-token || true")
    cluster.run("sh", "/usr/local/sbin/gpuplan-join-install")
    script = (
        "CREDENTIALS_DIRECTORY=/run/credentials sh /usr/local/sbin/gpuplan-join >/said 2>&1; "
        "cat /said"
    )
    return cluster.run("bash", "-c", script, check=False).stdout


def test_a_guest_is_a_node_that_runs_work_and_one_without_a_key_is_none(tmp_path: Path) -> None:
    slurm.present()
    with slurm.machine(tmp_path / "machine", "slurm-01") as cluster:
        emitted = {f.path: f.text for f in emit(joined("slurm")).files}
        nodes = emitted["hypervisor/slurm/nodes.conf"]
        here = "NodeHostname=slurm-01 Port=6820 State=UNKNOWN"
        cluster.shell("mkdir -p /var/spool/slurmctld; chown slurm /var/spool/slurmctld")
        conf = {
            "slurm.conf": CONF.format(own=slurm.OWN),
            "nodes.conf": nodes.replace("State=UNKNOWN", here),
            "gres.conf": emitted["hypervisor/slurm/gres.conf"],
            "cgroup.conf": "CgroupPlugin=disabled\n",
        }
        slurm.start(cluster, conf)
        # The guest has no configuration of its own: it asks the controller for one.
        cluster.shell("mkdir /guest; mv /etc/slurm/*.conf /guest/")
        cluster.shell(f"cp {KEY} /cluster.key")
        assert "join-token" in join(cluster, "/no-such-key")
        assert state_of(cluster) != "idle"
        assert join(cluster, "/cluster.key") == ""
        cluster.until(lambda: state_of(cluster) == "idle", 60)
        assert "--conf-server slurm-01:6817" in cluster.shell(
            "tr '\\0' ' ' </proc/$(pgrep -x -r S slurmd)/cmdline"
        )
        assert cluster.shell(f"stat -c '%U %a' {KEY}").split() == ["munge", "400"]
        asked = ("--constraint=big", "--gres=gpu:8", "--mem=0")
        said = with_conf(cluster, "srun", *asked, "sh", "-c", "hostname; echo $SLURM_GPUS_ON_NODE")
        assert said.split() == ["slurm-01", "8"]


def with_conf(cluster: Cluster, *words: str) -> str:
    return cluster.run("env", "SLURM_CONF=/guest/slurm.conf", *words).stdout


def state_of(cluster: Cluster) -> str:
    return with_conf(cluster, "sinfo", "-h", "-N", "-n", "big-0", "-o", "%T").strip()
