"""A mixed-integer model, and HiGHS on it: one thread, one seed, the same answer everywhere."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any


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


def solve(
    model: Columns, *, integer: bool, gap: float, nodes: int = 2000, seconds: float = 60.0
) -> Solved:
    """One thread and a fixed seed: the same answer everywhere, unless `seconds` run out."""
    searching = {"mip_allow_restart": False, "mip_heuristic_run_rins": False}
    solver = _solver(mip_rel_gap=gap, mip_max_nodes=nodes, time_limit=seconds, **searching)
    solver.passModel(_lp(model, integer=integer))
    solver.run()
    info, status = solver.getInfo(), solver.modelStatusToString(solver.getModelStatus())
    mixed = integer and any(model.whole)
    return Solved(
        status=status,
        objective=info.objective_function_value,
        bound=info.mip_dual_bound if mixed else info.objective_function_value,
        values=list(solver.getSolution().col_value),
    )


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


def _solver(**options: Any) -> Any:
    import highspy

    solver: Any = highspy.Highs()  # type: ignore[no-untyped-call]
    searching = {"threads": 1, "parallel": "off", "random_seed": 1}
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
