"""Objects on a real API server: what `gpuplan.simulate` does, and what all of its store holds."""

from __future__ import annotations

import json
import urllib.request
from base64 import b64decode, b64encode
from dataclasses import dataclass

from gpuplan.render.commented import Tree
from gpuplan.simulate import kube
from gpuplan.simulate.kube import OWNER, PATIENCE_SECONDS, Object, Refused, steady

__all__ = ["OWNER", "PATIENCE_SECONDS", "Kube", "Object", "Refused", "Tree", "changed", "contents"]
# What the control plane itself writes all the time.
RESTLESS = tuple(f"/registry/{kind}/" for kind in ("events", "leases", "masterleases"))


def contents(state: dict[str, Tree]) -> dict[str, Tree]:
    def strip(tree: Tree) -> Tree:
        metadata = {k: v for k, v in tree["metadata"].items() if k != "resourceVersion"}
        return tree | {"metadata": metadata}

    return {reference: strip(tree) for reference, tree in state.items()}


def changed(before: dict[str, Tree], after: dict[str, Tree]) -> set[str]:
    """References of the objects that came, went or have other contents."""
    old, new = contents(before), contents(after)
    return {r for r in old.keys() | new.keys() if old.get(r) != new.get(r)}


@dataclass(frozen=True)
class Kube(kube.Kube):
    def inventory(self) -> frozenset[str]:
        """The key of every object there is, at rest: `/registry/deployments/search/assistant`."""
        return steady(lambda: frozenset(k for k in self._keys() if not k.startswith(RESTLESS)))

    def _keys(self) -> list[str]:
        start, end = (b64encode(k).decode() for k in (b"/registry/", b"/registry0"))
        query = json.dumps({"key": start, "range_end": end, "keys_only": True}).encode()
        url = f"{self.plane.etcd}/v3/kv/range"
        with urllib.request.urlopen(url, query, timeout=PATIENCE_SECONDS) as reply:
            return [b64decode(kv["key"]).decode() for kv in json.load(reply)["kvs"]]
