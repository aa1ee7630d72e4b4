"""A cluster that kubeadm set up, and a guest that joins it: its own files and scripts, the real
kubeadm, kubelet and containerd.

    with cluster(folder) as kube, guest(folder, files):
        kube.kubectl("get", "node", …)

kubeadm makes the cluster's certificates, settings and roles; its control plane runs without
containers. The guest is this machine's root below an overlay, in namespaces of its own; what
kubeadm asks of systemd, starting the kubelet, a script does with the words of kubeadm's own unit.
Needs root, `tests/tools/kubelet-setup` and `make kubelet`'s programs.
"""

from __future__ import annotations

import hashlib
import json
import subprocess
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from gpuplan.simulate.plane import ControlPlane, NotStarted
from tests.tools import kubelet
from tests.tools.engines import BIN
from tests.tools.engines import absent as unbuilt
from tests.tools.kube import PATIENCE_SECONDS, Kube
from tests.tools.kubelet import ADDRESS

TOKEN = "abcdef.0123456789abcdef"
SERVER = f"{ADDRESS}:6443"
QUICK = "timeouts: {discovery: 20s, tlsBootstrap: 20s}\n"  # instead of five minutes each
CONFIG = """\
apiVersion: kubeadm.k8s.io/v1beta4
kind: InitConfiguration
bootstrapTokens: [{{token: {token}}}]
localAPIEndpoint: {{advertiseAddress: {address}}}
nodeRegistration: {{name: control}}
---
apiVersion: kubeadm.k8s.io/v1beta4
kind: ClusterConfiguration
kubernetesVersion: {version}
certificatesDir: {folder}/pki
controlPlaneEndpoint: {server}
---
"""
API = (
    *("kube-apiserver", "--advertise-address={address}", "--secure-port=6443"),
    *("--etcd-servers=http://127.0.0.1:2379", "--client-ca-file={pki}/ca.crt"),
    *("--tls-cert-file={pki}/apiserver.crt", "--tls-private-key-file={pki}/apiserver.key"),
    "--service-account-issuer=https://kubernetes.default.svc.cluster.local",
    *("--service-account-key-file={pki}/sa.pub", "--service-account-signing-key-file={pki}/sa.key"),
    *("--service-cluster-ip-range=10.96.0.0/12", "--authorization-mode=Node,RBAC"),
    *("--enable-admission-plugins=NodeRestriction", "--enable-bootstrap-token-auth=true"),
)
CONTROLLERS = (
    *("kube-controller-manager", "--kubeconfig={folder}/controller-manager.conf"),
    *("--cluster-signing-cert-file={pki}/ca.crt", "--cluster-signing-key-file={pki}/ca.key"),
    *("--root-ca-file={pki}/ca.crt", "--service-account-private-key-file={pki}/sa.key"),
    *("--use-service-account-credentials", "--controllers=*,bootstrapsigner,tokencleaner"),
)
# The guest's own kernel has what these look for; what this machine lacks is not the guest's fault.
MACHINE_S = (
    "SystemVerification,Swap,FileContent--proc-sys-net-bridge-bridge-nf-call-iptables,"
    "FileContent--proc-sys-net-ipv4-ip_forward,Hostname,Service-Kubelet,Port-10250,NumCPU,Mem"
)
START = """\
set -e
cd "$1"
mount --make-rprivate /
mkdir -p disk root
mount -t tmpfs tmpfs disk
mkdir disk/upper disk/work
mount -t overlay overlay root -o "lowerdir=/,upperdir=disk/upper,workdir=disk/work"
for folder in dev sys; do mount --rbind /$folder root/$folder; done
mount -t proc proc root/proc
for folder in run var/lib/kubelet var/lib/containerd tmp; do
    mkdir -p root/$folder
    mount -t tmpfs tmpfs root/$folder
done
rm -rf root/etc/kubernetes
mkdir -p root/etc/kubernetes/manifests  # as the package has it
cp -a guest/. root/
mkdir -p root/run/credentials root/opt/cni/bin root/etc/cni/net.d
cp cni/* root/etc/cni/net.d/
printf %s "$2" >root/run/credentials/join-token
for name in kubeadm kubelet; do cp "bin/$name" root/usr/local/bin/; done
cp bin/systemctl root/usr/local/sbin/
for name in $3; do
    cat "/proc/sys/$name" >"root/tmp/$(basename "$name")"
    mount --bind "root/tmp/$(basename "$name")" "root/proc/sys/$name"
done
exec chroot root sh -ec '
export PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin
mkdir -p /run/containerd
containerd --config /containerd.toml >/containerd.log 2>&1 &
while [ ! -S /run/containerd/containerd.sock ]; do sleep 0.1; done
ctr --namespace k8s.io images import /images.tar >/dev/null
export CREDENTIALS_DIRECTORY=/run/credentials
sh /usr/local/sbin/gpuplan-join && echo joined
exec sleep infinity'
"""
# kubeadm's drop-in of kubelet.service (kubernetes/release, cmd/krel/templates/latest/kubeadm).
SYSTEMCTL = """\
#!/bin/bash
echo "systemctl $*" >>/proc/1/fd/1
case "$*" in
"start kubelet"* | "restart kubelet"*)
    . /var/lib/kubelet/kubeadm-flags.env
    setsid kubelet --bootstrap-kubeconfig=/etc/kubernetes/bootstrap-kubelet.conf \\
        --kubeconfig=/etc/kubernetes/kubelet.conf --config=/var/lib/kubelet/config.yaml \\
        $KUBELET_KUBEADM_ARGS >>/proc/1/fd/1 2>&1 &
    ;;
esac
"""


