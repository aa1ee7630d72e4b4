"""Who is let into a notebook by the commands of the README comes into that one alone."""

from __future__ import annotations

import shlex
from collections.abc import Iterator

import pytest

from tests.tools.kube import Kube, Object, Refused
from tests.tools.program import ROOT

pytestmark = pytest.mark.cluster

SPACE = "lab-research"


@pytest.fixture
def space(cluster: Kube) -> Iterator[str]:
    tree = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": SPACE}}
    cluster.apply([Object(tree)])
    yield SPACE
    cluster.delete([Object(tree)])


def may(cluster: Kube, space: str, verb: str, pod: str, subresource: str) -> bool:
    question = (f"--subresource={subresource}",) if subresource else ()
    asked = ("auth", "can-i", verb, f"pods/{pod}", *question, "--as=ada", "-n", space)
    try:
        return cluster.kubectl(*asked).strip() == "yes"
    except Refused:
        return False


def test_a_person_comes_into_their_own_notebook(cluster: Kube, space: str) -> None:
    page = (ROOT / "stacks/lab/README.md").read_text("utf-8")
    made = [line for line in page.splitlines() if "create role" in line and "desks-0" in line]
    assert len(made) == 2
    for line in made:
        _, *words = shlex.split(line.replace("USER", "ada"))
        cluster.kubectl(*words)
    for verb, subresource in (("get", ""), ("create", "exec"), ("get", "portforward")):
        assert may(cluster, space, verb, "desks-0", subresource)
        assert not may(cluster, space, verb, "desks-1", subresource)
    assert not may(cluster, space, "delete", "desks-0", "")
