"""Where a served model stands among the measured ones: the features of its anchors.

One place for both, the points that are stored and the replicas that are planned.
"""

from __future__ import annotations

from gpuplan.catalog.model import Gpu
from gpuplan.models.identity import identity
from gpuplan.models.model import Transformer
from gpuplan.sizing.calibration.gaussian import NOBODYS, log2

# What sources do not say: whether runs of models with modules for multi-token prediction used them,
# and with which of its many options SGLang ran. Repeats of such runs lie far apart.
VARIED, DRAFTING = "sglang", "tensorrt-llm"
OWN = "own"  # the site of measurements that name no source, and of everything that is planned
# Sites whose settings the engines' makers chose point by point (InferenceX); others take an engine
# about as it ships.
TUNED = ("ai-dynamo/aiconfigurator", "SemiAnalysisAI/InferenceX")
AMD, USUAL = "amd", "usual settings"
UNKNOWN = "?"  # the release of an engine that a measurement does not name


def features(
    model: Transformer,
    gpu: Gpu,
    engine: str,
    version: str,
    precision: str,
    *,
    concurrency: float,
    input: float,  # noqa: A002 - as manifests call it
    output: float,
    tp: int,
    dp: int = 1,
    ep: int = 1,
    pp: int = 1,
    client: str = "spread",
    site: str = OWN,
) -> dict[str, str | float]:
    """Texts that must be equal, and coordinates: base-2 logarithms of the load, lengths and GPUs.
    `concurrency` counts the requests of the whole replica, `input` and `output` are mean lengths.
    `client`: lengths that are "spread", as users' are, "fixed", or "uniform" from
    nothing on; `site`: who runs it. `habits`: what differs between the loads and lengths of a site
    whose settings nobody tuned for each; `spread`: whose measurements lie as far apart."""
    who, practice = identity(model), "tuned settings" if site in TUNED else USUAL
    cell = "|".join((who, gpu.identifier, engine, precision))
    layout, harness = f"{cell}|tp {tp}|dp {dp}|ep {ep}|pp {pp}", f"{practice} {engine}"
    kind = "mixture" if model.experts else "dense"
    return {
        "model": who,
        "kind": kind,
        "engine": engine,
        "version": version or UNKNOWN,
        "generation": gpu.architecture,
        "gpu": gpu.identifier,
        "precision": precision,
        "client": client,
        "source": site,
        "practice": practice,
        "harness": harness,
        "habits": NOBODYS if site in TUNED else f"{site}|{layout}",
        "spread": harness if site in TUNED else f"{USUAL}, {AMD if gpu.vendor == AMD else kind}",
        "cell": cell,
        "unrecorded": f"{cell}|{tp}|{dp}|{ep}|{pp}|{version}|{concurrency}|{input}|{output}"
        if engine == VARIED or (engine == DRAFTING and model.mtp_layers)
        else NOBODYS,
        "layout": layout,
        "batch": log2(concurrency),
        "input": log2(input),
        "output": log2(output),
        "gpus": log2(tp * dp * pp),
    }