def absent() -> str | None:
    """What is missing here, or None."""
    built = unbuilt(("kubeadm",))
    return kubelet.absent() or (f"{', '.join(built)} not built: `make kubelet`" if built else None)


def _kubeadm(*words: str) -> None:
    done = subprocess.run([BIN / "kubeadm", *words], capture_output=True, text=True, check=False)
    if done.returncode:
        raise NotStarted(f"kubeadm {' '.join(words)}\n{done.stdout}{done.stderr}")


def authority(folder: Path) -> str:
    """The hash of the cluster's certificate, as `kubeadm token create` prints it."""
    key = ["openssl", "x509", "-pubkey", "-noout", "-in", str(folder / "pki/ca.crt")]
    pem = subprocess.run(key, capture_output=True, check=True).stdout
    der = ["openssl", "pkey", "-pubin", "-outform", "DER"]
    found = subprocess.run(der, input=pem, capture_output=True, check=True).stdout
    return f"sha256:{hashlib.sha256(found).hexdigest()}"


@contextmanager
def cluster(folder: Path, version: str) -> Iterator[Kube]:
    """A control plane of `version` in an empty `folder`, in the network that this thread has from
    then on. Raises `NotStarted`."""
    with ExitStack() as stack:
        stack.enter_context(kubelet._own_network())
        stack.enter_context(kubelet._own_cgroup(f"gpuplan-join-{folder.name}", folder))
        settings = json.loads((folder / "kubelet.json").read_text())
        own = (
            "address",
            "authentication",
            "authorization",
            "podLogsDir",
            "containerRuntimeEndpoint",
        )
        text = CONFIG.format(
            token=TOKEN, address=ADDRESS, version=f"v{version}", folder=folder, server=SERVER
        )
        kept = {k: v for k, v in settings.items() if k not in own} | {"healthzPort": 10248}
        kept["authentication"] = {"x509": {"clientCAFile": "/etc/kubernetes/pki/ca.crt"}}
        config = folder / "kubeadm.yaml"
        config.write_text(text + json.dumps(kept), "utf-8")
        _kubeadm("init", "phase", "certs", "all", f"--config={config}")
        for name in ("super-admin", "controller-manager"):
            here = f"--kubeconfig-dir={folder}"
            _kubeadm("init", "phase", "kubeconfig", name, f"--config={config}", here)
        pki = folder / "pki"
        for words in (("etcd", f"--data-dir={folder}/etcd"), API, CONTROLLERS):
            given = [w.format(address=ADDRESS, pki=pki, folder=folder) for w in words]
            log = stack.enter_context((folder / f"{given[0]}.log").open("wb"))
            process = subprocess.Popen(
                [BIN / given[0], *given[1:]], stdout=log, stderr=log, cwd=folder
            )
            stack.callback(kubelet._end, process)
        admin = folder / "super-admin.conf"
        kube = Kube(ControlPlane(admin, "", BIN / "kubectl"))
        _until(lambda: subprocess.run(
            [BIN / "kubectl", f"--kubeconfig={admin}", "get", "--raw=/readyz"],
            capture_output=True, check=False,
        ).returncode == 0, lambda: (folder / "kube-apiserver.log").read_text()[-3000:])  # fmt: skip
        for phase in (("upload-config", "all"), ("bootstrap-token",)):
            _kubeadm("init", "phase", *phase, f"--config={config}", f"--kubeconfig={admin}")
        yield kube


@contextmanager
def guest(folder: Path, files: dict[str, str], token: str = TOKEN) -> Iterator[Path]:
    """A machine with `files`, by their paths there, whose join has begun: a log of what it said."""
    for path, text in files.items():
        here = folder / "guest" / path.lstrip("/")
        here.parent.mkdir(parents=True, exist_ok=True)
        here.write_text(text, "utf-8")
    kubelet._prepare(folder, {}, ())
    programs = folder / "bin"
    programs.mkdir()
    real = BIN / "kubeadm"
    (programs / "kubelet").symlink_to(BIN / "kubelet")
    (programs / "systemctl").write_text(SYSTEMCTL)
    (programs / "kubeadm").write_text(
        f'#!/bin/sh\nexec {real} "$@" --ignore-preflight-errors={MACHINE_S}\n'
    )
    for name in ("systemctl", "kubeadm"):
        (programs / name).chmod(0o755)
    config = (folder / "containerd.toml").read_text()
    config = config.replace(f"{folder}/containerd.sock", "/run/containerd/containerd.sock")
    config = config.replace(f"{folder}/containerd", "/var/lib/containerd")
    config = config.replace(f"{folder}/state", "/run/containerd/state")
    config = config.replace(f"{folder}/cni", "/etc/cni/net.d")
    (folder / "guest/containerd.toml").write_text(config)
    (folder / "images.tar").rename(folder / "guest/images.tar")
    spaces = ("--mount", "--pid", "--fork", "--kill-child", "--uts")
    command = ["unshare", *spaces, "sh", "-c", START, "sh", str(folder), token]
    with (folder / "guest.log").open("wb") as log:
        process = subprocess.Popen(
            [*command, " ".join(kubelet.SETTINGS)], stdin=subprocess.DEVNULL, stdout=log, stderr=log
        )
    try:
        yield folder / "guest.log"
    finally:
        kubelet._end(process)


def _until(done: object, log: object) -> None:
    deadline = time.monotonic() + PATIENCE_SECONDS
    assert callable(done)
    assert callable(log)
    while not done():
        if time.monotonic() > deadline:
            raise NotStarted(log())
        time.sleep(0.3)
