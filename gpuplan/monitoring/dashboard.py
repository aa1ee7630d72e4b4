"""The plan's dashboard for Grafana: what is served beside what was promised, and the GPUs."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from gpuplan.monitoring import metrics, queries
from gpuplan.monitoring.scrape import told
from gpuplan.plan.model import Plan, Workload
from gpuplan.render.commented import Tree

SCHEMA = 39  # of dashboards. Source: Grafana, packages/grafana-schema, dashboard_kind.cue
SOURCE = {"type": "prometheus", "uid": "prometheus"}
WIDTH, HEIGHT, PER_ROW = 8, 8, 3

Query = tuple[str, str]  # a legend, PromQL


@dataclass(slots=True)
class _Board:
    """Panels, in rows of three below a title."""

    panels: list[Tree] = field(default_factory=list)
    top: int = 0
    column: int = 0

    def title(self, text: str) -> None:
        self._break()
        place = {"h": 1, "w": WIDTH * PER_ROW, "x": 0, "y": self.top}
        row = {"id": self._next, "type": "row", "title": text, "gridPos": place}
        self.panels.append(row | {"collapsed": False, "panels": []})
        self.top += 1

    def add(self, title: str, unit: str, queried: list[Query], limit: float | None = None) -> None:
        if self.column == PER_ROW:
            self._break()
        place = {"h": HEIGHT, "w": WIDTH, "x": self.column * WIDTH, "y": self.top}
        self.column += 1
        self.panels.append(_panel(self._next, title, unit, queried, limit) | {"gridPos": place})

    @property
    def _next(self) -> int:
        return len(self.panels) + 1

    def _break(self) -> None:
        self.top += HEIGHT if self.column else 0
        self.column = 0


def dashboard(plan: Plan) -> Tree:
    """Grafana's JSON model."""
    board = _Board()
    for workload in filter(told, plan.workloads):
        board.title(workload.name)
        _workload(board, plan, workload)
    board.title("GPUs")
    _gpus(board, plan)
    return {
        "uid": f"gpuplan-{plan.name}"[:40],
        "title": plan.name,
        "tags": ["gpuplan"],
        "timezone": "browser",
        "schemaVersion": SCHEMA,
        "refresh": "30s",
        "time": {"from": "now-3h", "to": "now"},
        "panels": board.panels,
    }


def _workload(board: _Board, plan: Plan, workload: Workload) -> None:
    series, names = queries.selector(plan, workload=workload.name), queries.metrics_of(workload)
    for metric in workload.metrics:
        histogram = queries.timed(workload, metric)
        if histogram and metric.sense == "at_most":
            which = metric.statistic
            title = f"{which or 'mean'} {metric.name.replace('_', ' ')}"
            drawn = queries.statistic(histogram, which, series)
            lines = [("measured", drawn), ("planned", f"vector({metric.estimate.value!r})")]
            board.add(title, "s", lines, metric.limit)
    finished = f"{names.latency}_count"
    board.add("requests per second", "reqps", [("finished", queries.rate(finished, series))])
    running = [("running", f"sum({names.running}{series})")]
    waiting = [("waiting", f"sum({names.waiting}{series})")]
    batch = workload.serving.max_num_seqs * workload.replicas if workload.serving else None
    board.add("requests at once", "short", running + waiting, batch)
    tokens = [
        ("output", queries.rate(names.output_tokens, series)),
        ("input", queries.rate(names.input_tokens, series)),
    ]
    board.add("tokens per second", "short", tokens)
    cache = [("{{replica}}", f"{names.cache}{series}")]
    board.add("KV cache in use", "percentunit", cache, 0.95)


def _gpus(board: _Board, plan: Plan) -> None:
    stack = queries.selector(plan)
    legend = "GPU {{gpu}} {{GPU_I_PROFILE}} {{GPU_I_ID}}"
    used, free = f"{metrics.MEMORY_USED}{stack}", f"{metrics.MEMORY_FREE}{stack}"
    watts = [w.watts for w in plan.workloads]
    planned = sum(w for w in watts if w is not None) if all(w is not None for w in watts) else None
    for title, unit, query, limit in (
        ("engine active", "percentunit", f"{metrics.ACTIVE}{stack}", None),
        ("tensor pipe active", "percentunit", f"{metrics.TENSOR_ACTIVE}{stack}", None),
        ("memory interface active", "percentunit", f"{metrics.MEMORY_ACTIVE}{stack}", None),
        ("memory used", "percentunit", f"{used} / ({used} + {free})", None),
        ("temperature", "celsius", f"{metrics.TEMPERATURE}{stack}", None),
        ("last XID error", "none", f"{metrics.FAULT}{stack}", None),
    ):
        board.add(title, unit, [(legend, query)], limit)
    board.add("power of all GPUs", "watt", [("drawn", f"sum({metrics.POWER}{stack})")], planned)


def _panel(number: int, title: str, unit: str, queried: list[Query], limit: float | None) -> Tree:
    steps: list[Tree] = [{"color": "green", "value": None}]
    steps += [{"color": "red", "value": limit}] if limit is not None else []
    shown = {"thresholdsStyle": {"mode": "line" if limit is not None else "off"}}
    defaults = {
        "unit": unit,
        "min": 0,
        "custom": shown,
        "thresholds": {"mode": "absolute", "steps": steps},
    }
    return {
        "id": number,
        "type": "timeseries",
        "title": title,
        "datasource": SOURCE,
        "fieldConfig": {"defaults": defaults, "overrides": []},
        "targets": [*_targets(queried)],
    }


def _targets(queried: list[Query]) -> Iterator[Tree]:
    for letter, (legend, query) in zip("ABCDEF", queried, strict=False):
        yield {"refId": letter, "datasource": SOURCE, "expr": query, "legendFormat": legend}
