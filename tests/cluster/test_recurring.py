"""What has a schedule, on a real API server: its runs come from it, meet each other, and an update
changes the next one."""

from __future__ import annotations

import json
import shlex
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from gpuplan.cli.main import main
from gpuplan.simulate.nodes import nodes, volumes
from tests.support.plans import commands, read_plan
from tests.tools.kube import PATIENCE_SECONDS, Kube, Object, Tree, changed
from tests.tools.stacks import objects_of

pytestmark = [pytest.mark.cluster, pytest.mark.sdk]

PODS = 2
MANIFEST = """\
apiVersion: gpuplan.dev/v1
name: weekly
platform:
  target: kubernetes
  gpus: [h100-sxm-80gb]
  node: {gpus: 8, cpu_cores: 112, memory: 2 TiB, count: 2}
  fabric: {kind: infiniband, bandwidth_per_gpu: 400 Gb/s, resource: rdma/rdma_shared_device_a}
  storage: {class: shared-nvme, shared: true, bandwidth: 10 GB/s}
workloads:
- name: tune
  task: finetuning
  schedule: "0 4 * * 6"
  model: Qwen/Qwen3-32B
  precision: bf16
  training: {sequence_length: 4096, global_batch: 64, epochs: 2, lora: {rank: 16}}
  dataset: {name: example-org/support-dialogues, tokens: 5e7, size: 2 GB}
  overrides: {gpu_count: 16}
"""


@pytest.fixture
def stack(tmp_path: Path) -> Path:
    (tmp_path / "m.yaml").write_text(MANIFEST, encoding="utf-8")
    assert main(["compile", str(tmp_path / "m.yaml"), "-o", str(tmp_path / "stacks")]) == 0
    return tmp_path / "stacks" / "weekly"


@pytest.fixture
def site(full_cluster: Kube, stack: Path) -> Iterator[list[Object]]:
    plan, objects = read_plan(stack), objects_of(stack)
    around = [*nodes(plan), *volumes(objects)]
    full_cluster.apply([*around, *objects])
    yield objects
    full_cluster.sweep([*(o for o in reversed(objects) if not o.is_patch), *around])


def listed(cluster: Kube, kind: str) -> list[Tree]:
    text = cluster.kubectl("get", kind, "-n", "weekly", "-o", "json")
    items: list[Tree] = json.loads(text)["items"]
    return items


def test_a_run_is_started_as_the_readme_says_and_its_pods_meet(
    full_cluster: Kube, stack: Path, site: list[Object]
) -> None:
    first = full_cluster.state(site)
    full_cluster.apply(site)
    assert changed(first, full_cluster.state(site)) == set()
    assert listed(full_cluster, "jobs") == []
    (now, runs) = commands(stack, "Run again", 0)
    full_cluster.kubectl(*shlex.split(now)[1:])
    assert "tune-now" in full_cluster.kubectl(*shlex.split(runs)[1:])
    end = time.monotonic() + PATIENCE_SECONDS
    found: list[Tree] = []
    while time.monotonic() < end and not found:
        time.sleep(0.5)
        pods = [p for p in listed(full_cluster, "pods") if p["status"]["phase"] == "Running"]
        if len(pods) == PODS:
            slices = listed(full_cluster, "endpointslices")
            found = [e for s in slices for e in s.get("endpoints") or ()]
    assert len({p["spec"]["nodeName"] for p in pods}) == PODS
    assert [e["targetRef"]["name"].startswith("tune-now-0-") for e in found] == [True]
    (name,) = (s["metadata"]["name"] for s in listed(full_cluster, "services"))
    for pod in pods:
        (engine,) = pod["spec"]["containers"]
        assert f"--master-addr={name}" in engine["args"]


def test_an_update_changes_the_next_run_alone(
    full_cluster: Kube, stack: Path, site: list[Object]
) -> None:
    (now, _) = commands(stack, "Run again", 0)
    full_cluster.kubectl(*shlex.split(now)[1:])
    (before,) = listed(full_cluster, "jobs")
    manifest = stack.parents[1] / "m.yaml"
    text = manifest.read_text("utf-8").replace("epochs: 2", "epochs: 3")
    manifest.write_text(text.replace("0 4 * * 6", "0 5 * * 0"), encoding="utf-8")
    assert main(["compile", str(manifest), "-o", str(stack.parent)]) == 0
    full_cluster.apply(objects_of(stack))
    (after,) = listed(full_cluster, "jobs")
    assert after["metadata"]["uid"] == before["metadata"]["uid"]
    assert after["spec"]["template"] == before["spec"]["template"]
    (recurring,) = listed(full_cluster, "cronjobs")
    assert recurring["spec"]["schedule"] == "0 5 * * 0"
    assert recurring["metadata"]["name"] == "tune"
