"""What keeps a run or a replica in one NVLink domain: objects, components, jobs, and the policy."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from gpuplan.cli.main import main
from gpuplan.kubernetes.lower import lower
from gpuplan.kubernetes.update.immutable import refused
from gpuplan.plan.model import Plan
from gpuplan.plan.partitions import DOMAIN_LABEL
from gpuplan.preview.running.run import preview
from tests.support.plans import read_plan
from tests.tools.program import ROOT

REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"
STACK = ROOT / "stacks" / "nvl72"
RUN = """
apiVersion: gpuplan.dev/v1
name: tune
platform:
  target: TARGET
  gpus: [gb200-186gb]
  NODES
  storage: {class: shared, shared: true, bandwidth: 10 GB/s}
workloads:
- name: tune
  task: finetuning
  model: meta-llama/Llama-3.1-8B
  precision: bf16
  training: {sequence_length: 4096, global_batch: 64, steps: 1000}
  dataset: {name: example-org/support, tokens: 5e8, size: 2 GB}
  overrides: {gpu_count: 16}
"""
NODE = "node: {gpus: 4, count: 18, cpu_cores: 144, memory: 960 GB, nvlink_nodes: 18}"
INVENTORY = """
apiVersion: gpuplan.dev/inventory/v1
name: row
hosts:
"""


def hosts(rack: str, first: int, domain: str) -> str:
    names = ", ".join(f"tray-{n}" for n in range(first, first + 4))
    where = f", nvlink_domain: {domain}" if domain else ""
    return f"""
- names: [{names}]
  sockets: 2
  cpu_cores: 144
  threads_per_core: 1
  memory: 960 GB
  gpus: [{{type: gb200-186gb, count: 4{where}}}]
