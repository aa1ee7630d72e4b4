"""CustomResourceDefinitions for the custom resources of a stack, as their projects released them.

They are read from the data folder beside the repository, `NAME[-VERSION]/GROUP_PLURAL.yaml`, and
from those that were built with the operators. Core Kubernetes kinds need none of it.
"""

from __future__ import annotations

import time
from collections.abc import Iterable
from pathlib import Path

from tests.support.require import require
from tests.tools import engines
from tests.tools.kube import PATIENCE_SECONDS, Kube, Object, Refused

CRDS = Path(__file__).parents[3] / "shared" / "data" / "crds"


def groups(objects: Iterable[Object]) -> set[str]:
    versions = (o.tree["apiVersion"] for o in objects)
    return {v.partition("/")[0] for v in versions if "/" in v}


def released(group: str, versions: Iterable[str]) -> list[Path]:
    """The definitions of an API group, from the folder of a wanted version if there is one."""
    folders = sorted({f.parent for d in (CRDS, engines.CRDS) for f in d.glob(f"*/{group}_*.yaml")})
    wanted = [f for f in folders if any(f.name.endswith(f"-{v.lstrip('v')}") for v in versions)]
    chosen = wanted or folders
    return sorted(chosen[0].glob(f"{group}_*.yaml")) if chosen else []


def install(kube: Kube, objects: Iterable[Object], versions: Iterable[str]) -> None:
    """Define the groups of `objects` that the server does not know; without them, the test ends."""
    served = kube.kubectl("api-versions").split()
    unknown = groups(objects) - {v.partition("/")[0] for v in served}
    for group in sorted(unknown):
        files = released(group, versions)
        if not files:
            require("crds", f"no definition of '{group}' at hand: {CRDS} is absent or lacks it")
        given = [f"--filename={file}" for file in files]
        kube.kubectl("apply", "--server-side", *given)
        wait = ("--for=condition=Established", f"--timeout={PATIENCE_SECONDS}s")
        _established(kube, (*wait, *given))


def _established(kube: Kube, wait: tuple[str, ...]) -> None:
    """`kubectl wait` fails on a definition that has no conditions yet."""
    deadline = time.monotonic() + PATIENCE_SECONDS
    while True:
        try:
            kube.kubectl("wait", *wait)
            return
        except Refused as problem:
            if "accessor error" not in str(problem) or time.monotonic() > deadline:
                raise
            time.sleep(0.2)
