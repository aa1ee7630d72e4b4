"""What a stack has is valid in the oldest release of Kubernetes that its README says it needs; the
API server of other tests is of a newer one."""

from __future__ import annotations

import copy
from pathlib import Path

import pytest

from gpuplan.kubernetes import requirements
from gpuplan.kubernetes.lower import lower
from tests.support.plans import read_plan
from tests.tools import schemas
from tests.tools.kube import Object
from tests.tools.program import ROOT
from tests.tools.stacks import clusters, objects_of

pytestmark = pytest.mark.sdk


@pytest.mark.parametrize("stack", clusters(), ids=lambda s: s.name)
def test_the_oldest_release_accepts_a_stack(stack: Path) -> None:
    plan = read_plan(stack)
    release = str(requirements.release(lower(plan).objects, plan.components))
    assert schemas.faults(objects_of(stack), release) == []


def test_an_older_release_and_an_unknown_field_are_told() -> None:
    (deployment,) = (
        o for o in objects_of(ROOT / "stacks" / "chat") if o.tree["kind"] == "Deployment"
    )
    (fault,) = schemas.faults([deployment], "1.28")  # a pause before a stop is of 1.29
    assert "sleep" in fault
    tree = copy.deepcopy(deployment.tree)
    tree["spec"]["replica"] = 1
    (fault,) = schemas.faults([Object(tree)], schemas.NEWEST)
    assert "replica" in fault
