"""Networks of MLPerf Training that no table of models has."""

from __future__ import annotations

from functools import cache

from gpuplan.models.load import bundled
from gpuplan.models.model import Diffusion, DiffusionModule, Model, Transformer

# Layers, hidden size, heads, head size, MLP width, vocabulary, context.
DENSE = {
    # BERT-Large: Devlin (2018), table 1 and published config.json.
    "bert-large": (24, 1024, 16, 64, 4096, 30522, 512),
    # GPT-3 175B: Brown (2020), table 2.1.
    "gpt3-175b": (96, 12288, 96, 128, 49152, 50257, 2048),
}
# Parameters of the UNet, text encoder and VAE of Stable Diffusion 2 (published weights).
DIFFUSION = {"stable-diffusion-v2": (865_910_724, 340_387_840, 83_653_863)}


@cache
def benchmark_model(name: str) -> Model | None:
    """A network of a benchmark, as results name it."""
    for start, dims in DENSE.items():
        if name.startswith(start):
            return _dense(start, dims)
    if name.startswith("flux.1"):
        return bundled("black-forest-labs/FLUX.1-dev")
    for start, parameters in DIFFUSION.items():
        if name.startswith(start):
            return _diffusion(start, parameters)
    return None


def _dense(name: str, dims: tuple[int, ...]) -> Transformer:
    layers, h, heads, size, width, words, context = dims
    linear = layers * (4 * h * heads * size + 2 * h * width)
    every = linear + words * h
    return Transformer(
        identifier=name,
        revision=None,
        architecture="BertForMaskedLM" if name.startswith("bert") else "GPT3",
        layers=layers,
        hidden_size=h,
        attention_heads=heads,
        kv_heads=heads,
        head_dim=size,
        intermediate_size=width,
        vocabulary=words,
        tied_embeddings=True,
        gated_mlp=False,
        context_length=context,
        latent=None,
        experts=None,
        sliding_window=None,
        sliding_layers=0,
        parameters=every,
        active_parameters=every,
        linear_parameters=linear,
        active_linear_parameters=linear,
        source="published dimensions",
        role="encoder" if name.startswith("bert") else "decoder",
    )


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
