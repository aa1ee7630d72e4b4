"""Objects on a real API server, through kubectl: apply, compare, delete, see what is left."""

from __future__ import annotations

import itertools
import json
import subprocess
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import TypeVar

from gpuplan.render.commented import Tree
from gpuplan.simulate.plane import ControlPlane

T = TypeVar("T")

PATIENCE_SECONDS = 240
OWNER = "gpuplan-simulate"


class Refused(Exception):
    """kubectl's own words about what it would not do."""


@dataclass(frozen=True)
class Object:
    """A manifest to apply. One with a manager of its own is a patch: it adds fields to an object
    that somebody else owns, and taking it back removes just those fields."""

    tree: Tree
    manager: str = OWNER

    @property
    def is_patch(self) -> bool:
        return self.manager != OWNER

    @property
    def reference(self) -> str:
        """`apps/v1 Deployment search/assistant`"""
        metadata = self.tree["metadata"]
        name = "/".join(filter(None, (metadata.get("namespace"), metadata["name"])))
        return f"{self.tree['apiVersion']} {self.tree['kind']} {name}"

    @property
    def empty(self) -> Tree:
        """The identity alone: applied by the same manager, it gives up every field."""
        metadata = {k: v for k, v in self.tree["metadata"].items() if k in ("name", "namespace")}
        return {k: self.tree[k] for k in ("apiVersion", "kind")} | {"metadata": metadata}


def _stream(trees: Iterable[Tree]) -> str:
    return "\n---\n".join(json.dumps(t) for t in trees)


@dataclass(frozen=True)
class Kube:
    plane: ControlPlane

    def kubectl(self, *arguments: str, stdin: str = "") -> str:
        """What kubectl prints. Raises `Refused`."""
        kubeconfig = self.plane.kubeconfig
        where = (f"--kubeconfig={kubeconfig}", f"--cache-dir={kubeconfig.parent / 'discovery'}")
        command = (str(self.plane.kubectl), *where, *arguments)
        done = subprocess.run(command, input=stdin, capture_output=True, text=True, check=False)
        if done.returncode:
            raise Refused(done.stderr.strip())
        return done.stdout

    def apply(self, objects: Sequence[Object]) -> None:
        """Server-side, in the given order, unknown fields refused."""
        for manager, group in itertools.groupby(objects, key=lambda o: o.manager):
            self._apply(manager, [o.tree for o in group])

    def _apply(self, manager: str, trees: Sequence[Tree]) -> None:
        how = ("--server-side", "--validate=strict", f"--field-manager={manager}")
        self.kubectl("apply", *how, "-f", "-", stdin=_stream(trees))

    def read(self, objects: Sequence[Object]) -> list[Tree]:
        """The objects as the server holds them, in the given order."""
        trees = _stream(o.empty for o in objects)
        items = json.loads(self.kubectl("get", "-o", "json", "-f", "-", stdin=trees))
        return list(items["items"]) if items["kind"] == "List" else [items]

    def state(self, objects: Sequence[Object]) -> dict[str, Tree]:
        """reference → object, at rest. `metadata.resourceVersion` moves with every write, also with
        the one that Kubernetes makes of its own at the second apply; `contents` leaves it out."""
        references = [o.reference for o in objects]

        def read() -> dict[str, Tree]:
            return dict(zip(references, map(_uncounted, self.read(objects)), strict=True))

        return steady(read)

    def delete(self, objects: Sequence[Object]) -> None:
        """The last first, each gone before the next; patches are taken back."""
        for item in reversed(objects):
            if item.is_patch:
                self._apply(item.manager, [item.empty])
            else:
                wait = ("--wait", f"--timeout={PATIENCE_SECONDS}s", "--cascade=foreground")
                self.kubectl("delete", *wait, "-f", "-", stdin=_stream([item.empty]))

    def sweep(self, objects: Sequence[Object]) -> None:
        """Delete whatever of `objects` is there."""
        how = ("--ignore-not-found", "--wait", f"--timeout={PATIENCE_SECONDS}s")
        self.kubectl("delete", *how, "-f", "-", stdin=_stream(o.empty for o in objects))


def _uncounted(tree: Tree) -> Tree:
    """Without what Kubernetes counts up in a quota, and the version that this moves: it does so
    whenever its controllers get to it, on a loaded machine long after all else is at rest."""
    if tree["kind"] != "ResourceQuota":
        return tree
    rest = {k: v for k, v in tree.items() if k != "status"}
    metadata = {k: v for k, v in tree["metadata"].items() if k != "resourceVersion"}
    return rest | {"metadata": metadata}


def steady(read: Callable[[], T]) -> T:
    """What `read` returns as soon as it returns the same twice."""
    deadline = time.monotonic() + PATIENCE_SECONDS
    before = read()
    while time.monotonic() < deadline:
        time.sleep(0.7)
        now = read()
        if now == before:
            return now
        before = now
    raise TimeoutError("the cluster does not come to rest")
