"""What a person should know of a run beside its numbers."""

from __future__ import annotations

from collections.abc import Iterator

from gpuplan.diagnostics import Change, Diagnostic
from gpuplan.sizing.ask.demand import TrainingDemand
from gpuplan.sizing.ask.messages import contradiction, missing_fact, not_acted_on
from gpuplan.sizing.candidates.sized import Sized
from gpuplan.sizing.evidence.sheet import Scope
from gpuplan.sizing.hardware.offers import Site
from gpuplan.sizing.kinds.training import failures
from gpuplan.sizing.kinds.training.judge import SizedRun
from gpuplan.targets import TARGETS
from gpuplan.units import format_probability, format_seconds, format_usd, plural

LONG_SECONDS = 14 * 86400.0
WORTH = 0.95  # of the time: less than that is said


def noted(
    sized: Sized,
    site: Site,
    demand: TrainingDemand,
    layout: SizedRun,
    scope: Scope,
    *,
    eight: SizedRun | None,
) -> Sized:
    """With what a person should know of a run; `eight` is the same with products of 8 bits."""
    diagnostics: list[Diagnostic] = list(sized.diagnostics)
    diagnostics += _in_eight_bits(demand, layout, eight)
    if "interruptions" in scope and scope["interruptions"].value >= 1:
        diagnostics.append(_interrupted(demand, scope))
    diagnostics += _standing_by(demand, site, sized.workload.nodes_per_replica)
    if site.storage_usd_per_gb_month is None:
        diagnostics.append(
            not_acted_on(
                f"the storage of the checkpoints of '{demand.name}' is not priced",
                demand.origin.child("checkpoint"),
                "write `platform.storage.price`, or a `type` that has one",
            )
        )
    work = sized.workload
    if site.storage_bytes_per_s is None and failures.several(demand, work.nodes_per_replica):
        diagnostics.append(
            missing_fact(
                "the bandwidth of the storage",
                f"what checkpoints and failures take of the time of '{demand.name}'",
                demand.origin.child("checkpoint"),
                "write `platform.storage.bandwidth`; without it none of it is counted",
            )
        )
    seconds = layout.values["time_to_finish"]
    if demand.limit.first is None and seconds > LONG_SECONDS:
        diagnostics.append(
            not_acted_on(
                f"'{demand.name}' takes {format_seconds(seconds)}, the cheapest way to run it",
                demand.origin.child("training"),
                "write `slo: {finish_within: 7 d}` to use more GPUs",
            )
        )
    if demand.dataset.name is not None and demand.dataset.size is None:
        diagnostics.append(
            missing_fact(
                "the size of the dataset",
                f"a volume for '{demand.dataset.name}'",
                demand.origin.child("dataset"),
                "write `size: 200 GB`; without it the engine keeps the data in its scratch space",
            )
        )
    return Sized(workload=sized.workload, evidence=sized.evidence, diagnostics=tuple(diagnostics))


def _standing_by(demand: TrainingDemand, site: Site, nodes: int) -> Iterator[Diagnostic]:
    """Spare nodes that nothing can be, and those of which no number tells what they are worth."""
    if demand.spare_nodes is None:
        return
    at, target = demand.origin.child("training", "spare_nodes"), TARGETS[site.target]
    if not target.stands_by:
        thing, why = "guest", "a guest is made for each part of a run alone"
        if target.one_machine:
            thing, why = "node", "a stack is for one machine"
        yield contradiction(
            f"no {thing} stands by for '{demand.name}'",
            at,
            f"on target '{site.target}' {why}",
            "leave it out",
            Change(at, None),
        )
    elif int(demand.spare_nodes) and (why := failures.uncounted(demand, site, nodes)):
        yield not_acted_on(
            f"'{demand.name}' pays for {plural(int(demand.spare_nodes), 'spare node')}, and what it"
            f" waits for repairs without them is not counted: {why}",
            at,
            "its time is the same with none: leave `spare_nodes` out where nobody needs them",
        )


def _in_eight_bits(
    demand: TrainingDemand, layout: SizedRun, eight: SizedRun | None
) -> Iterator[Diagnostic]:
    """What products of 8 bits would save. They change what is learned, so nobody gets them
    unasked."""
    seconds = layout.values["time_to_finish"]
    if eight is None or eight.values["time_to_finish"] > WORTH * seconds:
        return
    other = eight.values["time_to_finish"]
    yield not_acted_on(
        f"'{demand.name}' would take {format_seconds(other)} instead of"
        f" {format_seconds(seconds)} on its GPUs with products in fp8",
        demand.origin.child("precision"),
        "write `precision: fp8`, and compare the loss: what it learns is not predicted",
    )


def _interrupted(demand: TrainingDemand, scope: Scope) -> Diagnostic:
    """How often nodes fail, and what keeps the run whole."""
    times = scope["interruptions"].value
    saved = format_seconds(scope["saved_every"].value)
    done = " and what is done again"
    if "waiting_share" in scope:
        share = format_probability(scope["waiting_share"].value)
        done = f", what is done again, and {share} of waiting for repairs"
    return not_acted_on(
        f"'{demand.name}' is interrupted about {plural(round(times), 'time')}: a checkpoint every"
        f" {saved}{done} take {format_probability(scope['lost_share'].value)} more time, which is"
        " counted",
        demand.origin.child("checkpoint"),
        _spares(demand, scope),
    )


def _spares(demand: TrainingDemand, scope: Scope) -> str:
    """Whether there are enough nodes that stand by."""
    wise = int(scope["spare_nodes"])
    field = f"`training: {{spare_nodes: {wise}}}`"
    if demand.spare_nodes is None:
        usd = scope.get("spare_usd_per_hour")
        price = "" if usd is None else f", {format_usd(usd.value)}/h"
        return (
            f"write {field} to buy {plural(wise, 'spare node')} beside it{price}, not counted:"
            " with fewer it waits for repairs"
        )
    if int(demand.spare_nodes) < wise:
        return f"write {field}: with so many it is whole 95 % of the time"
    return f"{plural(int(demand.spare_nodes), 'spare node')} beside it: no more are needed"
