"""`plan.yaml` and `evidence.yaml` as plain data: what `explain` needs, without the records."""

from __future__ import annotations

from typing import Any, cast

from gpuplan.diagnostics import Diagnostic, error
from gpuplan.errors import Rejected
from gpuplan.render import yaml

PLAN_VERSION = "gpuplan.dev/plan/v1"
EVIDENCE_VERSION = "gpuplan.dev/evidence/v1"


def broken_plan(document: str, detail: str) -> Diagnostic:
    return error(
        "GP008",
        f"{document} is not a plan of this version of gpuplan: {detail}",
        help="compile the stack again from its manifest",
    )


def load_tree(text: str, document: str = "plan.yaml") -> dict[str, Any]:
    """The data of a `plan.yaml`, whoever formatted it. Raises `Rejected`."""
    return _load(text, document, PLAN_VERSION)


def load_evidence(text: str, document: str = "evidence.yaml") -> list[dict[str, Any]]:
    """The entries of an `evidence.yaml`. Raises `Rejected`."""
    return cast("list[dict[str, Any]]", _load(text, document, EVIDENCE_VERSION).get("evidence", []))


def _load(text: str, document: str, expected: str) -> dict[str, Any]:
    try:
        tree: Any = yaml.loads(text)
    except yaml.NotCanonical:
        tree = _general(text, document)
    version = tree.pop("api_version", None) if isinstance(tree, dict) else None
    if version != expected:
        named = f"'{version}'" if version else "no version"
        raise Rejected([broken_plan(document, f"{named} instead of '{expected}'")])
    return cast("dict[str, Any]", tree)


def _general(text: str, document: str) -> Any:
    from ruamel.yaml import YAML
    from ruamel.yaml.error import YAMLError

    try:
        return YAML(typ="safe", pure=True).load(text)
    except YAMLError as problem:
        raise Rejected([broken_plan(document, " ".join(str(problem).split()))]) from problem
