"""`plan.yaml` and `evidence.yaml` as plain data: what `explain` needs, without the records."""

from __future__ import annotations

from typing import Any, cast

from gpuplan.diagnostics import AGAIN, Diagnostic, error
from gpuplan.errors import Rejected
from gpuplan.render import yaml

PLAN_VERSION = "gpuplan.dev/plan/v1"
EVIDENCE_VERSION = "gpuplan.dev/evidence/v1"
LONGEST_REFORMATTED = 4 * 2**20
# What ruamel.yaml raises beside its own errors, of texts that are no YAML.
_UNREADABLE = (ArithmeticError, AttributeError, LookupError, RecursionError, TypeError, ValueError)


def broken_plan(document: str, detail: str) -> Diagnostic:
    return error(
        "GP008",
        f"{document} is not a plan of this version of gpuplan: {detail}",
        help=AGAIN,
    )


def load_tree(text: str, document: str = "plan.yaml") -> dict[str, Any]:
    """The data of a `plan.yaml`, whoever formatted it. Raises `Rejected`."""
    return _load(text, document, PLAN_VERSION)


def load_evidence(text: str, document: str = "evidence.yaml") -> list[dict[str, Any]]:
    """The entries of an `evidence.yaml`. Raises `Rejected`."""
    entries = _load(text, document, EVIDENCE_VERSION).get("evidence", [])
    return cast("list[dict[str, Any]]", entries)


def _load(text: str, document: str, expected: str) -> dict[str, Any]:
    try:
        tree: Any = yaml.loads(text)
    except yaml.NotCanonical:
        tree = _general(text, document)
    version = tree.pop("api_version", None) if isinstance(tree, dict) else None
    if version != expected:
        named = f"is '{str(version)[:60]}'" if version else "is missing"
        raise Rejected([broken_plan(document, f"api_version {named} instead of '{expected}'")])
    return cast("dict[str, Any]", tree)


def _general(text: str, document: str) -> Any:
    """Of a text that another program formatted. None has aliases, which multiply what is read."""
    from ruamel.yaml.error import MarkedYAMLError, YAMLError
    from ruamel.yaml.events import AliasEvent

    from gpuplan.render.shallow import reader

    if len(text) > LONGEST_REFORMATTED:
        fault = f"it was reformatted, and is longer than {LONGEST_REFORMATTED >> 20} MiB"
        raise Rejected([broken_plan(document, fault)])
    try:
        if any(isinstance(event, AliasEvent) for event in reader().parse(text)):
            raise Rejected([broken_plan(document, "it has aliases")])
        return reader().load(text)
    except MarkedYAMLError as problem:
        mark = problem.problem_mark or problem.context_mark
        place = f"line {mark.line + 1}: " if mark else ""
        fault = f"{place}{problem.problem or problem.context}"
        raise Rejected([broken_plan(document, fault)]) from problem
    except (*_UNREADABLE, YAMLError) as problem:
        raise Rejected([broken_plan(document, "it is not YAML that can be read")]) from problem
