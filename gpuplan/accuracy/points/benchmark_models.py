"""Networks of MLPerf Training by the names of its results, and one that no table of models has."""

from __future__ import annotations

from functools import cache

from gpuplan.accuracy.points.known import find_model
from gpuplan.models.model import Diffusion, DiffusionModule, Model

# What a result's name begins with, and the name that the table of models has.
KNOWN = {"bert-large": "bert-large", "gpt3-175b": "gpt3-175b", "flux.1": "flux.1-dev"}
# Parameters of the UNet, text encoder and VAE of Stable Diffusion 2 (published weights).
DIFFUSION = {"stable-diffusion-v2": (865_910_724, 340_387_840, 83_653_863)}


@cache
def benchmark_model(name: str) -> Model | None:
    """A network of a benchmark, as results name it."""
    for start, known in KNOWN.items():
        if name.startswith(start):
            return find_model(known, "")
    for start, parameters in DIFFUSION.items():
        if name.startswith(start):
            return _diffusion(start, parameters)
    return None


def _diffusion(name: str, parameters: tuple[int, ...]) -> Diffusion:
    unet, text, vae = parameters
    return Diffusion(
        identifier=name,
        revision=None,
        architecture="UNet2DConditionModel",
        modules=(
            DiffusionModule(name="unet", kind="unet", parameters=unet),
            DiffusionModule(name="text_encoder", kind="text_encoder", parameters=text),
            DiffusionModule(name="vae", kind="vae", parameters=vae),
        ),
        flop_per_step=0.8e12,
        flop_fixed=2.5e12,
        passes_per_step=2,
        reference_pixels=512 * 512,
        parameters=unet + text + vae,
        source="published model card",
    )
