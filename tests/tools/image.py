"""A stand-in image from this machine's own files: the running Python, a shell, HAProxy where it is
installed, and scripts that play engines. No registry is asked."""

from __future__ import annotations

import hashlib
import io
import json
import re
import shutil
import subprocess
import sys
import tarfile
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

FOLDERS = ("tmp", "home/jovyan", "usr/local/etc/haproxy")
USERS = "root:x:0:0::/:/bin/sh\njovyan:x:1000:100::/home/jovyan:/bin/sh\n"


@dataclass(frozen=True)
class Image:
    """What an image is called, and how its containers start where a pod does not say."""

    name: str
    entrypoint: tuple[str, ...] = ()
    user: str = ""
    environment: dict[str, str] = field(default_factory=dict)


def root(archive: Path, scripts: Mapping[str, str]) -> None:
    """The files of a container, as a tar; `scripts` are executables by their path."""
    base = Path(sys.base_prefix)
    library = base / "lib" / f"python{sys.version_info.major}.{sys.version_info.minor}"
    modules = [m for m in (library / "lib-dynload").iterdir() if "_tkinter" not in m.name]
    programs = {"usr/bin/python3": Path(sys.executable).resolve()}
    programs |= {f"bin/{name}": Path(shutil.which(name) or "") for name in ("sh", "chmod")}
    if proxy := shutil.which("haproxy"):
        programs["usr/local/bin/haproxy"] = Path(proxy)
    with tarfile.open(archive, "w") as tar:
        for path in sorted(_needed([*programs.values(), *modules])):
            tar.add(path.resolve(), str(path))
        for name, path in programs.items():
            tar.add(path.resolve(), name)
        tar.add(library, str(library), filter=_lean)
        for name, text in scripts.items():
            _put(tar, name, text.encode(), 0o755)
        _put(tar, "etc/passwd", USERS.encode())
        for name in FOLDERS:
            folder = tarfile.TarInfo(name)
            folder.type, folder.mode = tarfile.DIRTYPE, 0o1777
            tar.addfile(folder)


def packed(archive: Path, layer: Path, images: Sequence[Image]) -> None:
    """Images of one layer, in the form of `docker save`."""
    digest = hashlib.sha256(layer.read_bytes()).hexdigest()
    rows = []
    with tarfile.open(archive, "w") as tar:
        tar.add(layer, "layer.tar")
        for number, image in enumerate(images):
            text = json.dumps(_settings(image, digest)).encode()
            _put(tar, f"{number}.json", text)
            config = {"Config": f"{number}.json", "Layers": ["layer.tar"]}
            rows.append({**config, "RepoTags": [image.name]})
        _put(tar, "manifest.json", json.dumps(rows).encode())


def _settings(image: Image, digest: str) -> dict[str, Any]:
    environment = {"PATH": "/usr/local/bin:/usr/bin:/bin", **image.environment}
    return {
        "architecture": "amd64",
        "os": "linux",
        "config": {
            "Entrypoint": list(image.entrypoint),
            "Env": [f"{k}={v}" for k, v in environment.items()],
            "User": image.user,
            "Labels": {"name": image.name},  # images with one digest would be one image
        },
        "rootfs": {"type": "layers", "diff_ids": [f"sha256:{digest}"]},
    }


def _needed(programs: Iterable[Path]) -> set[Path]:
    """The shared libraries of `programs`."""
    said = subprocess.run(
        ["ldd", *map(str, programs)], capture_output=True, text=True, check=False
    ).stdout
    return {Path(p) for p in re.findall(r"(?:=> |^\s+)(/\S+) \(0x", said, re.MULTILINE)}


def _lean(entry: tarfile.TarInfo) -> tarfile.TarInfo | None:
    skipped = ("/test", "/site-packages", "/idlelib", "/__pycache__", "/ensurepip", "/config-")
    return None if any(part in entry.name for part in skipped) else entry


def _put(tar: tarfile.TarFile, name: str, data: bytes, mode: int = 0o644) -> None:
    entry = tarfile.TarInfo(name)
    entry.size, entry.mode = len(data), mode
    tar.addfile(entry, io.BytesIO(data))
