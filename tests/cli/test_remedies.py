"""What a refusal proposes works: each remedy is applied to the manifest and compiled again."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from gpuplan.diagnostics import Diagnostic, Remedy, Severity
from gpuplan.pipeline import compile_files
from gpuplan.sizing.decide.remedies import MOST_REMEDIES
from tests.support import refused_elsewhere
from tests.support.refused_manifests import Tree, applied, drawn, refusals

GROUPS = 8
EACH = 7


def _names(problem: Diagnostic, remedy: Remedy) -> bool:
    """Whether a problem stands at a field that the remedy changed, or below it; where an item of a
    list is taken away, the next one has its place."""
    path = getattr(problem.origin, "path", ())
    kept = (c for c in remedy if c.value is not None or isinstance(c.origin.path[-1], str))
    return any(path[: len(c.origin.path)] == c.origin.path for c in kept)


def _holds(tree: Tree, folder: Path, number: int) -> None:
    """That no remedy of any refusal is refused next."""
    for problem in refusals(tree, folder):
        assert len(problem.remedies) <= MOST_REMEDIES
        for remedy in problem.remedies:
            again = refusals(applied(tree, remedy), folder)
            same = [a.help for a in again if (a.rule, a.message) == (problem.rule, problem.message)]
            assert not same, (number, problem.help)
            named = [a.message for a in again if _names(a, remedy)]
            assert not named, (number, problem.help)


@pytest.mark.parametrize("group", range(GROUPS))
def test_a_remedy_that_is_taken_is_not_refused_next(group: int, tmp_path: Path) -> None:
    for number in range(group * EACH, (group + 1) * EACH):
        _holds(drawn(number), tmp_path, number)


@pytest.mark.parametrize("group", range(GROUPS))
def test_nor_one_of_clouds_docker_slurm_videos_and_other_services(
    group: int, tmp_path: Path
) -> None:
    for number in range(group * EACH, (group + 1) * EACH):
        _holds(refused_elsewhere.drawn(number), tmp_path, number)


def test_manifests_of_other_targets_meet_many_refusals(tmp_path: Path) -> None:
    trees = [refused_elsewhere.drawn(number) for number in range(GROUPS * EACH)]
    problems = [p for tree in trees for p in refusals(tree, tmp_path)]
    targets = {tree["platform"]["target"] for tree in trees}
    assert targets == {"eks", "gke", "aks", "docker", "slurm", "kubernetes"}
    assert {"GP004", "GP006", "GP007", "GP010", "GP012", "GP016"} <= {p.rule for p in problems}
    assert len({p.message for p in problems if p.remedies}) > 6


def test_manifests_that_are_drawn_meet_many_refusals(tmp_path: Path) -> None:
    problems = [p for number in range(GROUPS * EACH) for p in refusals(drawn(number), tmp_path)]
    remedies = [r for p in problems for r in p.remedies]
    fields = {c.origin.path[-1] for r in remedies for c in r if isinstance(c.origin.path[-1], str)}
    assert {"GP007", "GP010", "GP011"} <= {p.rule for p in problems}
    assert len(remedies) > 30
    assert len(fields) > 10


CHAT = {
    "name": "chat",
    "task": "inference",
    "model": "meta-llama/Llama-3.1-8B-Instruct",
    "load": {
        "requests_per_second": {"mean": 20, "peak": 40},
        "input_tokens": {"mean": 1200, "p95": 4000},
        "output_tokens": 300,
    },
}


def _refused(limit: str, folder: Path) -> Diagnostic:
    tree = {
        "apiVersion": "gpuplan.dev/v1",
        "name": "chat",
        "platform": {"target": "kubernetes", "gpus": ["l4"]},
        "workloads": [CHAT | {"slo": {"time_per_output_token": limit}}],
    }
    (problem,) = refusals(tree, folder)
    return problem


def test_what_nobody_would_do_is_a_gap_and_no_remedy(tmp_path: Path) -> None:
    """One sequence a replica would meet 17 ms, on two thousand L4."""
    near = _refused("10 ms", tmp_path)
    gap = r"no allowed GPU reaches slo.time_per_output_token 10 ms: the best is 1\d.?\d? ms on l4,"
    assert re.match(gap, near.help)
    bigger = r"`platform.gpus` with '(?P<gpu>h[12]00-[\w-]+)' takes \d+ × (?P=gpu) at \$"
    assert re.search(bigger, near.help)
    assert "nor would other GPUs" not in near.help
    assert {c.origin.path[:2] for r in near.remedies for c in r} == {("platform", "gpus")}
    far = _refused("1 ms", tmp_path)
    assert re.match(gap.replace(" 10 ms:", " 1 ms:"), far.help)
    assert not far.remedies
    assert "; nor would other GPUs or nodes do, " in far.help


DESKS = {"name": "desks", "task": "notebook", "notebook": {"users": 3, "gpu_memory": "9 GiB"}}


@pytest.mark.parametrize(
    ("platform", "words"),
    [
        (
            {"provider": "lambda", "gpus": ["l40s"]},
            ("gh200-96gb", "aws, coreweave, crusoe, nebius, oci rent some"),
        ),
        ({"nodes": ["g6.xlarge"], "gpus": ["h100-sxm-80gb"]}, ("name p5.48xlarge",)),
    ],
)
def test_what_is_missing_is_refused_with_what_there_is(
    platform: dict[str, object], words: tuple[str, ...], tmp_path: Path
) -> None:
    tree = {"apiVersion": "gpuplan.dev/v1", "name": "lab", "workloads": [DESKS]}
    (problem,) = refusals(tree | {"platform": {"target": "kubernetes"} | platform}, tmp_path)
    assert all(name in f"{problem.label} {problem.help}" for name in words)


def test_what_isolation_means_is_said_where_it_is_refused(tmp_path: Path) -> None:
    work = DESKS | {"tenancy": {"isolation": "vm"}}
    tree = {"apiVersion": "gpuplan.dev/v1", "name": "lab", "workloads": [work]}
    (problem,) = refusals(tree | {"platform": {"target": "kubernetes", "gpus": ["l40s"]}}, tmp_path)
    assert problem.rule == "GP043"
    assert "'node', under which only its own team is on its nodes" in problem.help
    assert "libvirt" in problem.help


CHAT_AWS = {
    "apiVersion": "gpuplan.dev/v1",
    "name": "chat",
    "platform": {
        "target": "kubernetes",
        "provider": "aws",
        "region": "eu-west-1",
        "gpus": ["h100-sxm-80gb"],
    },
    "workloads": [CHAT],
}


def test_a_region_without_prices_is_planned_with_ones_own(tmp_path: Path) -> None:
    (problem,) = refusals(CHAT_AWS, tmp_path)
    assert "state your own for each of 'gpus', as `prices:" in problem.help
    tree = {
        **CHAT_AWS,
        "platform": {**CHAT_AWS["platform"], "prices": {"h100-sxm-80gb": "$5/hour"}},
    }
    (tmp_path / "m.yaml").write_text(json.dumps(tree), encoding="utf-8")
    result = compile_files([tmp_path / "m.yaml"])
    (stack,) = result.stacks
    (pool,) = stack.plan.node_pools
    assert pool.node_type is not None
    assert pool.node_type.startswith("p5")
    gpus = pool.node_count * pool.gpus_per_node
    assert stack.plan.cost is not None
    assert float(stack.plan.cost.usd_per_hour or 0) == 5 * gpus
    (note,) = [p for p in result.problems if "eu-west-1" in p.message]
    assert note.severity is Severity.INFO
    assert "is believed" in note.message


def test_a_misspelt_region_is_one_with_own_prices_too(tmp_path: Path) -> None:
    where = {**CHAT_AWS["platform"], "region": "us-esat-1", "prices": {"h100-sxm-80gb": "$5/hour"}}
    (problem,) = refusals({**CHAT_AWS, "platform": where}, tmp_path)
    assert problem.label == "did you mean 'us-east-1'?"
    ((change,),) = problem.remedies
    assert not refusals(applied({**CHAT_AWS, "platform": where}, (change,)), tmp_path)


def test_a_misspelt_field_is_not_said_to_be_missing_too(tmp_path: Path) -> None:
    tree = {k: v for k, v in CHAT_AWS.items() if k != "workloads"} | {"workload": [CHAT]}
    (problem,) = [p for p in refusals(tree, tmp_path) if "workload" in p.message]
    assert problem.label == "did you mean 'workloads'?"
    without = {k: v for k, v in CHAT_AWS.items() if k != "workloads"}
    assert any(p.message == "missing field 'workloads'" for p in refusals(without, tmp_path))


def test_of_several_overrides_the_dearest_mistake_is_blamed(tmp_path: Path) -> None:
    """Without any one of them it fits; that one is named without which it costs least."""
    work = {
        "name": "chat",
        "task": "inference",
        "model": "meta-llama/Llama-3.1-8B-Instruct",
        "load": {"requests_per_second": 4, "input_tokens": 500, "output_tokens": 100},
        "overrides": {"replicas": 1, "max_num_seqs": 2},
    }
    platform = {"target": "kubernetes", "gpus": ["h100-sxm-80gb"], "node": {"gpus": 1}}
    tree = {"apiVersion": "gpuplan.dev/v1", "name": "chat", "platform": platform}
    (problem,) = refusals(tree | {"workloads": [work]}, tmp_path)
    assert problem.message.startswith("with 'max_num_seqs' overridden")
    assert problem.help.startswith("without it: 1 × h100-sxm-80gb at $6.88/h, with max_num_seqs ")
