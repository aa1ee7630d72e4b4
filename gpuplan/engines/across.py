"""How the parts of a replica over several nodes find each other.

vLLM: docs/serving/parallelism_scaling.md (multiprocessing over nodes), data_parallel_deployment.md
(internal load balancing); SGLang: docs/references/multi_node_deployment. Each node runs the same
command; the first one alone listens.
"""

from __future__ import annotations

from collections.abc import Iterator

from gpuplan.engines.arguments import flag
from gpuplan.engines.launch import Argument, First, Indexed
from gpuplan.plan.model import Workload

PIPELINE_PORT = 29501  # vLLM's own default, master_port of vllm/config/parallel.py
DATA_PORT = 29550  # vLLM's own default, data_parallel_rpc_port of the same
SGLANG_PORT = 20000  # as SGLang's examples have it


def vllm(workload: Workload, leads: bool) -> Iterator[Argument]:
    """Stages of a pipeline are processes of one engine; data-parallel groups are engines."""
    nodes, groups = workload.nodes_per_replica, workload.parallelism.data_parallel_size
    if groups > 1:
        here = groups // nodes
        yield flag("data-parallel-size-local", here)
        yield First(before="--data-parallel-address=")
        yield flag("data-parallel-rpc-port", DATA_PORT)
        if not leads:
            yield "--headless"
            yield Indexed(before="--data-parallel-start-rank=", times=here)
        return
    yield "--distributed-executor-backend=mp"
    yield flag("nnodes", nodes)
    yield First(before="--master-addr=")
    yield flag("master-port", PIPELINE_PORT)
    if leads:
        yield flag("node-rank", 0)
    else:
        yield "--headless"
        yield Indexed(before="--node-rank=")


def sglang(workload: Workload, leads: bool) -> Iterator[Argument]:
    yield flag("nnodes", workload.nodes_per_replica)
    yield First(before="--dist-init-addr=", after=f":{SGLANG_PORT}")
    yield flag("node-rank", 0) if leads else Indexed(before="--node-rank=")
