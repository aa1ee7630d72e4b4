"""How long a run is: the sheets that the search evaluates and the record prints."""

from __future__ import annotations

from gpuplan.sizing.ask.demand import TrainingDemand
from gpuplan.sizing.evidence.formula import Quantity
from gpuplan.sizing.evidence.sheet import Scope, Sheet, floats, sheet

_TOKENS = sheet("""
    steps: 1 = ceil(run_tokens / (global_batch * sequence_length))  # whole steps, rounded up
""")
_EPOCHS = sheet("""
    run_tokens: 1 = epochs * dataset_tokens  # read in all epochs
""")
SEEN = sheet("""
    epochs_seen: 1 = steps * global_batch * sequence_length / dataset_tokens
        # times the dataset is read
""")


def length(demand: TrainingDemand) -> tuple[Sheet, Scope]:
    """The sheet of `steps`, empty where the manifest gives them, and its inputs."""
    scope: Scope = {
        "sequence_length": demand.sequence_length,
        "global_batch": demand.global_batch,
    }
    if demand.steps is not None:
        return Sheet(()), scope | {"steps": demand.steps}
    if demand.tokens is not None:
        return _TOKENS, scope | {"run_tokens": demand.tokens}
    assert demand.epochs is not None
    assert demand.dataset.tokens is not None
    inputs: Scope = {"epochs": demand.epochs, "dataset_tokens": demand.dataset.tokens}
    return _EPOCHS + _TOKENS, scope | inputs


def run_inputs(demand: TrainingDemand) -> Scope:
    """Lengths, batch and steps of the run, for a search."""
    steps, scope = length(demand)
    count = steps(floats(scope))["steps"]
    return scope | {"steps": Quantity(count, "1", "quantity:steps")}
