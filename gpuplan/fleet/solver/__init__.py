"""Many workloads on one fleet at least cost: exact where it can be, bounded everywhere."""

from gpuplan.fleet.problem import Problem, Result


def pack(problem: Problem) -> Result:
    """Place what the problem asks for; see docs/packing.md."""
    from gpuplan.fleet.solver.run import pack as run

    return run(problem)


def pack_ways(problem: Problem) -> tuple[Problem, Result]:
    """The same where workloads may run in several ways: the problem with the best of them."""
    from gpuplan.fleet.solver.ways import pack_ways as run

    return run(problem)
