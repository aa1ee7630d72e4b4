"""Models that are not bundled but measured: dimensions by a short name, in one table."""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path
from typing import Any

from gpuplan.models.configs import citation, from_config
from gpuplan.models.model import Transformer
from gpuplan.source import Origin

TABLE = Path(__file__).with_name("further.json")


@cache
def _table() -> dict[str, Any]:
    return dict(json.loads(TABLE.read_bytes()))


@cache
def further_names() -> dict[str, str]:
    """What the models are called, and the short name of each."""
    rows = _table()["models"]
    return {name: short for short, row in rows.items() for name in (short, *row.get("names", ()))}


@cache
def aliases() -> dict[str, str]:
    """Other names of bundled models: releases of the same network."""
    return dict(_table()["aliases"])


def config_of(name: str) -> tuple[dict[str, Any], str]:
    """A model of the table as a `config.json` says it, and its source. Raises `KeyError`."""
    table = _table()
    row = table["models"][name]
    stated = dict(zip(table["columns"], row["dimensions"], strict=True))
    config = {k: v for k, v in stated.items() if v is not None} | row.get("more", {})
    config["architectures"] = [row["architecture"]]
    return config, citation(table["sources"][row["source"]])


@cache
def further(name: str) -> Transformer:
    """A model of the table. Raises `KeyError`."""
    config, cited = config_of(name)
    source = f"model: {name} ({cited})"
    return from_config(config, name, None, source, Origin(TABLE.name, ("models", name)))
