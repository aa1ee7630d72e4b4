"""Contents of whole nodes on generated fleets: packings that the other steps miss, none dearer."""

from __future__ import annotations

import pytest

from bench.packing.fleets import MIXES, UNSEEN, fleet
from gpuplan.fleet.problem import Problem, Result
from gpuplan.fleet.solver.classes import compile_fleet
from gpuplan.fleet.solver.nodes.cover import Answer, Cover
from gpuplan.fleet.solver.nodes.packing import by_nodes
from gpuplan.fleet.solver.outline.master import whole_outline
from gpuplan.fleet.solver.run import construct, finished, pack
from tests.support.packing_check import faults


@pytest.fixture(autouse=True)
def _short(monkeypatch: pytest.MonkeyPatch) -> None:
    """Few steps of ruin and recreate: the contents have to do the work."""
    monkeypatch.setattr("gpuplan.fleet.solver.run.ruin_work", lambda _: 5_000)


def checked(problem: Problem, *, contents: bool) -> Result:
    result = pack(problem, contents=contents)
    assert faults(problem, result) == []
    assert not result.refused
    return result


@pytest.mark.parametrize("mix", sorted(MIXES | UNSEEN))
def test_contents_never_make_a_packing_dearer(mix: str) -> None:
    problem = fleet(mix, 250, 7)
    assert checked(problem, contents=True).cost <= checked(problem, contents=False).cost


def test_core_bound_fleets_lose_less_than_half_of_what_they_lost() -> None:
    """Where cores bind, what is left of single nodes is the loss: whole contents leave none."""
    problem = fleet("core-bound", 1000, 3)
    before, after = (checked(problem, contents=c) for c in (False, True))
    assert after.cost - after.bound < (before.cost - before.bound) / 2


def test_a_spread_group_has_a_host_for_each_item_in_a_packing_from_contents() -> None:
    problem = fleet("giants", 150, 8)
    compiled = compile_fleet(problem)
    least = whole_outline(compiled)
    start = construct(compiled, least)
    found, _ = by_nodes(compiled, least, start, finished(least))
    assert found
    for packer in found:
        for each in packer.state.hosts.values():
            groups = [compiled.spread[i] for i in each.items if compiled.spread[i] >= 0]
            assert len(groups) == len(set(groups))


def test_the_program_over_contents_has_an_answer_at_each_step(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Contents are rounded up, to more of a spread group's items than may stand on the hosts."""
    seen: list[str] = []
    solve = Cover.solve

    def watched(cover: Cover) -> Answer:
        answer, solver = solve(cover), cover.program.solver
        seen.append(solver.modelStatusToString(solver.getModelStatus()))
        return answer

    monkeypatch.setattr(Cover, "solve", watched)
    problem = fleet("notebooks", 200, 4)
    assert faults(problem, pack(problem)) == []
    assert set(seen) == {"Optimal"}
