"""What a guest fetches at its first start, from one server that every name leads to: NVIDIA's
package repositories, a Debian one, a container registry. The packages and the image are stand-ins;
keys, signatures, indices and protocols are real, and each repository also has a newer version than
the one that the stack pins.

    python mirror.py FOLDER ADDRESS CERTIFICATE KEY     serves FOLDER/HOST/PATH on ports 80 and 443
"""

from __future__ import annotations

import hashlib
import http.server
import json
import shutil
import ssl
import subprocess
import sys
import tarfile
import threading
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import unquote

NEWER = "999.0-1"
SMI = """\
#!/bin/sh
# One GPU for each device of a guest that stands for one.
count=$(lspci -n -d 1b36:0005 | wc -l)
echo "nvidia-smi $*" >>/var/log/stand-in
case "$*" in
*--query-gpu*) for i in $(seq "$count"); do echo "GPU-stand-in-$i"; done ;;
esac
"""
# The driver, and with it what the card's driver would have made.
MODULE = (
    "install nvidia mkdir -p /dev/infiniband && "
    "(test -e /dev/infiniband/uverbs0 || mknod /dev/infiniband/uverbs0 c 1 3); "
    "for n in $(seq 0 $(($(lspci -n -d 1b36:0005 | wc -l) - 1))); do "
    "test -e /dev/nvidia$n || mknod /dev/nvidia$n c 1 3; done\n"
)
CTK = """\
#!/bin/sh
# nvidia-ctk cdi generate --output=FILE
for word; do case $word in --output=*) file=${word#*=} ;; esac; done
mkdir -p "${file%/*}"
cat >"$file" <<END
cdiVersion: "0.6.0"
kind: nvidia.com/gpu
devices:
- name: all
  containerEdits:
    deviceNodes: [{path: /dev/nvidia0, hostPath: /dev/null}]
END
"""
# An engine that answers, and shows what it was given. It holds its port as any other does.
ENGINE = """\
#!/bin/sh
port=9400
for word; do case $word in --port=*) port=${word#*=} ;; esac; done
mkdir -p /www
echo ok >/www/health
printf '%s\\n' "$@" >/www/arguments
env >/www/environment
ls /dev >/www/devices
date +%s.%N >/www/started
for folder in /models /scratch; do
    test ! -d $folder || { echo "$port" >>$folder/starts; cp $folder/starts /www/${folder#/}; }
done
exec httpd -f -p "$port" -h /www
"""


@dataclass
class Package:
    name: str
    versions: tuple[str, ...]
    files: dict[str, str]


def build(folder: Path, driver: str, toolkit: str, cuda: str, real: Path) -> None:
    """The repositories below `folder`, with packages of the versions `driver` and `toolkit`;
    `cuda` is the folder of the system's CUDA repository, `real` has packages of Debian's own."""
    home = folder / "gnupg"
    home.mkdir(parents=True, mode=0o700)
    _gpg(home, "--passphrase", "", "--quick-gen-key", "stand-in", "rsa2048", "sign", "never")
    smi = {"usr/bin/nvidia-smi": SMI, "etc/modprobe.d/stand-in.conf": MODULE}
    drivers = Package("nvidia-open", (f"{driver}-1", NEWER), smi)
    kit = Package("nvidia-container-toolkit", (f"{toolkit}-1", NEWER), {"usr/bin/nvidia-ctk": CTK})
    headers = Package("linux-headers-amd64", ("1",), {})
    keyring, armoured = _gpg(home, "--export"), _gpg(home, "--armor", "--export")

    nvidia = folder / "nvidia.github.io/libnvidia-container"
    _repository(nvidia / "stable/deb/amd64", [kit], home)
    (nvidia / "gpgkey").write_bytes(armoured)

    site = f"developer.download.nvidia.com/compute/cuda/repos/{cuda}"
    key = "usr/share/keyrings/cuda-archive-keyring.gpg"
    source = f"deb [signed-by=/{key}] https://{site}/ /\n"
    _repository(folder / site, [drivers], home)
    names = {key: keyring, "etc/apt/sources.list.d/cuda.list": source}
    _deb(folder / site, "cuda-keyring", "1.1-1", names)
    _repository(folder / "deb.debian.org/debian", [headers], home, sorted(real.glob("*.deb")))


def _gpg(home: Path, *words: str) -> bytes:
    command = ["gpg", "--homedir", str(home), "--batch", "--yes", "--pinentry-mode", "loopback"]
    return subprocess.run([*command, *words], check=True, capture_output=True).stdout


