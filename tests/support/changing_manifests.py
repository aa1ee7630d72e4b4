"""What a team may have on one rack, and change from one day to the next."""

from __future__ import annotations

import random
from typing import Any

INVENTORY = """\
apiVersion: gpuplan.dev/inventory/v1
name: rack
hosts:
- names: [n1, n2, n3, n4]
  node_type: dgx-h100
  cpu_vendor: intel
  cpu_cores: 112
  memory: 2 TiB
  gpus:
  - {type: h100-sxm-80gb, count: 8}
"""
STORAGE = (
    {},
    {"class": "fast"},
    {"class": "fast", "shared": True},
    {"class": "own", "shared": False},
)
MODELS = ("meta-llama/Llama-3.2-1B-Instruct", "meta-llama/Llama-3.1-8B-Instruct")


def serving(name: str, model: str, peak: float, team: str) -> dict[str, Any]:
    return {
        "name": name,
        "task": "inference",
        "model": model,
        "precision": "bf16",
        "load": {"requests_per_second": peak, "input_tokens": 700, "output_tokens": 250},
        "tenancy": {"team": team, "isolation": "shared"},
    }


def notebooks(name: str, users: int, team: str) -> dict[str, Any]:
    return {
        "name": name,
        "task": "notebook",
        "notebook": {"users": users, "gpu_memory": "9 GiB"},
        "tenancy": {"team": team, "isolation": "shared"},
    }


def tuning(name: str, epochs: int, team: str) -> dict[str, Any]:
    return {
        "name": name,
        "task": "finetuning",
        "model": "meta-llama/Llama-3.1-8B",
        "precision": "bf16",
        "training": {"sequence_length": 2048, "global_batch": 16, "epochs": epochs},
        "dataset": {"name": "org/data", "tokens": 1e7, "size": "1 GB"},
        "tenancy": {"team": team},
    }


def manifest(*workloads: dict[str, Any], **storage: Any) -> dict[str, Any]:
    platform: dict[str, Any] = {
        "target": "kubernetes",
        "inventory": "rack.yaml",
        "gpus": ["h100-sxm-80gb"],
    }
    if storage:
        platform["storage"] = storage
    return {
        "apiVersion": "gpuplan.dev/v1",
        "name": "shop",
        "platform": platform,
        "workloads": list(workloads),
    }


def random_manifest(chance: random.Random) -> dict[str, Any]:
    """What a team may have and change: loads, models, users, teams, storage, all of it or not."""
    made: list[dict[str, Any]] = []
    if chance.random() < 0.8:
        peak = chance.choice((0.5, 30, 120))
        made.append(serving("chat", chance.choice(MODELS), peak, chance.choice("ab")))
    if chance.random() < 0.6:
        made.append(notebooks("desks", chance.choice((1, 2, 9, 14)), chance.choice("ab")))
    if chance.random() < 0.5:
        made.append(tuning("tuner", chance.choice((1, 3)), "a"))
    if chance.random() < 0.2:
        made.append(
            notebooks("chat2", 1, "b") if chance.random() < 0.5 else tuning("chat2", 1, "b")
        )
    made = made or [notebooks("desks", 3, "a")]
    if made[0]["name"] == "chat" and chance.random() < 0.2:
        made[0] |= {"name": "talk", "renamed_from": ["chat"]}
    return manifest(*made, **chance.choice(STORAGE))
