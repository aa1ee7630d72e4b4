"""Stand-ins for the libraries of CUDA that PyTorch's wheel is linked to: names, and no code.

PyTorch then starts on a machine that has none of them and finds no GPU; whatever calls one of the
functions ends the process. The runtime (libcudart) is the real one: PyTorch registers its kernels
with it while it loads.
"""

from __future__ import annotations

import re
import subprocess
import tempfile
from pathlib import Path

REAL = "libcudart"
NEEDED = re.compile(r"NEEDED.*\[(lib(?:cu|nv|nccl)[^\]]*)\]")
VERSIONS = {"NVSHMEM": "libnvshmem_host.so"}  # where a version is not the library's name
# Functions without a version, by how their names begin.
PREFIXES = {
    "nccl": "libnccl.so",
    "cuFile": "libcufile.so",
    "curand": "libcurand.so",
    "cusparseLt": "libcusparseLt.so",
    "cu": "libcuda.so",
}


def stand_in(packages: Path) -> None:
    """Beside the real runtime, where PyTorch looks first."""
    libraries = sorted((packages / "torch" / "lib").glob("*.so"))
    needed = {n for lib in libraries for n in NEEDED.findall(_said("readelf", "-d", str(lib)))}
    functions: dict[str, dict[str, str]] = {n: {} for n in needed if not n.startswith(REAL)}
    for line in (x for lib in libraries for x in _said("nm", "-Du", str(lib)).splitlines()):
        name, _, version = line.split()[1].partition("@")
        owner = _owner(name, version.lstrip("@"), functions)
        if owner is not None:
            functions[owner][name] = version.lstrip("@")
    for library, names in functions.items():
        _make(next((packages / "nvidia").glob("cu*")) / "lib" / library, names)


def _owner(name: str, version: str, libraries: dict[str, dict[str, str]]) -> str | None:
    if version:
        wanted = VERSIONS.get(version, version)
    else:
        starts = (p for p in PREFIXES if re.match(f"{p}[A-Z]", name))
        wanted = PREFIXES.get(max(starts, key=len, default=""), "")
    return next((n for n in libraries if wanted and n.startswith(wanted)), None)


def _make(library: Path, names: dict[str, str]) -> None:
    version = next(filter(None, names.values()), None)
    with tempfile.TemporaryDirectory() as there:
        source, script = Path(there) / "names.c", Path(there) / "versions"
        lines = (f"void {name}(void) {{ abort(); }}\n" for name in sorted(names))
        source.write_text("void abort(void);\n" + "".join(lines), encoding="utf-8")
        script.write_text(f"{version} {{ global: *; }};\n", encoding="utf-8")
        versions = [f"-Wl,--version-script={script}"] if version else []
        shared = ["cc", "-shared", "-fPIC", "-w", f"-Wl,-soname,{library.name}"]
        _said(*shared, *versions, "-o", str(library), str(source))


def _said(*command: str) -> str:
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout
