"""What a merge would do: the steps from one preview to another, as the engine plans them.

Source: pulumi pkg/resource/deploy/step_generator.go (3.259).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Literal

from gpuplan.frozen import record
from gpuplan.preview import urn as urns
from gpuplan.preview.comparing import replace as rules
from gpuplan.preview.comparing.clusters import provider_replacement
from gpuplan.preview.comparing.diff import Change, changes, without_ignored
from gpuplan.preview.registered import LogMessage, Preview, Registered
from gpuplan.preview.values import UNKNOWN, Route, Unknown, leaves, route_text

Operation = Literal["same", "create", "import", "update", "replace", "delete"]


@record
class Step:
    """What happens to one resource. `reasons` are the properties that force a replacement;
    `blocked`: it is protected, so the engine would refuse; `refused`: properties that the API
    server would not let change; `stateful`: this step destroys what cannot be made again;
    `retained`: forgotten, not destroyed; `notes` are changed options."""

    operation: Operation
    urn: str
    old: Registered | None = None
    new: Registered | None = None
    changes: tuple[Change, ...] = ()
    reasons: tuple[str, ...] = ()
    delete_before_replace: bool = False
    blocked: bool = False
    refused: tuple[str, ...] = ()
    stateful: bool = False
    retained: bool = False
    renamed_from: str | None = None
    notes: tuple[str, ...] = ()

    @property
    def resource(self) -> Registered:
        resource = self.new or self.old
        assert resource is not None
        return resource


@record
class Comparison:
    """Steps in the order of the new program, then deletions in reverse of the old one. `unjudged`
    names packages whose rules for replacement are not known here;
    `fresh`: there was nothing to compare with."""

    project: str
    stack: str
    steps: tuple[Step, ...]
    fresh: bool
    outputs: tuple[Change, ...] = ()
    unjudged: tuple[str, ...] = ()
    placeholders: tuple[str, ...] = ()
    messages: tuple[LogMessage, ...] = ()

    def count(self, operation: Operation) -> int:
        return sum(s.operation == operation for s in self.steps)

    @property
    def changed(self) -> bool:
        return any(s.operation != "same" for s in self.steps) or bool(self.outputs)

    @property
    def failing(self) -> tuple[Step, ...]:
        """Steps at which an update would stop."""
        return tuple(s for s in self.steps if s.blocked or s.refused)


@dataclass(slots=True)
class _Planner:
    """The step generator's memory while it walks the new program."""

    base: Preview
    head: Preview
    olds: Mapping[str, Registered]
    news: Mapping[str, Registered]
    successors: dict[str, str] = field(default_factory=dict)  # old URN → new URN
    replaced: set[str] = field(default_factory=set)  # new URNs
    unsettled: set[str] = field(default_factory=set)  # new URNs whose outputs are unknown again
    forced: dict[str, tuple[str, ...]] = field(default_factory=dict)  # old URN → reasons


def compare(base: Preview | None, head: Preview) -> Comparison:
    """The steps from `base` to `head`; without a base everything is created."""
    old = base or Preview(project=head.project, stack=head.stack, resources=(), outputs={})
    planner = _Planner(
        old, head, {r.urn: r for r in old.resources}, {r.urn: r for r in head.resources}
    )
    _match(planner)
    predecessors = {new: planner.olds[urn] for urn, new in planner.successors.items()}
    steps = [_step(planner, predecessors.get(r.urn), r) for r in head.resources]
    steps += list(_deletions(planner))
    touched = [s.resource for s in steps if s.operation in ("update", "replace")]
    packages = {urns.package_of(r.type) for r in touched if not rules.is_known(r)}
    return Comparison(
        project=head.project,
        stack=head.stack,
        steps=tuple(steps),
        fresh=base is None,
        outputs=tuple(changes(old.outputs, head.outputs)),
        unjudged=tuple(sorted(packages)),
        placeholders=head.placeholders,
        messages=head.messages,
    )


def _match(planner: _Planner) -> None:
    """Pair each new resource with the old one of its URN, else of its first alias that is free."""
    for new in planner.head.resources:
        for urn in (new.urn, *new.aliases):
            taken = urn in planner.successors or (urn != new.urn and urn in planner.news)
            if urn in planner.olds and not taken:
                planner.successors[urn] = new.urn
                break


def _step(planner: _Planner, old: Registered | None, new: Registered) -> Step:
    if old is None:
        planner.unsettled.add(new.urn)
        return Step(operation="import" if new.import_id else "create", urn=new.urn, new=new)
    differing = _judged(planner, old, new)
    reasons = _reasons(planner, old, new, differing)
    if differing and not rules.outputs_stay_known(new):
        planner.unsettled.add(new.urn)
    step = Step(
        operation="update" if differing else "same",
        urn=new.urn,
        old=old,
        new=new,
        changes=differing,
        reasons=reasons,
        renamed_from=old.urn if old.urn != new.urn else None,
        notes=tuple(_option_notes(old, new)),
        refused=() if reasons else rules.refused(old, new),
    )
    return _replacement(planner, step, old, new) if reasons else step


def _replacement(planner: _Planner, step: Step, old: Registered, new: Registered) -> Step:
    """`step` as a replacement, which condemns dependents when the old object must go first."""
    condemned = old.urn in planner.forced
    first = new.delete_before_replace
    if first is None:
        first = rules.deletes_first(old, new)
    if first:
        _condemn_dependents(planner, old)
    planner.replaced.add(new.urn)
    planner.unsettled.add(new.urn)
    return replace(
        step,
        operation="replace",
        delete_before_replace=first or condemned,
        blocked=old.protect and (new.protect or condemned),
        stateful=rules.is_stateful(old) and not old.retain_on_delete,
        retained=old.retain_on_delete,
    )


