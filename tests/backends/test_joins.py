"""Guests that become nodes of a cluster, held against cloud-init's schema, systemd, shells and what
reads their configuration."""

from __future__ import annotations

import os
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest
from ruamel.yaml import YAML

from gpuplan.backends.libvirt import emit
from gpuplan.cli.main import main
from gpuplan.diagnostics import Severity
from gpuplan.plan.model import ClusterJoin, Plan
from gpuplan.units import MIB
from tests.backends.test_seeds import SECRETS, imaged, scraped, seeds, tree, written
from tests.support.require import require
from tests.tools.engines import BIN
from tests.tools.libvirtd import TRIXIE
from tests.tools.program import ROOT

HASH = "sha256:" + "ab" * 32
TOKEN = "abcdef.0123456789abcdef"
JOINS = {
    "kubeadm": ClusterJoin(
        kind="kubeadm", server="cluster-1:6443", version="1.36.2", ca_cert_hashes=(HASH,)
    ),
    "k3s": ClusterJoin(
        kind="k3s", server="cluster-1:6443", version="v1.34.2+k3s1", sha256="cd" * 32
    ),
    "slurm": ClusterJoin(kind="slurm", server="slurm-01:6817"),
}
SLURM = Path(os.environ.get("XDG_CACHE_HOME", Path.home() / ".cache")) / "gpuplan-slurm/trixie"


# Of `k3s agent`: k3s-io/k3s, pkg/cli/cmds/agent.go and config.go.
K3S = {"config", "debug", "token", "token-file", "server", "data-dir", "node-name", "with-node-id",
       "node-label", "node-taint", "node-ip", "node-external-ip", "kubelet-arg"}  # fmt: skip

# Of the unit that k3s-io/k3s, install.sh writes for an agent: it says when it is ready, its
# containers outlive it, and it has no limits of its own.
INSTALLED = """\
Type=notify
KillMode=process
Delegate=yes
LimitNOFILE=1048576
TasksMax=infinity
Restart=always
ExecStartPre=-/sbin/modprobe br_netfilter
ExecStartPre=-/sbin/modprobe overlay
""".splitlines()


def joined(kind: str) -> Plan:
    plan = imaged("whole hosts", secrets=SECRETS)
    return replace(plan, hosts=tuple(replace(h, join=JOINS[kind]) for h in plan.hosts))


def guest(kind: str) -> dict[str, str]:
    return written(seeds(joined(kind))["big-0"])


