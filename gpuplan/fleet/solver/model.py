"""A mixed-integer model, and HiGHS on it: one thread, one seed, the same answer everywhere."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from gpuplan.fleet.solver.effort import MOST_ITERATIONS, MOST_LOOKS

INFEASIBLE = ("Infeasible", "Primal infeasible or unbounded")  # what a solver says then
CUT_SHORT = ("Interrupted by user", "Iteration limit reached")  # as above


@dataclass(slots=True)
class Columns:
    """Columns and rows of a model, gathered before the solver sees them."""

    cost: list[float] = field(default_factory=list)
    upper: list[float] = field(default_factory=list)
    whole: list[bool] = field(default_factory=list)
    rows: list[tuple[float, float, dict[int, float]]] = field(default_factory=list)

    def column(self, cost: float, upper: float = float("inf"), *, whole: bool = False) -> int:
        self.cost.append(cost)
        self.upper.append(upper)
        self.whole.append(whole)
        return len(self.cost) - 1

    def row(self, low: float, high: float, terms: dict[int, float]) -> None:
        if terms:
            self.rows.append((low, high, terms))


@dataclass(frozen=True, slots=True)
class Solved:
    """`bound` in units of the objective; `values` by column."""

    status: str
    objective: float
    bound: float
    values: list[float]


def solve(model: Columns, *, gap: float, nodes: int = 2000, looks: int = MOST_LOOKS) -> Solved:
    """One thread, a fixed seed, and limits of work: the same answer everywhere, however busy the
    machine. `looks` are the points at which the search asks whether to go on."""
    searching = {"mip_allow_restart": False, "mip_heuristic_run_rins": False}
    solver = _solver(mip_rel_gap=gap, mip_max_nodes=nodes, **searching)
    solver.passModel(_lp(model, integer=True))
    _stop_after(solver, looks)
    solver.run()
    info, status = solver.getInfo(), solver.modelStatusToString(solver.getModelStatus())
    mixed = any(model.whole)
    return Solved(
        status=status,
        objective=info.objective_function_value,
        bound=info.mip_dual_bound if mixed else info.objective_function_value,
        values=list(solver.getSolution().col_value),
    )


def without_integers(model: Columns) -> float:
    """The objective where no column has to be whole."""
    program = Program(model)
    program.values()
    return program.objective()


def _stop_after(solver: Any, looks: int) -> None:
    """Interrupt its search the `looks`-th time that it asks."""
    from highspy import cb

    seen = 0

    def asked(_kind: Any, _message: str, _out: Any, answer: Any, _data: Any) -> None:
        nonlocal seen
        seen += 1
        if seen >= looks:
            answer.user_interrupt = True

    solver.setCallback(asked, None)
    solver.startCallback(cb.HighsCallbackType.kCallbackMipInterrupt)


class Relaxation:
    """A model without integers, to which rows come; each answer starts from the one before."""

    def __init__(self, model: Columns) -> None:
        self.model, self.rows = model, len(model.rows)
        self.solver = _solver()
        self.solver.passModel(_lp(model, integer=False))

    def values(self) -> list[float]:
        """By column, with the rows that the model has by now."""
        for low, high, terms in self.model.rows[self.rows :]:
            columns, amounts = list(terms), list(terms.values())
            self.solver.addRow(low, high, len(terms), columns, amounts)
        self.rows = len(self.model.rows)
        self.solver.run()
        return list(self.solver.getSolution().col_value)


class Program:
    """A linear program that stays in the solver: its numbers change, columns and rows come, and
    each answer starts from the one before."""

    def __init__(self, model: Columns) -> None:
        self.solver = _solver()
        self.solver.passModel(_lp(model, integer=False))

    def priced(self, costs: Sequence[float], upper: Sequence[float]) -> tuple[float, list[float]]:
        """The objective at these costs and bounds, and the columns' reduced costs."""
        import numpy as np

        columns = np.arange(len(costs), dtype=np.int32)
        self.solver.changeColsCost(len(costs), columns, np.array(costs))
        lower = np.zeros(len(costs))
        self.solver.changeColsBounds(len(costs), columns, lower, np.array(upper, dtype=float))
        self.solver.run()
        solution = self.solver.getSolution()
        return self.solver.getInfo().objective_function_value, list(solution.col_dual)

    def column(self, cost: float, terms: Mapping[int, float]) -> int:
        """A new column, without an upper bound; its number."""
        import numpy as np

        rows, amounts = np.array(list(terms), dtype=np.int32), np.array(list(terms.values()))
        self.solver.addCol(cost, 0.0, float("inf"), len(terms), rows, amounts)
        return int(self.solver.getNumCol()) - 1

    def bound(self, column: int, low: float, high: float) -> None:
        self.solver.changeColBounds(column, low, high)

    def add_row(self, low: float, high: float, terms: Mapping[int, float]) -> int:
        """A new row; its number."""
        self.solver.addRow(low, high, len(terms), list(terms), list(terms.values()))
        return int(self.solver.getNumRow()) - 1

    def row(self, row: int, low: float, high: float) -> None:
        self.solver.changeRowBounds(row, low, high)

    def term(self, row: int, column: int, amount: float) -> None:
        self.solver.changeCoeff(row, column, amount)

    def feasible(self) -> bool:
        """Whether the last answer keeps all rows and bounds."""
        return str(self.solver.modelStatusToString(self.solver.getModelStatus())) not in INFEASIBLE

    def objective(self) -> float:
        value: float = self.solver.getInfo().objective_function_value
        return value

    def values(self) -> tuple[list[float], list[float]]:
        """By column, and the rows' duals."""
        self.solver.run()
        solution = self.solver.getSolution()
        return list(solution.col_value), list(solution.row_dual)


def _solver(**options: Any) -> Any:
    import highspy

    solver: Any = highspy.Highs()  # type: ignore[no-untyped-call]
    searching = {"threads": 1, "parallel": "off", "random_seed": 1}
    searching["simplex_iteration_limit"] = MOST_ITERATIONS
    for name, value in ({"output_flag": False} | searching | options).items():
        solver.setOptionValue(name, value)
    return solver


def _lp(model: Columns, *, integer: bool) -> Any:
    import highspy
    import numpy as np

    lp = highspy.HighsLp()
    lp.num_col_, lp.num_row_ = len(model.cost), len(model.rows)
    lp.col_cost_ = np.array(model.cost)
    lp.col_lower_ = np.zeros(len(model.cost))
    lp.col_upper_ = np.array(model.upper)
    lp.row_lower_ = np.array([low for low, _, _ in model.rows])
    lp.row_upper_ = np.array([high for _, high, _ in model.rows])
    starts = [0]
    for _, _, terms in model.rows:
        starts.append(starts[-1] + len(terms))
    lp.a_matrix_.format_ = highspy.MatrixFormat.kRowwise
    lp.a_matrix_.start_ = np.array(starts)
    lp.a_matrix_.index_ = np.array([c for _, _, terms in model.rows for c in terms])
    lp.a_matrix_.value_ = np.array([v for _, _, terms in model.rows for v in terms.values()])
    if integer:
        kinds = highspy.HighsVarType
        lp.integrality_ = [kinds.kInteger if w else kinds.kContinuous for w in model.whole]
    return lp
