"""A machine whose pods run: the kubelet and containerd, under a control plane.

    with machine(folder, images) as node:
        node.kube.apply(…)

All of it is in namespaces of its own, where the control plane listens on their loopback: no port,
interface, setting or process of this machine is in its way, and it goes with them. Needs root,
`tests/tools/kubelet-setup` and `make kubelet`'s kubelet.
"""

from __future__ import annotations

import ctypes
import json
import os
import shutil
import subprocess
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from gpuplan.simulate import plane
from tests.tools import image
from tests.tools.engines import BIN
from tests.tools.engines import absent as unbuilt
from tests.tools.image import Image
from tests.tools.kube import PATIENCE_SECONDS, Kube, Refused, Tree

NAME = "machine-0"
ADDRESS, PODS = "10.1.0.1", "10.2.0.0/16"
PROGRAMS = ("containerd", "ctr", "runc", "ip", "unshare", "nsenter")
NEEDED = ("kubectl", "etcd", "kube-apiserver", "kube-controller-manager", "kube-scheduler")
PLUGINS = Path("/usr/lib/cni")
CGROUPS = Path("/sys/fs/cgroup")
NEWNET = 0x40000000
PAUSE = "localhost/gpuplan-pause:1"
# What the kubelet would set for the whole machine, it sets in copies.
SETTINGS = (
    "vm/overcommit_memory",
    "vm/panic_on_oom",
    "kernel/panic",
    "kernel/panic_on_oops",
    "kernel/keys/root_maxkeys",
    "kernel/keys/root_maxbytes",
)
START = """\
set -e
cd "$1"; shift
mount --make-rprivate /
for folder in /run/netns /run/containerd; do
    mkdir -p $folder
    mount -t tmpfs tmpfs $folder
done
while [ "$1" != -- ]; do
    cat "/proc/sys/$1" > "setting-$(basename "$1")"
    mount --bind "setting-$(basename "$1")" "/proc/sys/$1"
    shift
done
shift
containerd --config "$PWD/containerd.toml" > containerd.log 2>&1 &
while [ ! -S containerd.sock ]; do sleep 0.1; done
ctr --address "$PWD/containerd.sock" --namespace k8s.io images import images.tar > images.log 2>&1
exec "$@" > kubelet.log 2>&1
"""
CONTAINERD = """\
version = 2
root = "{folder}/containerd"
state = "{folder}/state"
[grpc]
  address = "{folder}/containerd.sock"
[plugins."io.containerd.grpc.v1.cri"]
  restrict_oom_score_adj = true
  disable_tcp_service = true
  disable_apparmor = true
  sandbox_image = "{pause}"
  [plugins."io.containerd.grpc.v1.cri".containerd]
  [plugins."io.containerd.grpc.v1.cri".cni]
    bin_dir = "{plugins}"
    conf_dir = "{folder}/cni"
"""


def absent() -> str | None:
    """What is missing here, or None."""
    if os.geteuid() != 0:
        return "needs root"
    missing = [p for p in PROGRAMS if shutil.which(p) is None]
    missing += [] if (PLUGINS / "bridge").exists() else ["the plugins of CNI"]
    if missing:
        return f"not installed: {', '.join(missing)} (see tests/tools/kubelet-setup)"
    if built := unbuilt((*NEEDED, "kubelet")):
        return f"{', '.join(built)} not built: `make kubelet`"
    return None


@dataclass(frozen=True)
class Machine:
    """A node of a control plane, and where its files are. `process` is what its namespaces and
    all that runs in them end with."""

    kube: Kube
    folder: Path
    process: subprocess.Popen[bytes]

    def equip(self, devices: dict[str, str], labels: dict[str, str]) -> None:
        """Labels, and devices as their plugin would offer them; those of before are gone."""
        had = self._node()
        gone = {k: None for k in had["metadata"]["labels"] if not k.startswith("kubernetes.io/")}
        own = {k: v for k, v in labels.items() if not k.startswith("kubernetes.io/")}
        self._patch({"metadata": {"labels": {**gone, **own}}})
        former = {k: None for k in had["status"]["capacity"] if "/" in k}
        self._patch({"status": {"capacity": {**former, **devices}}}, "--subresource=status")

    def _patch(self, tree: Tree, *how: str) -> None:
        self.kube.kubectl("patch", "node", NAME, "--type=merge", *how, "-p", json.dumps(tree))

    def _node(self) -> Tree:
        return dict(json.loads(self.kube.kubectl("get", "node", NAME, "-o", "json")))

    @property
    def ready(self) -> bool:
        with suppress(Refused):
            conditions = self._node()["status"].get("conditions", ())
            return any(c["type"] == "Ready" and c["status"] == "True" for c in conditions)
        return False

    def said(self, pod: Tree, container: str) -> list[str]:
        """What each start of a pod's container printed, in order."""
        metadata = pod["metadata"]
        name = f"{metadata['namespace']}_{metadata['name']}_{metadata['uid']}"
        files = sorted((self.folder / "logs" / name / container).glob("*.log"))
        return [_lines(file.read_text("utf-8")) for file in files]

    @property
    def log(self) -> str:
        files = ("images.log", "containerd.log", "kubelet.log")
        found = [self.folder / f for f in files if (self.folder / f).exists()]
        return "\n".join(f.read_text("utf-8", "replace")[-3000:] for f in found)


def _lines(text: str) -> str:
    """Without what the runtime writes before each: `TIME STREAM F `."""
    return "".join(line.split(" ", 3)[3] + "\n" for line in text.splitlines())


