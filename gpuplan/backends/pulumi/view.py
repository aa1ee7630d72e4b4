"""What the templates print: statements of a program, and the resources they register."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace

from gpuplan.backends.pulumi import typed
from gpuplan.kubernetes.objects import KubernetesObject
from gpuplan.plan.model import record
from gpuplan.render import python
from gpuplan.render.environments import Verbatim
from gpuplan.render.python import Call, Commented, Expression, Name

PLAIN = (str, int, float)
SKIP_AWAIT = "pulumi.com/skipAwait"
BRINGS_PODS = ("Deployment", "StatefulSet", "Job", "CronJob", "JobSet", "LeaderWorkerSet")
# A chart of the stack defines it, and its controller must be there until it is gone.
CONTROLLED = ("ComputeDomain",)
# Asked to run a Job again, Pulumi makes the new one before the old one of that name goes.
RUNS_AGAIN = ("Job", "JobSet")
SHORT = {
    "ConfigMap": "config",
    "NetworkPolicy": "policy",
    "NicClusterPolicy": "policy",
    "PersistentVolumeClaim": "claim",
    "PriorityClass": "class",
    "ResourceClaimTemplate": "devices",
    "ResourceQuota": "quota",
    "ServiceAccount": "account",
}


@record
class Resource:
    """A line of the list of identities. `marks` are `protect`, `retain`, `former=NAME`,
    `if=SETTING`."""

    type: str
    name: str
    marks: tuple[str, ...] = ()

    def __str__(self) -> str:
        return "  ".join((f"{self.type}::{self.name}", *self.marks))


def annotated(item: KubernetesObject) -> KubernetesObject:
    """`item` with what Pulumi reads from annotations: `skip_await`."""
    if not item.skip_await:
        return item
    metadata = item.tree["metadata"]
    notes = {**metadata.get("annotations", {}), SKIP_AWAIT: "true"}
    return replace(item, tree={**item.tree, "metadata": {**metadata, "annotations": notes}})


@record
class Constant:
    """A value that a module names once, because several of its statements hold it."""

    variable: Verbatim
    value: Expression

    @property
    def code(self) -> Verbatim:
        return Verbatim(python.expression(self.value, lead=f"{self.variable} = "))


def statement(
    item: KubernetesObject,
    variables: Mapping[str, str],
    module: str,
    *,
    indent: int = 0,
    constants: Iterable[Constant] = (),
) -> Verbatim:
    """The statement that registers `item`. `variables` maps identities to `module.variable`: an
    item that is not in it gets no variable, because nothing refers to it."""
    item = annotated(item)
    arguments = typed.arguments(item)
    for constant in constants:
        arguments = tuple((name, _shared(value, constant)) for name, value in arguments)
    call = Call(
        f"{typed.PACKAGE}.{typed.class_name(item)}",
        (item.key,),
        (*arguments, ("opts", options(item, variables, module))),
    )
    name = variables.get(item.identity, "").removeprefix(f"{module}.")
    lead = f"{name} = " if name else ""
    return Verbatim(python.expression(call, indent=indent, lead=lead))


def held(item: KubernetesObject, constant: Constant) -> int:
    """How often the arguments of `item` hold the constant's value."""
    return sum(_count(value, constant.value) for _, value in typed.arguments(item))


def _count(value: Expression, wanted: Expression) -> int:
    if _same(value, wanted):
        return 1
    if isinstance(value, PLAIN):
        return 0
    inner: Iterable[Expression] = ()
    if isinstance(value, Commented):
        inner = (value.value,)
    elif isinstance(value, Call):
        inner = (child for _, child in value.keywords)
    elif isinstance(value, Mapping):
        inner = value.values()
    elif isinstance(value, list):
        inner = value
    return sum(_count(child, wanted) for child in inner)


def _same(one: Expression, other: Expression) -> bool:
    """Whether both are one value; reasons do not count."""
    if isinstance(one, PLAIN) and not isinstance(other, Commented):  # most of a tree
        return one == other
    if isinstance(one, Commented) or isinstance(other, Commented):
        bare = (e.value if isinstance(e, Commented) else e for e in (one, other))
        return _same(*bare)
    if isinstance(one, Call) and isinstance(other, Call):
        head = (one.function, one.positional) == (other.function, other.positional)
        return head and _same(dict(one.keywords), dict(other.keywords))
    if isinstance(one, Mapping) and isinstance(other, Mapping):
        return [*one] == [*other] and all(_same(one[k], other[k]) for k in one)
    if isinstance(one, list) and isinstance(other, list):
        return len(one) == len(other) and all(map(_same, one, other))
    return one == other


def _shared(value: Expression, constant: Constant) -> Expression:
    """`value` with the constant's name wherever its value stands."""
    if _same(value, constant.value):
        return Name(constant.variable)
    if isinstance(value, PLAIN):
        return value
    if isinstance(value, Commented):
        return Commented(value.comment, _shared(value.value, constant))
    if isinstance(value, Call):
        keywords = tuple((name, _shared(child, constant)) for name, child in value.keywords)
        return Call(value.function, value.positional, keywords)
    if isinstance(value, Mapping):
        return {name: _shared(child, constant) for name, child in value.items()}
    return [_shared(v, constant) for v in value] if isinstance(value, list) else value


def options(item: KubernetesObject, variables: Mapping[str, str], module: str) -> Expression:
    here = f"{module}."
    needs: list[Expression] = [Name(variables[i].removeprefix(here)) for i in item.depends_on]
    if item.kind in (*BRINGS_PODS, *CONTROLLED) and "addons" in variables:
        needs.insert(0, Name(variables["addons"]))
    former: list[Expression] = [
        Call("pulumi.Alias", (), (("name", identity.partition("/")[2]),))
        for identity in item.former
    ]
    given: list[tuple[str, Expression]] = [
        ("provider", Name("provider" if module == "cluster" else "cluster.provider")),
        ("depends_on", needs or None),
        ("protect", item.protect or None),
        ("retain_on_delete", item.retain_on_delete or None),
        ("delete_before_replace", (item.kind in RUNS_AGAIN) or None),
        ("aliases", former or None),
        ("custom_timeouts", _timeouts(item)),
    ]
    return Call("pulumi.ResourceOptions", (), tuple(g for g in given if g[1] is not None))


def _timeouts(item: KubernetesObject) -> Expression:
    create, update = item.timeout_seconds, item.update_seconds or item.timeout_seconds
    if create is None:
        return None
    return Call("pulumi.CustomTimeouts", (), (("create", f"{create}s"), ("update", f"{update}s")))


def resource(item: KubernetesObject) -> Resource:
    marks = [*(["protect"] if item.protect else []), *(["retain"] if item.retain_on_delete else [])]
    marks += [f"former={identity.partition('/')[2]}" for identity in item.former]
    marks += [f"if={item.only_if}"] if item.only_if else []
    return Resource(type=typed.type_token(item), name=item.key, marks=tuple(marks))


def variables(items: Iterable[KubernetesObject]) -> dict[str, str]:
    """`module.variable` for each object that another one refers to."""
    items = tuple(items)
    wanted = {identity for item in items for identity in item.depends_on}
    return {i.identity: f"{i.group}.{_variable(i)}" for i in items if i.identity in wanted}


def _variable(item: KubernetesObject) -> str:
    """Keys have no `_` and a kind is one word, so that two objects never share a variable."""
    return python.identifier(f"{item.key}-{SHORT.get(item.kind, item.kind)}")
