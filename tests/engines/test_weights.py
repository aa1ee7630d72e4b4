"""What is fetched before an image engine starts: the revision asked for, each weight once."""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from gpuplan.engines.launch import Launch
from gpuplan.engines.start import start
from gpuplan.kubernetes.lower import lower
from gpuplan.plan.model import Workload
from tests.backends.test_update import compile_over, only
from tests.support.stack_plans import image_plan

REVISION = "3de623fc3c33e44ffbe2bad470d0f45bccf2eb21"
# The layout of black-forest-labs/FLUX.1-dev; its large files in GB, which add up to what the
# catalogue's source states of the modules.
REPOSITORY = {
    "README.md": 0.0,
    "ae.safetensors": 0.335,
    "flux1-dev.safetensors": 23.8,
    "model_index.json": 0.0,
    "scheduler/scheduler_config.json": 0.0,
    "text_encoder/config.json": 0.0,
    "text_encoder/model.safetensors": 0.246,
    "text_encoder_2/model-00001-of-00002.safetensors": 4.99,
    "text_encoder_2/model-00002-of-00002.safetensors": 4.53,
    "text_encoder_2/model.safetensors.index.json": 0.0,
    "tokenizer/vocab.json": 0.0,
    "tokenizer_2/spiece.model": 0.0,
    "transformer/config.json": 0.0,
    "transformer/diffusion_pytorch_model-00001-of-00003.safetensors": 9.98,
    "transformer/diffusion_pytorch_model-00002-of-00003.safetensors": 9.95,
    "transformer/diffusion_pytorch_model-00003-of-00003.safetensors": 3.87,
    "transformer/diffusion_pytorch_model.safetensors.index.json": 0.0,
    "vae/diffusion_pytorch_model.safetensors": 0.168,
}
# Chooses as `huggingface_hub.utils.filter_repo_objects` does.
HUB = """
import json
from fnmatch import fnmatch
from pathlib import Path

def snapshot_download(model, *, revision, local_dir, allow_patterns, ignore_patterns):
    here = Path(__file__).parent
    names = [
        name
        for name in json.loads((here / "repository.json").read_text())
        if any(fnmatch(name, p) for p in allow_patterns)
        and not any(fnmatch(name, p) for p in ignore_patterns)
    ]
    for name in names:
        (Path(local_dir) / name).parent.mkdir(parents=True, exist_ok=True)
        (Path(local_dir) / name).write_text(f"{model}@{revision}")
"""


def painter(root: Path, revision: str | None = REVISION) -> Workload:
    (work,) = image_plan().workloads
    assert work.model is not None
    model = replace(work.model, identifier="black-forest-labs/FLUX.1-dev", revision=revision)
    volumes = tuple(replace(v, mount_path=str(root)) for v in work.volumes)
    return replace(work, model=model, volumes=volumes)


def launch_of(work: Workload) -> Launch:
    launch = start(work, "first")
    assert isinstance(launch, Launch)
    return launch


def fetch(work: Workload, folder: Path, *more: str) -> Path:
    """Run the command as a container does; where the engine then finds the weights."""
    hub = folder / "hub"
    hub.mkdir(exist_ok=True)
    (hub / "huggingface_hub.py").write_text(HUB)
    (hub / "repository.json").write_text(json.dumps([*REPOSITORY, *more]))
    _, *command = launch_of(work).before
    subprocess.run([sys.executable, *command], check=True, env={"PYTHONPATH": str(hub)})
    return Path(str(launch_of(work).arguments[0]))


@pytest.mark.parametrize("precision", ["bf16", "fp8"])
def test_each_weight_is_fetched_once_and_fits_its_volume(tmp_path: Path, precision: str) -> None:
    """Also where the engine makes them smaller, which it does while it loads them."""
    made = fetch(painter(tmp_path / "models"), tmp_path)
    found = {str(p.relative_to(made)) for p in made.rglob("*") if p.is_file()}
    assert found == {n for n in REPOSITORY if "/" in n or n == "model_index.json"}
    fetched = sum(REPOSITORY[n] for n in found) * 1e9
    document = {
        "apiVersion": "gpuplan.dev/v1",
        "name": "paint",
        "platform": {"target": "kubernetes", "gpus": ["h100-sxm-80gb"]},
        "workloads": [
            {
                "name": "painter",
                "task": "inference",
                "model": "black-forest-labs/FLUX.1-dev",
                "precision": precision,
                "load": {"requests_per_second": 0.1, "images": {"mean": "1024x1024", "steps": 28}},
            }
        ],
    }
    plan = only(compile_over(tmp_path, document)).plan
    (models,) = plan.workloads[0].volumes
    assert fetched < models.size_bytes < 1.2 * fetched
    quantity = next(e for e in plan.evidence if e.quantity == "painter.checkpoint_bytes")
    assert abs(quantity.value - fetched) < 0.01 * fetched
    assert any("sizes of the repository's modules" in i.source for i in quantity.inputs)


def test_the_revision_that_was_asked_for_is_what_is_served(tmp_path: Path) -> None:
    models = tmp_path / "models"
    made = fetch(painter(models), tmp_path)
    index = made / "model_index.json"
    assert index.read_text() == f"black-forest-labs/FLUX.1-dev@{REVISION}"
    said = [str(a) for a in launch_of(painter(models)).arguments]
    assert "--served-model-name=black-forest-labs/FLUX.1-dev" in said
    assert not [a for a in said if a.startswith("--revision")], "the engine does not heed it"
    fetched_by_the_engine = models / "hub" / "models--black-forest-labs--FLUX.1-dev"
    (fetched_by_the_engine / "blobs").mkdir(parents=True)
    newest = fetch(painter(models, None), tmp_path)
    assert not fetched_by_the_engine.exists()
    assert newest != made
    assert (newest / "model_index.json").read_text().endswith("@None")
    assert not made.exists(), "the volume has no room for both"


def test_other_forms_of_the_same_weights_stay_where_they_are(tmp_path: Path) -> None:
    others = ("unet/model.fp16.safetensors", "text_encoders/t5xxl.safetensors", "vae/model.bin")
    made = fetch(painter(tmp_path / "models"), tmp_path, *others)
    assert not [o for o in others if (made / o).exists()]


@pytest.mark.parametrize("key", ["image", "env", "volumeMounts", "securityContext"])
def test_they_are_fetched_as_the_engine_runs_but_without_a_gpu(key: str) -> None:
    (item,) = (o for o in lower(image_plan()).objects if o.kind == "Deployment")
    spec = item.tree["spec"]["template"]["spec"]
    (before,), (engine,) = spec["initContainers"], spec["containers"]
    assert before[key] == engine[key]
    assert not [r for r in before["resources"]["limits"] if "/" in r]
    assert before["resources"]["limits"].items() <= engine["resources"]["limits"].items()