"""


def compiled(folder: Path, target: str, nodes: str, inventory: str = "") -> tuple[int, Path]:
    (folder / "tune.yaml").write_text(
        RUN.replace("TARGET", target).replace("NODES", nodes), encoding="utf-8"
    )
    (folder / "row.yaml").write_text(inventory, encoding="utf-8")
    status = main(["compile", str(folder / "tune.yaml"), "-o", str(folder / "stacks")])
    return status, folder / "stacks" / "tune"


def objects(plan: Plan) -> dict[str, Any]:
    return {o.kind: o.tree for o in lower(plan).objects}


def test_pods_of_a_replica_claim_a_channel_and_require_one_domain() -> None:
    found = objects(read_plan(STACK))
    (name,) = found["ComputeDomain"]["spec"]["channel"]["resourceClaimTemplate"].values()
    templates = found["LeaderWorkerSet"]["spec"]["leaderWorkerTemplate"]
    for part in ("leaderTemplate", "workerTemplate"):
        pod = templates[part]["spec"]
        (claim,) = pod["resourceClaims"]
        assert claim["resourceClaimTemplateName"] == name
        assert pod["containers"][0]["resources"]["claims"] == [{"name": claim["name"]}]
        affinity = pod["affinity"]["podAffinity"]
        (term,) = affinity["requiredDuringSchedulingIgnoredDuringExecution"]
        assert term["topologyKey"] == DOMAIN_LABEL
        assert term["matchLabelKeys"] == ["leaderworkerset.sigs.k8s.io/group-index"]


def selects(term: dict[str, Any], labels: dict[str, str]) -> bool:
    """Whether a term of affinity is about pods with these labels."""
    selector = term["labelSelector"]
    meant = {"In": lambda a, b: a in b, "NotIn": lambda a, b: a not in b}
    return selector.get("matchLabels", {}).items() <= labels.items() and all(
        meant[e["operator"]](labels.get(e["key"]), e["values"])
        for e in selector.get("matchExpressions", ())
    )


def test_a_leader_goes_where_most_trays_are_free_and_the_others_to_it() -> None:
    found = objects(read_plan(STACK))
    templates = found["LeaderWorkerSet"]["spec"]["leaderWorkerTemplate"]
    leader, worker = (templates[f"{part}Template"] for part in ("leader", "worker"))
    of_leader, of_worker = (t["metadata"]["labels"] for t in (leader, worker))
    (sought,) = worker["spec"]["affinity"]["podAffinity"][REQUIRED]
    assert selects(sought, of_leader)
    assert not selects(sought, of_worker), "without its leader it would begin a group elsewhere"
    assert "podAntiAffinity" not in worker["spec"]["affinity"]
    strangers = of_worker | {"app.kubernetes.io/name": "other"}
    nobodys = {"app.kubernetes.io/name": "other"}
    weights = [
        sum(t["weight"] for t in avoided(leader) if selects(t["podAffinityTerm"], pod))
        for pod in (of_leader, of_worker, strangers, nobodys)
    ]
    assert weights == [100, 0, 50, 0], "a leader is as much as both nodes of its group"


def avoided(template: dict[str, Any]) -> list[Any]:
    terms: list[Any] = template["spec"]["affinity"]["podAntiAffinity"][PREFERRED]
    assert {t["podAffinityTerm"]["topologyKey"] for t in terms} == {DOMAIN_LABEL}
    return terms


def test_a_run_begins_where_no_other_is(tmp_path: Path) -> None:
    status, stack = compiled(tmp_path, "kubernetes", NODE)
    assert status == 0
    template = objects(read_plan(stack))["Job"]["spec"]["template"]
    own = template["metadata"]["labels"]
    (term,) = (t["podAffinityTerm"] for t in avoided(template))
    assert term["namespaceSelector"] == {}, "runs of other teams too"
    assert not selects(term, own)
    assert selects(term, own | {"app.kubernetes.io/name": "other"})


def test_a_replica_on_one_node_has_none_of_it() -> None:
    plan = read_plan(STACK)
    (work,) = plan.workloads
    alone = replace(plan, workloads=(replace(work, nodes_per_replica=1, one_domain=None),))
    found = objects(alone)
    assert "ComputeDomain" not in found
    pod = found["Deployment"]["spec"]["template"]["spec"]
    assert not {"resourceClaims", "affinity"} & {k for k, v in pod.items() if v}


def test_its_driver_is_a_component_of_such_stacks_alone() -> None:
    having = [
        s.parent.name
        for s in sorted((ROOT / "stacks").glob("*/plan.yaml"))
        if "nvidia-dra-driver-gpu" in [c.name for c in read_plan(s.parent).components]
    ]
    assert having == ["nvl72"]


def test_a_domain_comes_after_the_chart_that_defines_it_and_goes_before() -> None:
    found = {r.type: r for r in preview(STACK).resources}
    domain = next(r for type_, r in found.items() if type_.endswith(":ComputeDomain"))
    assert any(urn.endswith("Release::addon-nvidia-dra-driver-gpu") for urn in domain.dependencies)


def test_the_readme_says_where_its_chart_looks_for_the_driver() -> None:
    said = (STACK / "README.md").read_text("utf-8")
    assert "`nvidiaDriverRoot: /`" in said
    other = ROOT / "stacks" / "llama-405b" / "README.md"
    assert "nvidiaDriverRoot" not in other.read_text("utf-8")


def test_a_compute_domain_never_changes() -> None:
    tree = objects(read_plan(STACK))["ComputeDomain"]
    other = {**tree, "spec": {**tree["spec"], "numNodes": 2}}
    assert refused(tree, tree) == ()
    assert refused(tree, other) == ("spec",)


def test_a_stack_that_lost_the_rule_is_found(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    status, stack = compiled(tmp_path, "kubernetes", NODE)
    assert status == 0
    program = stack / "workload.py"
    text = program.read_text("utf-8")
    assert main(["check", str(stack)]) == 0
    for changed in (
        text.replace(DOMAIN_LABEL, "topology.kubernetes.io/zone"),
        text.replace("required_during_scheduling", "preferred_during_scheduling"),
    ):
        assert changed != text
        program.write_text(changed, encoding="utf-8")
        capsys.readouterr()
        assert main(["check", str(stack)]) == 1
        assert "GP313" in capsys.readouterr().out


def test_a_job_of_slurm_has_all_its_nodes_in_one_block(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    slurm = "inventory: row.yaml\n  slurm: {controller: ctl, storage: /lustre, containers: pyxis}"
    racks = INVENTORY + hosts("a", 1, "left") + hosts("b", 5, "right")
    status, stack = compiled(tmp_path, "slurm", slurm, racks)
    assert status == 0
    assert read_plan(stack).workloads[0].one_domain
    script = stack / "jobs" / "tune.sbatch"
    text = script.read_text("utf-8")
    assert "#SBATCH --segment=4" in text
    assert "SwitchType=switch/nvidia_imex" in (stack / "etc" / "slurm.conf").read_text("utf-8")
    script.write_text(text.replace("--segment=4", "--segment=2"), encoding="utf-8")
    capsys.readouterr()
    assert main(["check", str(stack)]) == 1
    assert "GP313" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("second", "joined"), [("right", True), ("", False)], ids=["two racks", "strays"]
)
def test_trays_of_no_rack_leave_work_inside_a_node(
    tmp_path: Path, second: str, *, joined: bool
) -> None:
    racks = INVENTORY + hosts("a", 1, "left") + hosts("b", 5, second)
    nodes = "inventory: row.yaml\n  fabric: {kind: ethernet, bandwidth_per_gpu: 100 Gb/s}"
    status, stack = compiled(tmp_path, "kubernetes", nodes, racks)
    assert status == 0
    plan = read_plan(stack)
    assert (plan.workloads[0].one_domain or False) is joined
    assert plan.node_pools[0].nvlink_nodes == (4 if joined else None)


def test_more_nodes_than_nvlink_joins_are_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    status, _ = compiled(
        tmp_path, "kubernetes", NODE.replace("nvlink_nodes: 18", "nvlink_nodes: 19")
    )
    assert status == 2
    said = capsys.readouterr().err
    assert "NVLink joins at most 72 gb200-186gb" in said
    assert "write at most 18" in said


def test_a_target_that_keeps_no_domain_says_so(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    short = RUN.replace("  overrides: {gpu_count: 16}\n", "").replace("count: 18, ", "")
    (tmp_path / "tune.yaml").write_text(
        short.replace("TARGET", "docker").replace("NODES", NODE.replace("count: 18, ", "")),
        encoding="utf-8",
    )
    assert main(["compile", str(tmp_path / "tune.yaml"), "-o", str(tmp_path / "stacks")]) == 0
    assert "platform.node.nvlink_nodes has no effect on target 'docker'" in capsys.readouterr().err


@pytest.mark.parametrize(("gpus", "fits"), [((16, 16), True), ((16, 8, 8), False)])
def test_runs_that_may_take_each_others_racks_are_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], gpus: tuple[int, ...], *, fits: bool
) -> None:
    slurm = "inventory: row.yaml\n  slurm: {controller: ctl, storage: /lustre, containers: pyxis}"
    head, run = RUN.replace("TARGET", "slurm").replace("NODES", slurm).split("- name: tune")
    runs = (
        f"- name: tune-{n}{run.replace('count: 16', f'count: {g}')}" for n, g in enumerate(gpus)
    )
    racks = INVENTORY + hosts("a", 1, "left") + hosts("b", 5, "right")
    (tmp_path / "tune.yaml").write_text(head + "".join(runs), encoding="utf-8")
    (tmp_path / "row.yaml").write_text(racks, encoding="utf-8")
    status = main(["compile", str(tmp_path / "tune.yaml"), "-o", str(tmp_path / "stacks")])
    assert (status == 0) is fits
    said = " ".join(capsys.readouterr().err.split())
    assert ("may hold 0 of 1 group of 4 nodes that 'tune-0' counts on" in said) is not fits
