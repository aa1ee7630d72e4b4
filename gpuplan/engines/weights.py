"""Weights that are fetched before an engine starts, because it would fetch others or more.

vLLM-Omni takes all files of a diffusion model's repository, at whatever revision is newest: FLUX.1
has its weights there twice (`download_weights_from_hf_specific(model, None, ["*"])` in
vllm_omni/diffusion/models/flux/pipeline_flux.py, the same from 0.14 to 0.30). A folder it takes as
it is.
"""

from __future__ import annotations

from gpuplan.engines.container import SCRATCH, folder
from gpuplan.plan.model import Workload

# The modules' folders and what says which they are. The same weights lie beside them as single
# files, in `text_encoders`, in other formats and in half precision.
WANTED = ["*/*", "model_index.json"]
UNWANTED = ["text_encoders/*", "*.fp16.*", "*.bin", "*.msgpack", "*.onnx*", "*.xml"]
_FETCH = f"""\
import shutil
import sys
from pathlib import Path

from huggingface_hub import snapshot_download

model, folder, *revision = sys.argv[1:]
kept = Path(folder)
cache = kept.parents[1] / "hub" / ("models--" + kept.parent.name)
for former in (*kept.parent.glob("*"), cache):
    if former != kept and former.exists():
        shutil.rmtree(former)
snapshot_download(
    model,
    revision=revision[0] if revision else None,
    local_dir=folder,
    allow_patterns={WANTED},
    ignore_patterns={UNWANTED},
)
"""
# Chunks of downloads would lie beside the weights, in a volume that has no room for them.
ENVIRONMENT = (("HF_XET_CACHE", f"{SCRATCH}/xet"),)


def folder_of(workload: Workload) -> str:
    """Another revision is another folder, so that neither is half of each."""
    assert workload.model is not None
    name = workload.model.identifier.replace("/", "--")
    return f"{folder(workload, 'models')}/{name}/{workload.model.revision or 'main'}"


def fetch(workload: Workload) -> tuple[str, ...]:
    """The command that fetches them, in place of those of another revision and of what the engine
    itself once fetched: the volume has no room for both. It ends at once where they are there."""
    assert workload.model is not None
    revision = (workload.model.revision,) if workload.model.revision else ()
    command = ("python3", "-c", _FETCH, workload.model.identifier, folder_of(workload))
    return (*command, *revision)
