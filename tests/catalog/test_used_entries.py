"""What a stack was made from: the entries of the catalogue that it uses, and no other."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from gpuplan.catalog.load import COMPILED, Catalog
from gpuplan.manifest.load import load_manifests
from gpuplan.pipeline import Compiled, compile_manifest
from gpuplan.render import yaml

ROOT = Path(__file__).parents[2]
TREE = json.loads(COMPILED.read_text(encoding="utf-8"))
CHAT = (ROOT / "examples/chat.yaml").read_text(encoding="utf-8")
Change = Callable[[dict[str, Any]], object]


def compiled(folder: Path, change: Change = lambda tree: None, text: str = CHAT) -> Compiled:
    tree = copy.deepcopy(TREE)
    change(tree)
    path = folder / "chat.yaml"
    path.write_text(text, encoding="utf-8")
    reading = load_manifests([path])
    return compile_manifest(reading.manifests[0], reading.sources, Catalog(tree))


def entries(stack: Compiled) -> dict[str, str]:
    return {entry.name: entry.sha256 for entry in stack.plan.provenance.catalog}


def listing(tree: dict[str, Any], file: str, instance: str) -> dict[str, Any]:
    rows = tree["prices"][file]["listings"]
    return next(row for row in rows if row["instance"] == instance)


def dearer(tree: dict[str, Any]) -> None:
    """Another listing of an L4, which nobody would choose."""
    row = listing(tree, "gcp", "g2-standard-8")
    tree["prices"]["gcp"]["listings"].append(row | {"instance": "dear", "usd_per_hour": "99"})


UNUSED: list[Change] = [
    lambda tree: tree["gpus"].update(new=tree["gpus"]["l4"]),
    lambda tree: tree["gpus"].pop("rtx-2000-ada"),
    lambda tree: tree["gpus"]["b300-sxm-288gb"]["facts"]["power"].__setitem__(0, 1),
    lambda tree: tree["gpus"]["l4"]["notes"].append("Read this."),
    # Of the H100, which stands for kernels that the others lack, only what was measured counts.
    lambda tree: tree["gpus"]["h100-sxm-80gb"].update(mig=[]),
    lambda tree: tree["engines"]["sglang"].update(version="9"),
    lambda tree: tree["components"]["gpu-operator"]["releases"][0].update(driver="600.1"),
    lambda tree: tree["nodes"]["dgx-h100"].update(cpu_cores=1),
    lambda tree: listing(tree, "aws", "p5.48xlarge").update(usd_per_hour="1"),
    dearer,
]
USED: list[tuple[str, Change]] = [
    ("gpus/l4.yaml", lambda tree: tree["gpus"]["l4"]["facts"]["power"].__setitem__(0, 71)),
    (
        "gpus/h100-sxm-80gb.yaml as measured",
        lambda tree: tree["gpus"]["h100-sxm-80gb"]["achieved"].__setitem__(0, 8 * 10**14),
    ),
    ("engines/vllm.yaml", lambda tree: tree["engines"]["vllm"].update(digest="sha256:" + "0" * 64)),
    (
        "components/gpu-operator.yaml v26.3.3",
        lambda tree: tree["components"]["gpu-operator"]["releases"][1].update(app_version="v9"),
    ),
    (
        "prices/gcp.yaml g2-standard-8",
        lambda tree: listing(tree, "gcp", "g2-standard-8").update(usd_per_hour="0.86"),
    ),
]


@pytest.mark.parametrize("change", UNUSED)
def test_a_fact_that_is_not_used_changes_no_byte(tmp_path: Path, change: Change) -> None:
    assert compiled(tmp_path, change).files == compiled(tmp_path).files


@pytest.mark.parametrize(("name", "change"), USED, ids=[name for name, _ in USED])
def test_a_fact_that_is_used_changes_its_entry_alone(
    tmp_path: Path, name: str, change: Change
) -> None:
    before, after = compiled(tmp_path), compiled(tmp_path, change)
    changed = {n for n, sha256 in entries(before).items() if entries(after).get(n) != sha256}
    assert changed == {name}
    assert entries(before).keys() == entries(after).keys()
    digests = {stack.plan.provenance.catalog_sha256 for stack in (before, after)}
    assert len(digests) == 2


def test_the_lock_lists_the_entries(tmp_path: Path) -> None:
    stack = compiled(tmp_path)
    lock = yaml.loads(next(f.text for f in stack.files if f.path == "gpuplan.lock"))
    assert lock["catalog"] == entries(stack)
    assert lock["catalog_sha256"] == stack.plan.provenance.catalog_sha256


def test_what_the_manifest_states_itself_is_none_of_the_catalogue(tmp_path: Path) -> None:
    text = CHAT.replace("gpus: [l4, a10, l40s]", "gpus: [l4]\n  prices: {l4: $1/hour}").replace(
        "  precision: bf16", "  engine: {name: vllm, image: example/vllm:v1}\n  precision: bf16"
    )
    kinds = {name.split("/")[0] for name in entries(compiled(tmp_path, text=text))}
    assert kinds == {"components", "gpus", "instances", "providers"}


def test_machines_of_an_inventory_are_none_of_the_catalogue(tmp_path: Path) -> None:
    source = ROOT / "examples/inventories/rack-7.yaml"
    (tmp_path / "rack.yaml").write_bytes(source.read_bytes())
    text = CHAT.replace("gpus: [l4, a10, l40s]", "inventory: rack.yaml").replace(
        "$5,000", "$90,000"
    )
    names = entries(compiled(tmp_path, text=text))
    assert {n for n in names if n.startswith("nodes/")} == set()
    assert "gpus/h100-sxm-80gb.yaml" in names
