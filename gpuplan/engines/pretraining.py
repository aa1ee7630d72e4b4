"""Axolotl's settings of a model that is trained from nothing: its weights, corpus and schedule.

None of it is sized: neither memory nor speed depends on it. Keys are those of `AxolotlInputConfig`
at v0.18.0. Source of the values: Touvron et al., Llama 2 (arXiv:2307.09288), 2.2 and table 1.
"""

from __future__ import annotations

from decimal import Decimal

from gpuplan.plan.model import Training, Workload
from gpuplan.render.commented import Because, Tree

SOURCE = "Llama 2 (arXiv:2307.09288)"
# Peaks of the sizes that were trained: parameters → rate. A size between two has the larger's rate,
# which is the lower one; beyond the last, the last.
PEAKS = ((13_015_864_320, Decimal("0.0003")), (68_976_648_192, Decimal("0.00015")))
WARM_UP_STEPS = 2000
WARM_UP_SHARE = 10  # of a short run, no more than this part


def weights() -> Tree:
    reason = "trained from nothing: only the model's shape and tokenizer are loaded"
    return {"reinit_weights": Because(value=True, reason=reason)}


def corpus(dataset: str) -> Tree:
    """Read while it is trained on: a corpus of 1e11 tokens is not tokenized first."""
    rows: Tree = {"path": dataset, "type": Because("pretrain", "the dataset has a column `text`")}
    return {"pretraining_dataset": [rows], "streaming": True}


def warm_up_steps(training: Training) -> int:
    return min(WARM_UP_STEPS, training.steps // WARM_UP_SHARE)


def schedule(workload: Workload, training: Training) -> Tree:
    assert workload.model is not None
    size = workload.model.parameters
    peak = next((rate for limit, rate in PEAKS if size <= limit), PEAKS[-1][1])
    steps = warm_up_steps(training)
    return {
        "learning_rate": Because(peak, f"not sized: the peak of {SOURCE} for this size"),
        "lr_scheduler": "cosine",
        "cosine_min_lr_ratio": 0.1,
        "warmup_steps": Because(steps, f"{WARM_UP_STEPS}, at most a tenth of the run"),
        "adam_beta1": 0.9,
        "adam_beta2": 0.95,
        "adam_epsilon": Decimal("0.00001"),
        "weight_decay": 0.1,
        "max_grad_norm": 1.0,
    }
