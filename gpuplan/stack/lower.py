"""Plan → the files that every stack has. The README says in a minute what is built, why, at what
cost; how to apply it say the backends."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import groupby

from gpuplan.emission import HEADINGS, Emission, Section
from gpuplan.frozen import frozen
from gpuplan.plan import serialize, wording
from gpuplan.plan.costs.units import BASES, unit_costs
from gpuplan.plan.model import Component, Plan, Workload
from gpuplan.render.commented import Tree
from gpuplan.render.environments import Verbatim, render
from gpuplan.render.markdown import code, escape
from gpuplan.render.tree import File, FileTree
from gpuplan.stack.lock import lock
from gpuplan.units import format_bytes

# Folded in the diffs of GitHub and GitLab: what follows from files that a reviewer reads.
ATTRIBUTES = "".join(
    f"{name} linguist-generated gitlab-generated\n" for name in ("evidence.yaml", "checksums.txt")
)


@frozen
class Why:
    """One workload's choice: a sentence, what was expected, what was rejected."""

    name: Verbatim
    choice: str
    facts: tuple[str, ...]
    rejected: tuple[str, ...]


@frozen
class Readme:
    name: Verbatim
    description: str | None
    facts: tuple[tuple[str, str], ...]
    workloads: tuple[tuple[Verbatim, ...], ...]
    why: tuple[Why, ...]
    sections: tuple[Section, ...]


def stack(plan: Plan, emissions: Sequence[Emission]) -> FileTree:
    """`emissions` are those of the target's backends, in order."""
    readme = render("markdown", "stack/README.md.j2", stack=view(plan, emissions))
    files = (
        File("README.md", readme),
        File("plan.yaml", serialize.dump(plan)),
        File("evidence.yaml", serialize.dump_evidence(plan)),
        File(".gitattributes", ATTRIBUTES, seed=True),
        File("gpuplan.lock", lock(plan)),
    )
    return FileTree(files)


def view(plan: Plan, emissions: Sequence[Emission]) -> Readme:
    rows: list[Tree] = serialize.to_tree(plan.workloads)
    numbers = {e.quantity: e.value for e in plan.evidence}
    return Readme(
        name=Verbatim(escape(plan.name)),
        description=plan.description,
        facts=tuple(_facts(plan)),
        workloads=tuple(map(_row, rows)),
        why=tuple(
            _why(row, _units(work, numbers)) for row, work in zip(rows, plan.workloads, strict=True)
        ),
        sections=tuple(_sections(plan, emissions)),
    )


def _sections(plan: Plan, emissions: Sequence[Emission]) -> Iterator[Section]:
    """How to prepare, apply and remove the stack, in the words of its backends."""
    texts: dict[str, list[str]] = {heading: [] for heading in HEADINGS}
    for section in (s for e in emissions for s in e.sections):
        texts.setdefault(section.heading, []).append(section.text.strip("\n"))
    if not texts["Apply"]:
        paths = [Verbatim(code(f.path)) for e in emissions for f in e.files]
        text = render("markdown", "stack/apply.md.j2", target=plan.target, paths=paths)
        texts["Apply"].append(text.strip("\n"))
    for heading, parts in texts.items():
        if parts:
            yield Section(heading, Verbatim("\n\n".join(parts)))


def _facts(plan: Plan) -> Iterator[tuple[str, str]]:
    yield "target", plan.target + (f", {plan.region}" if plan.region else "")
    for pool in plan.node_pools:
        yield f"pool {pool.name}", "; ".join(filter(None, (pool.shape, *pool.cuts, pool.idle)))
    if plan.virtual_machines:
        yield "virtual machines", ", ".join(f"{m.name} on {m.host}" for m in plan.virtual_machines)
    yield "cost", _cost(plan)
    if (power := plan.cost.power) is not None:
        yield "power", power
    for item in plan.components:
        yield f"component {item.name}", "; ".join(_component(item))


def _component(item: Component) -> Iterator[str]:
    yield f"{item.version} from {item.repository}"
    if item.driver_asked_for:
        yield f"driver {item.driver}, as the manifest asks"
    if item.kubernetes_tested:
        yield f"tested with Kubernetes {' to '.join(item.kubernetes_tested)}"
    if item.untested:
        yield f"not tested so: {item.untested}"


def _cost(plan: Plan) -> str:
    cost = plan.cost
    if cost.usd_per_hour is None:
        return "unpriced: no price is known for " + ", ".join(cost.unpriced)
    oldest = f", oldest price of {cost.price_date}" if cost.price_date else ""
    return f"{cost.amounts}; {cost.price_source}{oldest}"


def _row(work: Tree) -> tuple[Verbatim, ...]:
    model = work.get("model", {}).get("identifier", "")
    devices = f"{work['gpu_count']} × {work['gpu']}"
    devices += f" as {work['partition']}" if work.get("partition") else ""
    cells = (
        work["name"],
        work["task"],
        model,
        devices,
        wording.replicas(work),
        wording.price(work),
    )
    return tuple(Verbatim(escape(c)) for c in cells)


def _units(work: Workload, numbers: Mapping[str, float]) -> Iterator[str]:
    """What a unit of its work costs, by basis."""
    for basis, units in groupby(unit_costs(work, numbers), lambda unit: unit.basis):
        at = f"{BASES[basis]}: " if BASES[basis] else ""
        yield f"cost {at}{', '.join(unit.text for unit in units)}"


def _why(work: Tree, units: Iterable[str]) -> Why:
    size = "".join(f"{text}, " for text in wording.division(work["parallelism"]))
    used = sum(v for k, v in work["memory"].items() if k not in ("capacity_bytes", "usable_bytes"))
    expected = wording.expected_memory(work)
    margin = f", margin included ({format_bytes(expected)} expected)" if expected else ""
    choice = (
        f"{work['gpu_count']} × {work['gpu']}, {size}{wording.replicas(work)}:"
        f" {format_bytes(used)} of {format_bytes(work['memory']['capacity_bytes'])}"
        f" on each device{margin}, bound by {work['bound_by']}."
    )
    facts = [wording.memory(work), *map(wording.metric, work.get("metrics", ()))]
    if pools := work.get("disaggregation"):
        facts.append(f"pools: {wording.handed(pools)}")
    facts += units
    if lost := work.get("interruption"):
        facts.append(f"interruption: {', '.join(wording.interruption(lost))}")
    facts += [f"overridden: {wording.override(o)}" for o in work.get("overrides", ())]
    rejected = ["; ".join(wording.alternative(a)) for a in work.get("alternatives", ())]
    if pools := work.get("cheaper_split"):
        rejected.append(", ".join(wording.apart(pools)))
    return Why(Verbatim(escape(work["name"])), choice, tuple(facts), tuple(rejected))
