"""Digests and revisions that `gpuplan.lock` holds: which a plan lacks, and a plan with them."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

from gpuplan.frozen import record
from gpuplan.plan.model import Engine, Plan, Workload

UNKNOWN = "unknown"
DIGEST = re.compile(r"sha256:[0-9a-f]{64}")
COMMIT = re.compile(r"[0-9a-f]{40}")


@record
class Pin:
    """What one name stands for. `kind` is image, chart or model; `name` an image with its tag, a
    chart as `repository chart version`, a model's identifier. `value` is a digest or a commit; None
    where nobody states it."""

    kind: str
    name: str
    value: str | None


def pins(plan: Plan) -> tuple[Pin, ...]:
    """All that a plan names by a text which somebody else could move, in order."""
    return tuple(dict.fromkeys(_pins(plan)))


def _pins(plan: Plan) -> Iterator[Pin]:
    for item in plan.components:
        name = f"{item.repository} {item.chart} {item.version}"
        yield Pin(kind="chart", name=name, value=item.digest)
    engines = [w.engine for w in plan.workloads] + [e for e in (plan.balancer, plan.router) if e]
    images = {e.image: e.digest for e in (*engines, *plan.monitors)}
    for image, digest in sorted(images.items()):
        yield Pin(kind="image", name=image, value=digest or _own(image))
    models = {w.model.identifier: w.model.revision for w in plan.workloads if w.model}
    drafts = (w.serving.speculative for w in plan.workloads if w.serving)
    models |= {d.model: d.revision for d in drafts if d and d.model and d.model not in models}
    for model, revision in sorted(models.items()):
        yield Pin(kind="model", name=model, value=revision)


def _own(image: str) -> str | None:
    """The digest that stands in the image's own name."""
    return image.partition("@")[2] or None


def pinned(plan: Plan, known: Mapping[tuple[str, str], str]) -> Plan:
    """`plan` with what is `known`, by kind and name, of all that it does not state itself."""
    components = tuple(
        replace(c, digest=c.digest or known.get(("chart", f"{c.repository} {c.chart} {c.version}")))
        for c in plan.components
    )
    workloads = tuple(_workload(w, known) for w in plan.workloads)
    return replace(
        plan,
        components=components,
        workloads=workloads,
        balancer=_engine(plan.balancer, known) if plan.balancer else None,
        router=_engine(plan.router, known) if plan.router else None,
        monitors=tuple(_engine(e, known) for e in plan.monitors),
    )


def _engine(engine: Engine, known: Mapping[tuple[str, str], str]) -> Engine:
    if engine.digest is None and _own(engine.image) is None:
        return replace(engine, digest=known.get(("image", engine.image)))
    return engine


def _workload(workload: Workload, known: Mapping[tuple[str, str], str]) -> Workload:
    engine, model = _engine(workload.engine, known), workload.model
    if model is not None and model.revision is None:
        model = replace(model, revision=known.get(("model", model.identifier)))
    serving = workload.serving
    drafts = serving.speculative if serving else None
    if serving and drafts and drafts.model and drafts.revision is None:
        revision = known.get(("model", drafts.model))
        serving = replace(serving, speculative=replace(drafts, revision=revision))
    return replace(workload, engine=engine, model=model, serving=serving)


def of_lock(tree: Any) -> dict[tuple[str, str], str]:
    """What a lock knows. A row of another form knows nothing, and the plan says so again."""
    forms = {
        "image": ("images", "{image}", "digest", DIGEST),
        "chart": ("charts", "{repository} {name} {version}", "digest", DIGEST),
        "model": ("models", "{model}", "revision", COMMIT),
    }
    known: dict[tuple[str, str], str] = {}
    for kind, (section, name, field, form) in forms.items():
        rows = tree.get(section) if isinstance(tree, dict) else None
        for row in rows if isinstance(rows, list) else ():
            value = row.get(field) if isinstance(row, dict) else None
            if isinstance(value, str) and form.fullmatch(value):
                named = name.format_map(defaultdict(str, row))
                known[kind, named] = value
    return known
