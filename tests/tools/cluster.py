"""A real Kubernetes control plane on loopback, of the programs that tests build.

    python tests/tools/cluster.py STACK…    until Ctrl-C, with a scheduler and the stacks' nodes and
                                            volumes on paper; prints how to reach it

$PORT sets the port of the API.
"""

from __future__ import annotations

import os
import signal
import sys
import tempfile
from collections.abc import Iterable, Iterator
from contextlib import AbstractContextManager, suppress
from pathlib import Path

if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).parents[2]))
from gpuplan.simulate import plane
from gpuplan.simulate.plane import CONTEXT, ControlPlane
from tests.tools.engines import BIN, FULL, absent

__all__ = ["CONTEXT", "ControlPlane", "running"]


def running(folder: Path, *, full: bool = False) -> AbstractContextManager[ControlPlane]:
    """A control plane in an empty `folder`. Raises `NotStarted`."""
    found = plane.programs(plane.FULL, BIN)
    port = int(os.environ.get("PORT") or 0)
    return plane.running(folder, found, full=full, port=port or None)


def _furnished(control: ControlPlane, stacks: Iterable[Path]) -> Iterator[str]:
    """Give the cluster what the stacks expect of it; the names of the nodes."""
    from gpuplan.plan.read import read_plan
    from gpuplan.simulate.nodes import nodes, volumes
    from tests.tools.kube import Kube
    from tests.tools.stacks import objects_of

    for stack in stacks:
        made = nodes(read_plan(stack))
        Kube(control).apply([*made, *volumes(objects_of(stack))])
        yield from (o.tree["metadata"]["name"] for o in made)


def main() -> int:
    if missing := absent(FULL):
        print(f"not built: {', '.join(missing)}; `make engines-full` builds them")
        return 1
    with tempfile.TemporaryDirectory() as folder, running(Path(folder), full=True) as control:
        for name in _furnished(control, map(Path, sys.argv[1:])):
            print(f"# node {name}")
        print(
            f"export KUBECONFIG={control.kubeconfig} PATH={BIN}:$PATH   # Ctrl-C ends it",
            flush=True,
        )
        signal.signal(signal.SIGTERM, signal.default_int_handler)
        with suppress(KeyboardInterrupt):
            signal.pause()
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
