"""Every reader of strangers' files, as a verb that is given one: what it reads, and good examples.

A reader is tried inside this process, by the command line's own `main`, so that messages are
printed too. Its file lies in a folder with what the verb needs beside it.
"""

from __future__ import annotations

import re
import shutil
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[2]
KEPT = Path(__file__).with_name("corpus")
LARGEST_SEED = 40_000  # bytes: longer examples are cut by lines


@dataclass(frozen=True)
class Reader:
    """`file` is replaced by each input; `verbs` are run one after the other in its folder. `seeds`
    are patterns of good files in the repository."""

    file: str
    verbs: tuple[tuple[str, ...], ...]
    seeds: tuple[str, ...]


FLEET = ("--inventory", "fleet.yaml")
STACK = (("explain", "chat"), ("check", "chat"), ("diff", "chat", "whole"))
SLURM = (("check", "slurm"), ("diff", "slurm", "cluster"))
BOX = (("check", "box"), ("diff", "box", "boxed"))
INIT = (
    *("init", "--model", "begun.json", "--model-name", "own/model"),
    *("--target", "kubernetes", "--task", "inference"),
    *("--requests-per-second", "1", "--input-tokens", "500", "--output-tokens", "200"),
)
SAMPLES = "tests/inventory/inventory_samples"
READERS = {
    "manifest": Reader(
        "manifest.yaml", (("compile", "manifest.yaml", "--plan-only"),), ("examples/*.yaml",)
    ),
    "inventory": Reader(
        "rack.yaml", (("inventory", "show", "rack.yaml"),), ("examples/inventories/*.yaml",)
    ),
    "requests (YAML)": Reader(
        "list.yaml", (("pack", "list.yaml", *FLEET),), ("examples/requests/*.yaml",)
    ),
    "requests (CSV)": Reader("list.csv", (("pack", "list.csv", *FLEET),), ()),
    "requests (JSON)": Reader("list.json", (("pack", "list.json", *FLEET),), ()),
    "result to keep": Reader(
        "kept.json", (("pack", "list.yaml", *FLEET, "--keep", "kept.json"),), ()
    ),
    "config.json": Reader("config.json", (("compile", "own.yaml", "--plan-only"),), ()),
    "tools' outputs": Reader(
        "output.txt", (("inventory", "import", "output.txt"),), (f"{SAMPLES}/texts/*",)
    ),
    "archive": Reader("host.tar.gz", (("inventory", "import", "host.tar.gz"),), ()),
    "archive (zip)": Reader("host.zip", (("inventory", "import", "host.zip"),), ()),
    "plan.yaml": Reader("chat/plan.yaml", STACK, ("stacks/*/plan.yaml",)),
    "evidence.yaml": Reader(
        "images/evidence.yaml",  # the shortest
        (("explain", "images", "gpu_count"), ("check", "images")),
        ("stacks/images/evidence.yaml",),
    ),
    "checksums.txt": Reader(
        "chat/checksums.txt", (("check", "chat"),), ("stacks/chat/checksums.txt",)
    ),
    "program": Reader("chat/__main__.py", (("check", "chat"),), ("stacks/chat/__main__.py",)),
    "values": Reader("chat/Pulumi.yaml", (("check", "chat"),), ("stacks/chat/*.yaml",)),
    "slurm.conf": Reader("slurm/etc/slurm.conf", SLURM, ("stacks/slurm/etc/slurm.conf",)),
    "sbatch": Reader("slurm/jobs/full-70b.sbatch", SLURM, ("stacks/slurm/jobs/*.sbatch",)),
    "compose.yaml": Reader(
        "box/compose.yaml",
        BOX,
        ("stacks/box/compose.yaml",),
    ),
    "price list": Reader(
        "prices.csv", (("catalog", "update", "prices.csv", "--as-of", "2026-11-23"),), ()
    ),
    "measurements": Reader("points.csv", (("accuracy", "points.csv"),), ()),
    "anchors": Reader(
        "anchors/speed_alone.json",
        (("accuracy", "good.csv", "--anchors", "anchors"),),
        ("gpuplan/sizing/data/anchors/denoising_latency.json",),
    ),
    "waivers": Reader("waivers.yaml", (("check", "chat", "--waivers", "waivers.yaml"),), ()),
    "policies": Reader(
        "pack.yaml", (("check", "chat", "--config", "pack.yaml"),), ("policies/builtin.yaml",)
    ),
    "costs": Reader(
        "costs.yaml", (("cost", "chat", "--costs", "costs.yaml"),), ("examples/costs/*.yaml",)
    ),
    "regions": Reader(
        "regions.yaml", (("compile", "regions.yaml", "--plan-only"),), ("examples/regions.yaml",)
    ),
    "result to draw": Reader(
        "drawn.json", (("inventory", "show", "fleet.yaml", "--pack", "drawn.json"),), ()
    ),
    "allocations": Reader(
        "rack.yaml",
        (
            ("inventory", "allocate", "rack.yaml", "slurm"),
            ("inventory", "release", "rack.yaml", "slurm"),
        ),
        ("examples/inventories/*.yaml",),
    ),
    "quadlet": Reader(
        "box/quadlet/box-assistant-0.container", BOX, ("stacks/box/quadlet/*.container",)
    ),
    "assign.sh": Reader("box/assign.sh", BOX, ("stacks/box/assign.sh",)),
    "custom.py": Reader("chat/custom.py", (("check", "chat"),), ("stacks/*/custom.py",)),
    "cloud program": Reader(
        "west/cluster.py", (("check", "west"),), ("stacks/regions-europe-west1/cluster.py",)
    ),
    "earlier settings": Reader(
        "stacks/images/Pulumi.dev.yaml",
        (("compile", "images.yaml", "-o", "stacks"),),
        ("stacks/images/Pulumi.dev.yaml",),
    ),
    "earlier lock": Reader(
        "stacks/images/gpuplan.lock",
        (("compile", "images.yaml", "-o", "stacks", "--force"),),
        ("stacks/images/gpuplan.lock",),
    ),
    "model of init": Reader("begun.json", (INIT,), ()),
    "trace": Reader(
        "trace.csv", (("replay", "chat", "--trace", "trace.csv", "--requests", "100"),), ()
    ),
}
OWN_MODEL = """\
apiVersion: gpuplan.dev/v1
name: own
platform: {target: kubernetes, gpus: [h100-sxm-80gb]}
workloads:
- name: chat
  task: inference
  model: {name: own/model, path: config.json}
  load: {requests_per_second: 1, input_tokens: 500, output_tokens: 200}
"""


