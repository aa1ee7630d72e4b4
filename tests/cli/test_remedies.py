"""What a refusal proposes works: each remedy is applied to the manifest and compiled again."""

from __future__ import annotations

from pathlib import Path

import pytest

from gpuplan.diagnostics import Diagnostic, Remedy
from gpuplan.sizing.decide.remedies import MOST_REMEDIES
from tests.support.refused_manifests import applied, drawn, refusals

GROUPS = 8
EACH = 7


def _names(problem: Diagnostic, remedy: Remedy) -> bool:
    """Whether a problem stands at a field that the remedy changed, or below it; where an item of a
    list is taken away, the next one has its place."""
    path = getattr(problem.origin, "path", ())
    kept = (c for c in remedy if c.value is not None or isinstance(c.origin.path[-1], str))
    return any(path[: len(c.origin.path)] == c.origin.path for c in kept)


@pytest.mark.parametrize("group", range(GROUPS))
def test_a_remedy_that_is_taken_is_not_refused_next(group: int, tmp_path: Path) -> None:
    for number in range(group * EACH, (group + 1) * EACH):
        tree = drawn(number)
        for problem in refusals(tree, tmp_path):
            assert len(problem.remedies) <= MOST_REMEDIES
            for remedy in problem.remedies:
                again = refusals(applied(tree, remedy), tmp_path)
                same = [
                    a.help for a in again if (a.rule, a.message) == (problem.rule, problem.message)
                ]
                assert not same, (number, problem.help)
                named = [a.message for a in again if _names(a, remedy)]
                assert not named, (number, problem.help)


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
    gap = "no allowed GPU reaches slo.time_per_output_token 10 ms: the best is 15.1 ms on l4"
    assert near.help.startswith(gap)
    assert "`platform.gpus` with 'h200-sxm-141gb' takes 8 × h200-sxm-141gb at $" in near.help
    assert {c.origin.path[:2] for r in near.remedies for c in r} == {("platform", "gpus")}
    far = _refused("1 ms", tmp_path)
    assert far.help.startswith(gap.replace(" 10 ms:", " 1 ms:"))
    assert not far.remedies


DESKS = {"name": "desks", "task": "notebook", "notebook": {"users": 3, "gpu_memory": "9 GiB"}}


@pytest.mark.parametrize(
    ("platform", "words"),
    [
        ({"provider": "lambda", "gpus": ["l40s"]}, ("gh200-96gb", "aws, nebius, oci rent some")),
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