def _deletions(planner: _Planner) -> Iterator[Step]:
    for old in reversed(planner.base.resources):
        if old.urn not in planner.successors:
            yield Step(
                operation="delete",
                urn=old.urn,
                old=old,
                blocked=old.protect,
                stateful=rules.is_stateful(old) and not old.retain_on_delete,
                retained=old.retain_on_delete,
            )


# --- differences ---------------------------------------------------------------------------------


def _judged(planner: _Planner, old: Registered, new: Registered) -> tuple[Change, ...]:
    """The property changes, each with whether it forces a replacement."""
    plain = changes(_comparable(old), _comparable(new))
    differing = without_ignored((*plain, *_unsettled(planner, old, new)), new.ignore_changes)
    if not new.custom:
        return differing
    differing = tuple(c for c in differing if not rules.is_respelled(c))
    patterns = rules.force_new_routes(new, _provider_inputs(planner, new))
    return tuple(replace(c, replaces=rules.forces(patterns, c)) for c in differing)


def _comparable(resource: Registered) -> Mapping[str, Any]:
    """Inputs without what makes no difference: the default namespace may be named or not."""
    metadata = resource.inputs.get("metadata")
    if not isinstance(metadata, Mapping) or metadata.get("namespace") != "default":
        return resource.inputs
    named = {k: v for k, v in metadata.items() if k != "namespace"}
    return {**resource.inputs, "metadata": named}


def _unsettled(planner: _Planner, old: Registered, new: Registered) -> Iterator[Change]:
    """Unknown values that come from another resource than before, or from one that is made again:
    equal to look at, different in fact."""
    before = dict(old.property_dependencies)
    for key, needed in new.property_dependencies:
        same = {planner.successors.get(u, u) for u in before.get(key, ())} == set(needed)
        if same and planner.unsettled.isdisjoint(needed):
            continue
        for route, leaf in leaves(new.inputs.get(key), (key,)):
            if isinstance(leaf, Unknown) and _at(old.inputs, route) == leaf:
                yield Change(route=route, kind="update", old=leaf, new=leaf)


def _at(tree: Any, route: Route) -> Any:
    for part in route:
        if isinstance(part, str) and isinstance(tree, Mapping):
            tree = tree.get(part)
        elif isinstance(part, int) and isinstance(tree, list) and part < len(tree):
            tree = tree[part]
        else:
            return None
    return tree


def _provider_inputs(planner: _Planner, resource: Registered) -> Mapping[str, Any]:
    urn = resource.provider.urn if resource.provider else None
    provider = planner.news.get(urn or "")
    return provider.inputs if provider else {}


def _reasons(
    planner: _Planner, old: Registered, new: Registered, differing: tuple[Change, ...]
) -> tuple[str, ...]:
    """Why `old` cannot become `new` in place; empty when it can."""
    if old.urn in planner.forced:
        return planner.forced[old.urn]
    if planner.replaced.intersection(new.replace_with):
        return ("replaceWith",)
    if _provider_differs(planner, old, new):
        return ("provider",)
    if new.is_provider:
        if new.type.endswith(":kubernetes"):
            return provider_replacement(old.inputs, new.inputs)
        return ()
    return tuple(dict.fromkeys(route_text(c.route) for c in differing if c.replaces))


def _provider_differs(planner: _Planner, old: Registered, new: Registered) -> bool:
    """Whether another provider, or the same one made again, manages the resource now."""
    if old.custom != new.custom:
        return True
    if old.provider is None or new.provider is None:
        return False
    if new.provider.urn in planner.replaced:
        return True
    same = planner.successors.get(old.provider.urn or "", old.provider.urn) == new.provider.urn
    if same or new.provider.package != "kubernetes":
        return False
    before = planner.olds.get(old.provider.urn or "")
    after = planner.news.get(new.provider.urn or "")
    return bool(
        provider_replacement(before.inputs if before else {}, after.inputs if after else {})
    )


def _condemn_dependents(planner: _Planner, root: Registered) -> None:
    """Resources that must go before `root` can: those whose properties come from it and cannot
    change in place, and theirs (step_generator.go, calculateDependentReplacements)."""
    condemned = {root.urn}
    for old in planner.base.resources:
        if old.custom and old.urn not in condemned:
            reasons = _condemned_by(planner, old, condemned)
            if reasons:
                condemned.add(old.urn)
                planner.forced.setdefault(old.urn, reasons)


def _condemned_by(planner: _Planner, old: Registered, condemned: set[str]) -> tuple[str, ...]:
    if old.provider and old.provider.urn in condemned:
        return ("provider",)
    new = planner.news.get(planner.successors.get(old.urn, ""))
    patterns = rules.force_new_routes(old, _provider_inputs(planner, new) if new else {})
    return tuple(
        key
        for key, needed in old.property_dependencies
        if condemned.intersection(needed)
        and rules.forces(patterns, Change(route=(key,), kind="update", new=UNKNOWN))
    )


def _option_notes(old: Registered, new: Registered) -> Iterator[str]:
    """Changed options that alter no object, but what may happen to it later."""
    for name in ("protect", "retain_on_delete"):
        before, after = getattr(old, name), getattr(new, name)
        if before != after:
            yield f"{name} {'on' if after else 'off'}"
    if old.provider and new.provider and old.provider.version != new.provider.version:
        yield f"{new.provider.package} {old.provider.version} → {new.provider.version}"