def furnish(folder: Path) -> None:
    """What verbs need beside the file that is tried."""
    for name in ("chat", "whole"):
        shutil.copytree(ROOT / "stacks" / "chat", folder / name)
    for name in ("images", "slurm", "box"):
        shutil.copytree(ROOT / "stacks" / name, folder / name)
    shutil.copytree(ROOT / "stacks" / "slurm", folder / "cluster")
    shutil.copytree(ROOT / "stacks" / "box", folder / "boxed")
    shutil.copytree(ROOT / "stacks" / "regions-europe-west1", folder / "west")
    shutil.copytree(ROOT / "examples" / "inventories", folder / "inventories")
    shutil.copy(ROOT / "examples" / "inventories" / "fleet.yaml", folder / "fleet.yaml")
    shutil.copy(ROOT / "examples" / "requests" / "teams.yaml", folder / "list.yaml")
    shutil.copy(KEPT / "measurements" / "good.csv", folder / "good.csv")
    (folder / "own.yaml").write_text(OWN_MODEL, encoding="utf-8")
    shutil.copy(KEPT / "config.json" / "Llama-3.1-8B-Instruct.json", folder / "config.json")
    shutil.copytree(ROOT / "stacks" / "images", folder / "stacks" / "images")
    shutil.copy(ROOT / "examples" / "images.yaml", folder / "images.yaml")
    (folder / "anchors").mkdir()


def folder_of(name: str) -> str:
    return re.sub(r"[^\w.]+", "-", name).strip("-")


def kept(name: str) -> list[Path]:
    """The corpus that is checked in for a reader."""
    folder = KEPT / folder_of(name)
    return sorted(p for p in folder.iterdir() if p.is_file()) if folder.is_dir() else []


def seeds(name: str) -> list[bytes]:
    """Good examples, and what earlier runs found."""
    files = [p for pattern in READERS[name].seeds for p in sorted(ROOT.glob(pattern))]
    texts = [p.read_bytes() for p in (*files, *kept(name)) if p.is_file()]
    return [t if len(t) <= LARGEST_SEED else _shortened(t) for t in texts] or [b""]


def _shortened(text: bytes) -> bytes:
    """Its first lines; an archive stays as it is."""
    if b"\0" in text:
        return text
    return text[:LARGEST_SEED].rpartition(b"\n")[0]
