"""A Hub's cache with the configuration of each bundled model, for parsers that read it.

Bundled configurations are those fields of a `config.json` that the sizing reads; what the engines
need beside them is filled in here, with the value that the libraries took before they asked for it.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from gpuplan.models import load as models

BUNDLED = Path(models.__file__).parent / "bundled"
# Under which names recipes of Megatron-Bridge ask for a configuration of the same shape.
RENAMED = {
    "meta-llama/Llama-3.1-405B": "meta-llama/Meta-Llama-3.1-405B",
    "meta-llama/Llama-3.1-70B": "meta-llama/Meta-Llama-3.1-70B",
    "meta-llama/Llama-3.1-8B": "meta-llama/Meta-Llama-3.1-8B",
    "meta-llama/Llama-3.2-1B-Instruct": "meta-llama/Llama-3.2-1B",
    "meta-llama/Llama-3.2-3B-Instruct": "meta-llama/Llama-3.2-3B",
    "meta-llama/Meta-Llama-3-70B-Instruct": "meta-llama/Meta-Llama-3-70B",
    "meta-llama/Meta-Llama-3-8B-Instruct": "meta-llama/Meta-Llama-3-8B",
}
BRANCH = "0" * 40  # a commit for models whose own is not known


def write(folder: Path, types: dict[str, str], wanted: set[tuple[str, str | None]]) -> set[str]:
    """`wanted`: identifiers and revisions; `types`: what transformers calls the classes.
    Returns those identifiers that there is a configuration of."""
    written = set()
    for path in sorted(BUNDLED.glob("*.json")):
        model = json.loads(path.read_text("utf-8"))
        config, name = model.get("config"), model["identifier"]
        full = filled(config, types) if config else None
        for commit in (c for n, c in wanted if n == name) if full else ():
            _snapshot(folder, name, commit or BRANCH, full)
            if name in RENAMED:
                _snapshot(folder, RENAMED[name], BRANCH, full)
            written.add(name)
    return written


def filled(config: dict[str, Any], types: dict[str, str]) -> dict[str, Any] | None:
    """None for a class that transformers does not know: such models bring their own code."""
    kind = config.get("model_type") or types.get((config.get("architectures") or [""])[0])
    if kind is None:
        return None
    full = {"model_type": kind} | config
    if kind in ("bert", "xlm-roberta"):
        full.setdefault("position_embedding_type", "absolute")
    quantized = full.get("quantization_config")
    if quantized and quantized.get("quant_method") == "fp8":
        full["quantization_config"] = {"activation_scheme": "dynamic"} | quantized
    return full


def _snapshot(folder: Path, name: str, commit: str, config: dict[str, Any]) -> None:
    model = folder / "hub" / f"models--{name.replace('/', '--')}"
    (model / "refs").mkdir(parents=True, exist_ok=True)
    (model / "snapshots" / commit).mkdir(parents=True, exist_ok=True)
    if commit == BRANCH:
        (model / "refs" / "main").write_text(commit, encoding="utf-8")
    (model / "snapshots" / commit / "config.json").write_text(json.dumps(config), encoding="utf-8")