@contextmanager
def machine(folder: Path, scripts: dict[str, str], images: Sequence[Image]) -> Iterator[Machine]:
    """One in an empty `folder`, whose registries hold `images`, all of them with the same files.
    Raises `NotStarted`."""
    _prepare(folder, scripts, images)
    with ExitStack() as stack:
        stack.enter_context(_own_network())
        stack.enter_context(_own_cgroup(f"gpuplan-{os.getpid()}", folder))
        (folder / "plane").mkdir()
        found = plane.programs(("openssl", *NEEDED), BIN)
        control = stack.enter_context(plane.running(folder / "plane", found, full=True))
        process = subprocess.Popen(_command(folder, control), stdin=subprocess.DEVNULL)
        stack.callback(_end, process)
        node = Machine(Kube(control), folder, process)
        deadline = time.monotonic() + PATIENCE_SECONDS
        while not node.ready:
            if process.poll() is not None or time.monotonic() > deadline:
                raise plane.NotStarted(node.log)
            time.sleep(0.3)
        yield node


def _end(process: subprocess.Popen[bytes]) -> None:
    process.kill()  # and with it all processes of its namespace
    process.wait()


def _command(folder: Path, control: plane.ControlPlane) -> list[str]:
    spaces = ("--mount", "--pid", "--fork", "--kill-child", "--mount-proc")
    kubelet = (
        str(BIN / "kubelet"),
        f"--config={folder / 'kubelet.json'}",
        f"--kubeconfig={control.kubeconfig}",
        f"--root-dir={folder / 'kubelet'}",
        f"--cert-dir={folder / 'certificates'}",
        f"--hostname-override={NAME}",
        f"--node-ip={ADDRESS}",
    )
    return ["unshare", *spaces, "sh", "-c", START, "sh", str(folder), *SETTINGS, "--", *kubelet]


def _prepare(folder: Path, scripts: dict[str, str], images: Sequence[Image]) -> None:
    image.root(folder / "layer.tar", scripts)
    pause = Image(PAUSE, ("python3", "-c", "import signal; signal.pause()"))
    image.packed(folder / "images.tar", folder / "layer.tar", [pause, *images])
    text = CONTAINERD.format(folder=folder, pause=PAUSE, plugins=PLUGINS)
    (folder / "containerd.toml").write_text(text, encoding="utf-8")
    ranges = [[{"subnet": PODS}]]
    addresses = {"type": "host-local", "dataDir": str(folder / "addresses"), "ranges": ranges}
    bridge = {"type": "bridge", "bridge": "pods0", "isGateway": True}
    bridge["ipam"] = {**addresses, "routes": [{"dst": "0.0.0.0/0"}]}
    network = {"cniVersion": "0.4.0", "name": "pods", "plugins": [bridge]}
    (folder / "cni").mkdir()
    (folder / "cni" / "pods.conflist").write_text(json.dumps(network), encoding="utf-8")


def _settings(folder: Path, cgroup: str) -> dict[str, Any]:
    """Of the kubelet, for one machine that others use too: it evicts nobody for their sake."""
    nothing = dict.fromkeys(("memory.available", "nodefs.available", "imagefs.available"), "0%")
    return {
        "apiVersion": "kubelet.config.k8s.io/v1beta1",
        "kind": "KubeletConfiguration",
        "address": ADDRESS,
        "authentication": {"anonymous": {"enabled": True}, "webhook": {"enabled": False}},
        "authorization": {"mode": "AlwaysAllow"},
        "cgroupDriver": "cgroupfs",
        "cgroupRoot": f"/{cgroup}",
        "clusterDNS": ["10.0.0.10"],
        "clusterDomain": "cluster.local",
        "containerRuntimeEndpoint": f"unix://{folder}/containerd.sock",
        "evictionHard": nothing,
        "failCgroupV1": False,
        "failSwapOn": False,
        "featureGates": {"KubeletInUserNamespace": True},  # what it may not set, it leaves
        "healthzPort": 0,
        "imageGCHighThresholdPercent": 100,
        "podLogsDir": str(folder / "logs"),
        "resolvConf": "",
    }


@contextmanager
def _own_network() -> Iterator[None]:
    """This thread, and what it starts, in a network namespace of its own."""
    library = ctypes.CDLL(None, use_errno=True)
    former = os.open("/proc/thread-self/ns/net", os.O_RDONLY)
    if library.unshare(NEWNET):
        raise OSError(ctypes.get_errno(), "no network namespace can be made")
    try:
        for words in (
            "link set lo up",
            "link add machine type bridge",
            f"addr add {ADDRESS}/24 dev machine",
            "link set machine up",
            "route add default dev machine",
        ):
            subprocess.run(["ip", *words.split()], check=True)
        yield
    finally:
        library.setns(former, NEWNET)
        os.close(former)


@contextmanager
def _own_cgroup(name: str, folder: Path) -> Iterator[None]:
    """A cgroup of each hierarchy, below which the kubelet makes those of pods."""
    unified = (CGROUPS / "cgroup.controllers").exists()
    tops = [CGROUPS] if unified else [p for p in CGROUPS.iterdir() if p.is_dir()]
    for top in tops:
        (top / name).mkdir()
        for file in ("cpuset.cpus", "cpuset.mems"):
            if not unified and (top / file).exists():
                (top / name / file).write_text((top / file).read_text())
    settings = json.dumps(_settings(folder, name), indent=2)
    (folder / "kubelet.json").write_text(settings, encoding="utf-8")
    try:
        yield
    finally:
        for top in tops:
            for path, _, _ in os.walk(top / name, topdown=False):
                _removed(Path(path))


def _removed(cgroup: Path) -> None:
    """Gone, as soon as its last process is."""
    for _ in range(50):
        try:
            cgroup.rmdir()
        except OSError:
            time.sleep(0.1)
        else:
            return
    raise OSError(f"{cgroup} has processes")
