"""What keeps the nodes of a run or of a replica in one NVLink domain, as its files say it."""

from __future__ import annotations

from dataclasses import replace

import pytest

from gpuplan.findings import Verdict
from gpuplan.plan.model import Parallelism, Plan
from gpuplan.units import GB
from tests.support.policy_samples import judge, stack, with_pool, with_workload
from tests.support.samples import serving_plan, training_plan

LABEL = "nvidia.com/gpu.clique"
REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
KEPT = f'spec={{"{REQUIRED}": [{{"topologyKey": "{LABEL}"}}]}}'


def told(plan: Plan, rule: str = "GP313", **files: str) -> list[Verdict]:
    return [v for v in judge(stack(plan, **files)) if v.rule == rule]


def joined(plan: Plan, nodes: int = 2) -> Plan:
    return with_pool(
        with_workload(plan, one_domain=True, nodes_per_replica=nodes), nvlink_nodes=nodes
    )


@pytest.mark.parametrize(
    ("term", "kept"),
    [
        (KEPT, True),
        (f'spec=A(required_during_scheduling=[B(topology_key="{LABEL}")])', True),
        (f'spec={{"{REQUIRED}": [B(topology_key="{LABEL}")]}}', True),
        (f'spec={{"preferredDuringScheduling": [{{"topologyKey": "{LABEL}"}}]}}', False),
        (f'spec={{"{REQUIRED}": [{{"topologyKey": "kubernetes.io/hostname"}}]}}', False),
        (f'spec={{"{REQUIRED}": [{{"topologyKey": key()}}]}}', False),
        (f'spec={{"{REQUIRED}": [{{"image": "{LABEL}"}}]}}', False),
        ("spec={}", False),
    ],
)
def test_a_run_is_kept_in_a_domain_by_what_all_its_pods_require(term: str, kept: bool) -> None:
    plan = joined(training_plan())
    assert bool(told(plan, **{"a.py": f'Job("tune", {term})\n'})) == (not kept)
    assert len(told(plan, **{"a.py": f'Job("tune-2", {term})\n'})) == 1
    [found] = told(plan, **{"a.py": 'Job("tune", spec={})\n'})
    assert found.message == (
        f"tune counts on NVLink between 2 nodes, but not all its pods require nodes of one {LABEL}"
    )


@pytest.mark.parametrize(("pods", "kept"), [(0, False), (1, False), (2, True), (3, True)])
def test_leaders_and_the_others_of_a_service_are_both_kept_in_a_domain(
    pods: int, kept: bool
) -> None:
    program = "x = 1\n" + f'Pod("assistant", {KEPT})\n' * pods
    assert bool(told(joined(serving_plan()), **{"a.py": program})) == (not kept)


def test_pods_are_not_judged_where_no_program_makes_them() -> None:
    assert told(joined(training_plan()), **{"a.yaml": "a: 1\n"}) == []
    assert told(with_workload(training_plan(), one_domain=False), **{"a.py": "x = 1\n"}) == []


@pytest.mark.parametrize("nvlink", [None, 1, 2])
def test_a_domain_that_is_too_small_is_told_with_its_size(nvlink: int | None) -> None:
    plan = with_pool(joined(training_plan(), 3), nvlink_nodes=nvlink)
    [found] = told(plan, **{"a.py": f'Job("tune", {KEPT})\n'})
    assert found.message.endswith(f"between 3 nodes, but in its pool it joins {nvlink or 1}")
    small = joined(training_plan(), 1)
    assert told(with_pool(small, nvlink_nodes=None), **{"a.yaml": "a: 1\n"}) == []


def test_nodes_that_stand_by_are_to_lie_in_the_domain_too() -> None:
    plan = joined(training_plan())
    run = plan.workloads[0].training
    assert run is not None
    with_spare = with_workload(plan, training=replace(run, spare_nodes=1))
    program = {"a.py": f'Job("tune", {KEPT})\n'}
    [found] = told(with_spare, **program)
    assert found.message.endswith("in its pool it joins 2, and 1 node may take a place")
    assert told(with_pool(with_spare, nvlink_nodes=3), **program) == []


@pytest.mark.parametrize(
    ("script", "kept"),
    [
        ("#SBATCH --nodes=2\n#SBATCH --segment=2\n", True),
        ("#SBATCH --nodes=2\n#SBATCH --segment=1\n", False),
        ("#SBATCH --nodes=2\n#SBATCH --segment=4\n", False),
        ("#SBATCH --nodes=2\n#SBATCH --segment=two\n", False),
        ("#SBATCH --nodes=2\n#SBATCH --segment\n", False),
        ("#SBATCH --nodes=2\n", False),
    ],
)
def test_a_job_is_kept_in_a_domain_by_its_segment(script: str, kept: bool) -> None:
    plan = replace(joined(training_plan()), target="slurm")
    other = {"jobs/other.sbatch": "#SBATCH --nodes=2\n", "a.py": "x = 1\n"}
    found = told(plan, **{"jobs/tune.sbatch": script}, **other)
    assert [v.message.rpartition("but ")[2] for v in found] == (
        [] if kept else ["no --segment=2 keeps its job in a block"]
    )
    assert told(plan, **other) == []


# --- layers over the link -------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("size", "here", "nodes", "nvlink", "said"),
    [  # GPUs of a group, of a node; nodes of a replica, of a domain where the plan counts on one
        (8, 8, 1, 0, None),
        (9, 8, 1, 0, "9 GPUs, but one node has 8 of its GPUs"),
        (5, 4, 2, 0, "5 GPUs, but one node has 4 of its GPUs"),
        (8, 4, 2, 2, None),
        (8, 4, 2, 9, None),
        (9, 4, 2, 9, "9 GPUs, but NVLink joins 8 of its GPUs"),
        (9, 4, 3, 2, "9 GPUs, but NVLink joins 8 of its GPUs"),
        (12, 4, 3, 3, None),
        (5, 4, 3, 1, "5 GPUs, but one node has 4 of its GPUs"),
        (16, 16, 1, 0, "16 GPUs, but one node has 8 of its GPUs"),  # as the pool's nodes have
    ],
)
def test_layers_are_split_over_gpus_that_nvlink_joins(
    size: int, here: int, nodes: int, nvlink: int, said: str | None
) -> None:
    plan = with_workload(
        serving_plan(),
        parallelism=Parallelism(tensor_parallel_size=size),
        gpus_per_node=here,
        nodes_per_replica=nodes,
        one_domain=nvlink > 0,
    )
    found = told(with_pool(plan, nvlink_nodes=nvlink or None), "GP105")
    assert [v.message.rpartition("over ")[2] for v in found] == ([said] if said else [])
    for verdict in found:
        words = verdict.message.split()
        assert (verdict.requested, verdict.capacity) == (size, int(words[-4]))


def test_partitions_share_no_link_that_could_be_slow() -> None:
    plan = with_workload(
        serving_plan(),
        parallelism=Parallelism(tensor_parallel_size=4),
        gpus_per_node=4,
        partition="1g.10gb",
    )
    [found] = told(with_pool(plan, interconnect_bytes_per_s=32 * GB), "GP105")
    assert "partitions (1g.10gb)" in found.message
