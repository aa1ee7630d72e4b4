"""Triton: a repository of one network in ONNX, without a configuration of its own.

Triton reads its inputs and outputs from the file, and its dynamic batcher takes all that waits into
the next step, up to a number of images. Source: triton-inference-server/server,
docs/user_guide/model_configuration.md (06151b8b074e6e22b582587eef944954c58bcbfa: auto-generated
configuration, default max batch size) and src/command_line_parser.cc.
"""

from __future__ import annotations

from collections.abc import Iterator

from gpuplan.engines.arguments import flag, model_of
from gpuplan.engines.container import folder
from gpuplan.engines.launch import Argument
from gpuplan.plan.model import Workload
from gpuplan.render.commented import Because

NAME, START = "triton", "tritonserver"
HEALTH = "/v2/health/ready"  # on its HTTP port, which is 8000 unless it is told another


def arguments(workload: Workload) -> Iterator[Argument]:
    serving = workload.serving
    assert serving is not None
    yield flag("model-repository", _repository(workload))
    yield flag("http-port", serving.port)
    steps = flag("backend-config", f"onnxruntime,default-max-batch-size={serving.max_num_seqs}")
    yield Because(steps, "images of a step: what memory was sized for")


def network_path(workload: Workload) -> str:
    """Where Triton looks for the network: requests name it as its folder is called."""
    name = model_of(workload).identifier.rpartition("/")[2]
    return f"{_repository(workload)}/{name}/1/model.onnx"


def _repository(workload: Workload) -> str:
    return f"{folder(workload, 'models')}/triton"