@pytest.mark.hypervisor
@pytest.mark.parametrize("kind", JOINS)
def test_consumers_take_what_a_node_gets(kind: str, tmp_path: Path) -> None:
    if not (TRIXIE / ".ready").exists():
        require("hypervisor", "no cloud-init 25 (see tests/tools/hypervisor-setup)")
    path = TRIXIE / "tmp" / f"{tmp_path.name}-{os.getpid()}"
    path.write_text(seeds(joined(kind))["big-0"]["user-data"], "utf-8")
    command = ["chroot", TRIXIE, "cloud-init", "schema", "--config-file", f"/tmp/{path.name}"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    path.unlink()
    assert done.returncode == 0, done.stdout + done.stderr
    for name, text in guest(kind).items():
        copy = tmp_path / Path(name).name
        copy.write_text(text, "utf-8")
        if text.startswith("#!"):
            subprocess.run(["sh", "-n", copy], check=True)
    verify = ["systemd-analyze", "verify", "--man=no", "--recursive-errors=no"]
    unit = tmp_path / "gpuplan-join.service"
    done = subprocess.run([*verify, unit], capture_output=True, text=True, check=False)
    mine = [line for line in done.stderr.splitlines() if unit.name in line]
    assert [line for line in mine if "is not executable" not in line] == []


@pytest.mark.parametrize("kind", JOINS)
def test_a_node_starts_no_engine_and_its_token_is_the_host_s(kind: str) -> None:
    plan = joined(kind)
    files = guest(kind)
    assert not [n for n in files if "big" in n or "health" in n or "dcgm" in n]
    assert "LoadCredential=join-token\n" in files["/etc/systemd/system/gpuplan-join.service"]
    domain = {f.path: f.text for f in emit(plan).files}["hypervisor/libvirt/big-0.xml"]
    name = "opt/io.systemd.credentials/join-token"
    assert f"name='{name}' file='/etc/gpuplan/secrets/rack/join-token'" in domain
    (said,) = [d for d in emit(plan).diagnostics if "become nodes" in d.message]
    assert said.severity is Severity.INFO
    assert JOINS[kind].server in said.message
    assert not any(d.severity is Severity.ERROR for d in emit(plan).diagnostics)
    assert scraped(plan).keys() == {"libvirt"}, "a cluster has its own monitoring"


def test_a_join_is_explained(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["explain", str(ROOT / "stacks/nodes"), "desk.join"]) == 0
    said = " ".join(capsys.readouterr().out.split())
    assert said.startswith("desk.join = kubeadm cluster.example.com:6443 nodes desk-0, desk-1")
    assert "/etc/gpuplan/secrets/nodes/join-token on each host: a bootstrap token" in said
    assert "wrong kubeadm fails and joins nothing" in said
    assert "label gpuplan.dev/workload=desk" in said


def run(kind: str, script: str, tmp_path: Path, programs: dict[str, str]) -> str:
    """What a script of the guest asks of its programs, which only say what they were asked."""
    text = guest(kind)[f"/usr/local/sbin/{script}"]
    for place in ("/etc/gpuplan", "/etc/kubernetes", "/usr/local/bin", "/run/", "/etc/munge"):
        text = text.replace(place, f"{tmp_path}{place}")
        (tmp_path / place.lstrip("/")).mkdir(parents=True, exist_ok=True)
    for path, content in guest(kind).items():
        if path.startswith("/etc/gpuplan/"):
            (tmp_path / path.lstrip("/")).write_text(content, "utf-8")
    (tmp_path / "join-token").write_text(TOKEN)
    for name, body in programs.items():
        program = tmp_path / "bin" / name
        program.parent.mkdir(exist_ok=True)
        program.write_text(f'#!/bin/sh\necho "{name} $*" >>{tmp_path}/log\n{body}\n')
        program.chmod(0o755)
    environment = {
        "PATH": f"{tmp_path}/bin:{os.environ['PATH']}",
        "CREDENTIALS_DIRECTORY": str(tmp_path),
    }
    done = subprocess.run(
        ["sh", "-c", text], env=environment, capture_output=True, text=True, check=False
    )
    log = tmp_path / "log"
    return (log.read_text() if log.exists() else "") + done.stderr


def test_kubeadm_gets_the_token_in_a_file_that_is_gone_afterwards(tmp_path: Path) -> None:
    body = f'stat -c %a "$3" >>{tmp_path}/log; cp "$3" {tmp_path}/given'
    log = run("kubeadm", "gpuplan-join", tmp_path, {"kubeadm": body})
    assert log.splitlines() == [f"kubeadm join --config {tmp_path}/run/gpuplan-join.yaml", "600"]
    given = YAML(typ="safe").load(tmp_path / "given")
    assert given["discovery"]["bootstrapToken"] == {
        "apiServerEndpoint": "cluster-1:6443",
        "token": TOKEN,
        "caCertHashes": [HASH],
    }
    assert given["nodeRegistration"]["name"] == "big-0"
    assert not (tmp_path / "run/gpuplan-join.yaml").exists()
    (tmp_path / "etc/kubernetes/kubelet.conf").touch()
    (tmp_path / "log").unlink()
    assert run("kubeadm", "gpuplan-join", tmp_path, {"kubeadm": ""}) == "", "joined already"


def test_kubeadm_itself_takes_the_configuration(tmp_path: Path) -> None:
    program = BIN / "kubeadm"
    if not program.exists():
        pytest.skip("no kubeadm: `tests/tools/engines.py kubeadm` builds it")
    path = tmp_path / "join.yaml"
    text = guest("kubeadm")["/etc/gpuplan/join.yaml"]
    command = [program, "config", "validate", "--config", path]
    path.write_text(text, "utf-8")
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    path.write_text(text.replace("caCertHashes", "caCertHash"), "utf-8")
    assert subprocess.run(command, capture_output=True, check=False).returncode != 0


def test_k3s_of_another_checksum_is_not_put_in_place(tmp_path: Path) -> None:
    curl = 'for last; do :; done; while [ "$1" != -o ]; do shift; done; echo other >"$2"'
    log = run("k3s", "gpuplan-join-install", tmp_path, {"curl": curl})
    assert "k3s-io/k3s/releases/download/v1.34.2%2Bk3s1/k3s" in log
    assert "FAILED" in log or "did NOT match" in log
    assert not (tmp_path / "usr/local/bin/k3s").exists()
    unit = guest("k3s")["/etc/systemd/system/gpuplan-join.service"]
    assert "--token-file %d/join-token" in unit
    assert [line for line in INSTALLED if line not in unit.splitlines()] == []
    config = tree(guest("k3s")["/etc/gpuplan/join.yaml"])
    assert {*config, "token-file", "config"} <= K3S
    assert config == {
        "server": "https://cluster-1:6443",
        "node-name": "big-0",
        "node-label": ["gpuplan.dev/workload=big"],
    }


@pytest.mark.slurm
def test_slurmd_takes_the_option_that_names_its_controller() -> None:
    if not (SLURM / ".ready").exists():
        require("slurm", "no Slurm (see tests/tools/slurm-setup)")
    script = guest("slurm")["/usr/local/sbin/gpuplan-join-install"]
    line = next(row for row in script.splitlines() if "SLURMD_OPTIONS" in row).partition(">")[0]
    said = subprocess.run(["sh", "-c", line], capture_output=True, text=True, check=True).stdout
    assert said == 'SLURMD_OPTIONS="--conf-server slurm-01:6817"\n'
    words = said.partition('"')[2].strip('"\n').split()
    command = ["chroot", SLURM, "slurmd", *words, "-C"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("NodeName=")
    command.insert(3, "--no-such")
    wrong = subprocess.run(command, capture_output=True, check=False)
    assert wrong.returncode != 0


@pytest.mark.parametrize("kind", JOINS)
def test_only_slurm_s_controller_gets_lines_of_guests_with_no_more_than_they_have(
    kind: str,
) -> None:
    plan = joined(kind)
    texts = {f.path: f.text for f in emit(plan).files if "/slurm/" in f.path}
    if kind != "slurm":
        assert not texts
        return
    rows = [line.split() for line in texts["hypervisor/slurm/nodes.conf"].splitlines()]
    lines = [dict(w.split("=") for w in row) for row in rows if row[0].startswith("NodeName=")]
    for line, machine in zip(lines, plan.virtual_machines, strict=True):
        assert line["NodeName"] == machine.name
        cpus = int(line["Sockets"]) * int(line["CoresPerSocket"]) * int(line["ThreadsPerCore"])
        assert cpus == sum(len(c.pins) for c in machine.cells)
        assert 0.9 < int(line["RealMemory"]) * MIB / machine.memory_bytes < 1
