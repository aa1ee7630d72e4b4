"""How the replicas of prefill and of decode start, and the router between them.

vLLM: docs/features/nixl_connector_usage.md (kv_role, the variables of the side channel), read
2026-11-24; vllm-project/router: docs/cli_reference.md, docs/model-routing/pd-disaggregation.md, the
same day. The router sends a prompt to a prefill server for one token, and what that answers of its
cache to a decode server, which reads the cache from there.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import replace
from typing import Literal

from gpuplan.engines.arguments import HOST, flag
from gpuplan.engines.launch import Argument, Launch
from gpuplan.plan.model import Workload
from gpuplan.render.commented import Because

Role = Literal["prefill", "decode"]
ROLES: tuple[Role, ...] = ("prefill", "decode")
KV_ROLE = {"prefill": "kv_producer", "decode": "kv_consumer"}
SIDE_PORT = 5600  # vLLM's own default, VLLM_NIXL_SIDE_CHANNEL_PORT of vllm/envs.py
SIDE_HOST = "VLLM_NIXL_SIDE_CHANNEL_HOST"  # the address that the other kind connects to
METRICS_PORT = 29000  # the router's own default
LIVE, READY = "/liveness", "/readiness"  # of the router, which is ready with a server of each kind
# It asks a server that is gone like the others, and answers with an error, until a look finds none
# there: by default the third of looks that are a minute apart.
CHECK_SECONDS = 5
LATE_SECONDS = 10  # an engine under full load answers its health path late


def replicas(workload: Workload, role: Role) -> int:
    """How many replicas of the workload have the role."""
    pools = workload.disaggregation
    assert pools is not None
    return pools.prefill_replicas if role == "prefill" else pools.decode_replicas


def launch(both: Launch, role: Role) -> Launch:
    """The server of a role; `both` is that of a replica which does both."""
    transfer = {"kv_connector": "NixlConnector", "kv_role": KV_ROLE[role]}
    reason = "its cache is read over the fabric" if role == "prefill" else "prompts come from there"
    argument = Because(flag("kv-transfer-config", json.dumps(transfer)), reason)
    port = ("VLLM_NIXL_SIDE_CHANNEL_PORT", str(SIDE_PORT))
    return replace(
        both, arguments=(*both.arguments, argument), environment=(*both.environment, port)
    )


def router(
    workload: Workload, prefill: Iterable[str], decode: Iterable[str], startup_seconds: int
) -> Launch:
    """The router before servers at these URLs. `startup_seconds`: as long as it waits for one of
    each kind."""
    assert workload.serving is not None
    even = "as the plan counts: prompts and answers fall on all alike"
    arguments: tuple[Argument, ...] = (
        "--vllm-pd-disaggregation",
        "--kv-connector=nixl",
        *(word for url in prefill for word in ("--prefill", url)),
        *(word for url in decode for word in ("--decode", url)),
        flag("host", HOST),
        flag("port", workload.serving.port),
        Because("--policy=round_robin", even),
        flag("worker-startup-timeout-secs", startup_seconds),
        Because(
            flag("health-check-interval-secs", CHECK_SECONDS),
            f"for {CHECK_SECONDS} s at most requests fail that fall on a server which is gone",
        ),
        flag("health-check-timeout-secs", LATE_SECONDS),
        flag("health-failure-threshold", 1),
        flag("health-success-threshold", 1),
        flag("prometheus-host", HOST),
        flag("prometheus-port", METRICS_PORT),
    )
    return Launch(
        command=("vllm-router",), arguments=arguments, port=workload.serving.port, health=READY
    )