def _repository(
    folder: Path, packages: list[Package], home: Path, real: Iterable[Path] = ()
) -> None:
    """A repository of one folder, signed."""
    folder.mkdir(parents=True)
    debs = [Path(shutil.copy(deb, folder)) for deb in real]
    for package in packages:
        debs += [_deb(folder, package.name, v, dict(package.files)) for v in package.versions]
    index = ""
    for deb in debs:
        fields = subprocess.run(["dpkg-deb", "-f", deb], check=True, capture_output=True)
        index += f"{fields.stdout.decode()}Filename: ./{deb.name}\nSize: {deb.stat().st_size}\n"
        index += f"SHA256: {hashlib.sha256(deb.read_bytes()).hexdigest()}\n\n"
    (folder / "Packages").write_text(index, "utf-8")
    digest = hashlib.sha256(index.encode()).hexdigest()
    release = folder / "Release"
    release.write_text(
        "Origin: stand-in\nDate: Thu, 01 Jan 2026 00:00:00 UTC\nSHA256:\n"
        f" {digest} {len(index.encode())} Packages\n",
        "utf-8",
    )
    _gpg(home, "--clearsign", "--output", str(folder / "InRelease"), str(release))


def _deb(folder: Path, name: str, version: str, files: dict[str, str | bytes]) -> Path:
    tree = folder / "tree"
    control = tree / "DEBIAN/control"
    control.parent.mkdir(parents=True)
    control.write_text(
        f"Package: {name}\nVersion: {version}\nArchitecture: all\nMaintainer: stand-in <a@b.c>\n"
        "Description: a stand-in\n"
    )
    for path, content in files.items():
        target = tree / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(content if isinstance(content, bytes) else content.encode())
        target.chmod(0o755 if "/bin/" in path else 0o644)
    deb = folder / f"{name}_{version}_all.deb"
    command = ["dpkg-deb", "--root-owner-group", "-Zgzip", "--build", tree, deb]
    subprocess.run(command, check=True, capture_output=True)
    shutil.rmtree(tree)
    return deb


def image(folder: Path) -> None:
    """The image that the registry has under any name: busybox, with an engine made of it."""
    root = folder / "rootfs"
    (root / "bin").mkdir(parents=True)
    (root / "tmp").mkdir()
    shutil.copy("/bin/busybox", root / "bin/busybox")
    listed = subprocess.run(["/bin/busybox", "--list"], check=True, capture_output=True, text=True)
    for name in sorted({*listed.stdout.split(), "sh"} - {"busybox"}):
        (root / "bin" / name).symlink_to("busybox")
    (root / "bin/vllm").write_text(ENGINE)
    (root / "bin/vllm").chmod(0o755)
    layer = folder / "layer.tar"
    with tarfile.open(layer, "w") as tar:
        tar.add(root, arcname=".")
    shutil.rmtree(root)
    kind = "application/vnd.oci.image"
    config = {
        "architecture": "amd64",
        "os": "linux",
        "config": {"Entrypoint": ["/bin/vllm"], "Env": ["PATH=/bin"]},
        "rootfs": {"type": "layers", "diff_ids": [_digest(layer.read_bytes())]},
    }
    manifest = {
        "schemaVersion": 2,
        "mediaType": f"{kind}.manifest.v1+json",
        "config": _blob(folder, f"{kind}.config.v1+json", json.dumps(config).encode()),
        "layers": [_blob(folder, f"{kind}.layer.v1.tar", layer.read_bytes())],
    }
    layer.unlink()
    (folder / "manifest.json").write_text(json.dumps(manifest))


def _digest(content: bytes) -> str:
    return f"sha256:{hashlib.sha256(content).hexdigest()}"


def _blob(folder: Path, kind: str, content: bytes) -> dict[str, str | int]:
    digest = _digest(content)
    (folder / digest).write_bytes(content)
    return {"mediaType": kind, "digest": digest, "size": len(content)}


class Handler(http.server.BaseHTTPRequestHandler):
    root: Path
    protocol_version = "HTTP/1.1"

    def do_HEAD(self) -> None:
        self.do_GET()

    def do_GET(self) -> None:
        host, path = (
            self.headers.get("Host", "").partition(":")[0],
            unquote(self.path.partition("?")[0]),
        )
        kind = "application/octet-stream"
        if not path.startswith("/v2/"):
            file = self.root / host / path.lstrip("/").replace("./", "")
        elif "/manifests/" in path:
            file, kind = self.root / "manifest.json", "application/vnd.oci.image.manifest.v1+json"
        else:
            file = self.root / path.rpartition("/")[2]
        found = file.is_file()
        content = file.read_bytes() if found else b"{}"
        print(200 if found else 404, host, path, flush=True)
        self.send_response(200 if found or path == "/v2/" else 404)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(content)))
        if "/manifests/" in path:
            self.send_header("Docker-Content-Digest", _digest(content))
        self.end_headers()
        if self.command == "GET":
            self.wfile.write(content)

    def log_message(self, *_: object) -> None:
        """Said above."""


def main(folder: str, address: str, certificate: str, key: str) -> None:
    Handler.root = Path(folder)
    plain = http.server.ThreadingHTTPServer((address, 80), Handler)
    secure = http.server.ThreadingHTTPServer((address, 443), Handler)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate, key)
    secure.socket = context.wrap_socket(secure.socket, server_side=True)
    threading.Thread(target=plain.serve_forever, daemon=True).start()
    secure.serve_forever()


if __name__ == "__main__":
    main(*sys.argv[1:])
