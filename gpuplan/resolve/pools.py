"""What a platform lacks for prefill and decode in pools of their own.

EFA: images for it put NIXL's libfabric plugin in the place of what vLLM's own have
(aws/deep-learning-containers#6173, 2026-06-02).
"""

from __future__ import annotations

from collections.abc import Iterator

from gpuplan.diagnostics import Change, Diagnostic
from gpuplan.manifest.v1 import Platform
from gpuplan.sizing.ask.messages import contradiction
from gpuplan.source import Origin
from gpuplan.targets import TARGETS


def platform_problems(platform: Platform, at: Origin) -> Iterator[Diagnostic]:
    """`at` is the workload that asks for them."""
    asked, root = at.child("disaggregation"), Origin(at.document)
    fabric = root.child("platform", "fabric")
    without = Change(asked, None)
    if not TARGETS[platform.target].pools:
        able = ", ".join(name for name, target in TARGETS.items() if target.pools)
        yield contradiction(
            f"target '{platform.target}' has no pools for prefill and decode",
            asked,
            f"what is written for {able} has them",
            "remove it: every replica then does both",
            without,
        )
    elif platform.fabric is None:
        yield contradiction(
            "pools for prefill and decode, and no `platform.fabric`",
            asked,
            "the cache of each prompt goes from one to the other, at a rate that nothing states",
            "write `platform.fabric`, or remove it",
            without,
        )
    elif platform.fabric.kind == "efa":
        yield contradiction(
            "pools for prefill and decode over EFA",
            fabric.child("kind"),
            "vLLM hands caches over by NIXL with UCX; EFA needs a build of it with libfabric",
            "remove `disaggregation`, or use another fabric",
            without,
        )
