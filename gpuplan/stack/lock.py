"""`gpuplan.lock`: what a stack was made from."""

from __future__ import annotations

from typing import Any

from gpuplan.plan.model import Plan
from gpuplan.plan.outside.pins import UNKNOWN, pins
from gpuplan.render import yaml

LOCK_VERSION = "gpuplan.dev/lock/v1"


def lock(plan: Plan) -> str:
    """By version and digest; `unknown` where no source states one, until `gpuplan lock --online`
    asks for it."""
    stated = pins(plan)
    tree: dict[str, Any] = {
        "api_version": LOCK_VERSION,
        "gpuplan": plan.provenance.gpuplan_version,
        "catalog_sha256": plan.provenance.catalog_sha256,
        "catalog": {d.name: d.sha256 for d in plan.provenance.catalog},
        "inputs": {d.name: d.sha256 for d in plan.provenance.inputs},
        "prices": {"source": plan.cost.price_source, "date": plan.cost.price_date},
        "charts": [
            {
                "name": c.chart,
                "repository": c.repository,
                "version": c.version,
                "digest": c.digest or UNKNOWN,
            }
            for c in plan.components
        ],
        "images": [
            {"image": p.name, "digest": p.value or UNKNOWN} for p in stated if p.kind == "image"
        ],
        "models": [
            {"model": p.name, "revision": p.value or UNKNOWN} for p in stated if p.kind == "model"
        ],
    }
    return "# What this stack was made from.\n" + yaml.dumps(tree)
