"""Apply a stack to nodes that exist on paper, and read what the scheduler made of its pods."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from gpuplan.frozen import record
from gpuplan.kubernetes.routed import ROUTERS
from gpuplan.plan.model import Plan
from gpuplan.simulate import groups
from gpuplan.simulate.cards import DOMAIN, channels
from gpuplan.simulate.kube import Kube, Object
from gpuplan.simulate.nodes import cards, nodes, volumes
from gpuplan.simulate.plane import running

NAME = "app.kubernetes.io/name"
PATIENCE_SECONDS = 120
POLL_SECONDS = 0.5
SETTLED = 6  # looks at the pods after which what did not change will not


@record
class Placed:
    """One pod. `node` is None while it is pending, for the scheduler's `reason`."""

    workload: str
    pod: str
    node: str | None
    reason: str = ""


@record
class Outcome:
    """`nodes` are those that there were; `skipped` the kinds that a bare API server does not know;
    `expected` the pods that the plan wants."""

    nodes: tuple[str, ...]
    pods: tuple[Placed, ...]
    expected: int
    skipped: tuple[str, ...] = ()

    @property
    def pending(self) -> tuple[Placed, ...]:
        return tuple(p for p in self.pods if p.node is None)

    @property
    def missing(self) -> int:
        """Pods that nobody made."""
        return max(0, self.expected - len(self.pods))


def node_names(plan: Plan) -> tuple[str, ...]:
    return tuple(n.tree["metadata"]["name"] for n in nodes(plan))


def simulate(
    plan: Plan,
    objects: Sequence[Object],
    programs: Mapping[str, Path | None],
    without: Sequence[str] = (),
    progress: Callable[[str], None] = lambda _: None,
) -> Outcome:
    """What becomes of the pods of `objects` on the plan's nodes but those named in `without`.
    Raises `NotStarted` and `Refused`."""
    with TemporaryDirectory() as folder:
        progress("starting a control plane")
        with running(Path(folder), programs, full=True) as plane:
            return _on(Kube(plane), plan, objects, without, progress)


def _on(
    kube: Kube,
    plan: Plan,
    objects: Sequence[Object],
    without: Sequence[str],
    progress: Callable[[str], None],
) -> Outcome:
    left = [n for n in nodes(plan) if n.tree["metadata"]["name"] not in without]
    known, skipped = _known(kube, objects)
    known = [o for o in known if not _of_node(o, without)]
    progress(f"applying {len(known)} objects to {len(left)} nodes")
    kube.apply([*left, *cards(plan, without), *volumes(known)])
    made = [*channels(objects), *groups.pods(objects), *groups.started(objects)]
    kube.apply([*known, *made])
    expected = sum(w.members for w in plan.workloads)
    expected += ROUTERS * sum(w.disaggregation is not None for w in plan.workloads)
    placed = _settled(kube, expected, progress)
    names = tuple(n.tree["metadata"]["name"] for n in left)
    return Outcome(nodes=names, pods=placed, expected=expected, skipped=skipped)


def _known(kube: Kube, objects: Iterable[Object]) -> tuple[list[Object], tuple[str, ...]]:
    """The objects of API versions that the server has, and the kinds of the others."""
    served = set(kube.kubectl("api-versions").split())
    known: list[Object] = []
    skipped: set[str] = set()
    for item in objects:
        if item.tree["apiVersion"] in served:
            known.append(item)
        elif item.tree["kind"] not in (*groups.KINDS, DOMAIN):  # what they bring is made here
            skipped.add(f"{item.tree['apiVersion']} {item.tree['kind']}")
    return known, tuple(sorted(skipped))


def _of_node(item: Object, names: Sequence[str]) -> bool:
    """Whether it is a patch of a node that is away: applied, it would make that node."""
    return item.tree["kind"] == "Node" and item.tree["metadata"]["name"] in names


def _settled(kube: Kube, expected: int, progress: Callable[[str], None]) -> tuple[Placed, ...]:
    """The pods once all are there and bound, or nothing has changed for some looks."""
    deadline, same = time.monotonic() + PATIENCE_SECONDS, 0
    before: tuple[Placed, ...] = ()
    while time.monotonic() < deadline:
        now = _pods(kube)
        bound = sum(p.node is not None for p in now)
        progress(f"{bound} of {expected} pods are bound")
        decided = all(p.node or p.reason for p in now)
        same = same + 1 if now == before and decided and now else 0
        if bound >= expected or same >= SETTLED:
            return now
        before = now
        time.sleep(POLL_SECONDS)
    return before


def _pods(kube: Kube) -> tuple[Placed, ...]:
    items: list[dict[str, Any]] = json.loads(kube.kubectl("get", "pods", "-A", "-o", "json"))[
        "items"
    ]
    placed = [
        Placed(
            workload=item["metadata"].get("labels", {}).get(NAME, ""),
            pod=f"{item['metadata']['namespace']}/{item['metadata']['name']}",
            node=item["spec"].get("nodeName"),
            reason=_reason(item),
        )
        for item in items
    ]
    return tuple(sorted(placed, key=lambda p: (p.workload, p.pod)))


def _reason(pod: Mapping[str, Any]) -> str:
    """Why it is not bound, in the scheduler's words."""
    conditions = pod.get("status", {}).get("conditions", ())
    said = [c.get("message", "") for c in conditions if c.get("type") == "PodScheduled"]
    return "" if pod["spec"].get("nodeName") else "; ".join(filter(None, said))
