"""Time of an image in a classifier or backbone: matrix products, attention and activations.

Batches are large, as timm's benchmark fills the memory: weights and launches hardly count.
"""

from __future__ import annotations

from gpuplan.catalog.model import Gpu
from gpuplan.models.images.networks import SOURCE as NETWORKS
from gpuplan.models.images.networks import Profile, VisionNetwork
from gpuplan.sizing.data import vision as fitted
from gpuplan.sizing.evidence.formula import Quantity, constant
from gpuplan.sizing.evidence.sheet import Scope, floats, sheet
from gpuplan.sizing.hardware.devices import quantity

WIDE_PATCH = 28  # pixels from which a patch embedding is a product too slow to leave out
BOOST = 1.2  # cards clock at most this much above the rate that their peak is stated at

PARTS = sheet("""
    matmul_seconds: s = mac_flop * (macs - attention_macs)
        / (peak * gpu_compute * structure_compute) * (1 + narrow_slowdown * narrowness ** 2)
        # convolutions and matrix products, at a fitted part of the peak; narrow ones less
    attention_seconds: s = mac_flop * attention_macs / (peak * attention_compute)
        # fused attention
    stem_seconds: s = mac_flop * stem_macs / (peak * stem_compute)  # a wide patch embedding
    traffic_seconds: s = bf16_bytes * (activations - attention_activations)
        * structure_traffic * block_traffic * gpu_traffic / bandwidth
        # element-wise layers read and write what products give, in two bytes
    score_bytes: B = bf16_bytes * attention_activations  # attention scores
""")
INFERENCE = PARTS + sheet("""
    image_seconds: s = matmul_seconds + attention_seconds + stem_seconds + traffic_seconds
        + score_bytes * score_traffic / bandwidth + image_launch_seconds
        # one image of a large batch
    least_seconds: s = mac_flop * macs / (peak * boost)  # at the peak of the highest clock
""")
TRAINING = PARTS + sheet("""
    image_seconds: s = (matmul_seconds + stem_seconds) * train_matmul
        + traffic_seconds * train_traffic + score_bytes * train_score_traffic / bandwidth
        + parameters * update_bytes / (bandwidth * batch)
        # forward, backward and an SGD step; attention writes its scores (PyTorch 1.12)
    least_seconds: s = 3 * mac_flop * macs / (peak * boost)
        # forward and two backward products, at the peak of the highest clock
""")


def vision_scope(
    network: VisionNetwork, profile: Profile, gpu: Gpu, mode: str
) -> tuple[dict[str, float], bool]:
    """Numbers of a network on a GPU, and whether the GPU's constants were measured. `mode`: eager
    or compiled, and the release of PyTorch, "eager 2.9". Raises `ValueError`, in words, for a GPU
    of a line of which none was measured."""
    scope, known = network_scope(network, profile, gpu, mode)
    return floats(scope), known


def measured(gpu: Gpu, mode: str) -> bool:
    """Whether the GPU's constants, or those of its line, stand."""
    how = mode.split(maxsplit=1)[0]
    return (gpu.identifier, how) in fitted.GPUS or (gpu.line, how) in fitted.LINES


def network_scope(
    network: VisionNetwork, profile: Profile, gpu: Gpu, mode: str, cited: str = NETWORKS
) -> tuple[Scope, bool]:
    """The same with sources; the network's dimensions are `cited`. Raises `ValueError`."""
    how = mode.split(maxsplit=1)[0]
    compiled = how == "compiled"
    compute, traffic, fused = fitted.STRUCTURES[network.structure]
    own = fitted.GPUS.get((gpu.identifier, how))
    shares = own or fitted.LINES.get((gpu.line, how))
    if shares is None:
        raise ValueError(f"no vision network was measured on a GPU of the line '{gpu.line}'")
    gpu_compute, gpu_traffic, attention = shares
    wide = network.patch >= WIDE_PATCH
    of_network = {
        "macs": profile.macs,
        "attention_macs": profile.attention_macs,
        "activations": profile.activations,
        "attention_activations": profile.attention_activations,
        "stem_macs": profile.stem_macs if wide else 0.0,
        "parameters": float(network.parameters),
        "narrowness": 384 / network.width if network.width else 0.0,
    }
    of_fit = {
        "gpu_compute": gpu_compute,
        "gpu_traffic": gpu_traffic,
        "attention_compute": attention,
        "structure_compute": compute,
        "structure_traffic": traffic * (fused if compiled else 1.0),
        "block_traffic": 1.0 if compiled else block_traffic(network, mode),
        "stem_compute": fitted.STEM.get(gpu.identifier, fitted.STEM_OTHER),
        "narrow_slowdown": fitted.NARROW_SLOWDOWN,
        "score_traffic": fitted.SCORE_TRAFFIC[scores(network), compiled],
        "boost": BOOST,
    }
    scope = {name: Quantity(value, "1", cited) for name, value in of_network.items()}
    scope |= {name: constant(value, "1", fitted.SOURCE) for name, value in of_fit.items()}
    scope["image_launch_seconds"] = constant(fitted.LAUNCH_SECONDS, "s", fitted.SOURCE)
    scope["peak"] = quantity(gpu.peak_bf16)
    scope["bandwidth"] = quantity(gpu.memory_bytes_per_s)
    return scope, own is not None


def scores(network: VisionNetwork) -> str:
    """Attention in windows adds a bias to its scores, so they are written."""
    return "windowed" if network.structure.startswith("swin") else "fused"


def block_traffic(network: VisionNetwork, mode: str) -> float:
    """What a block's extra layers add where nothing is fused."""
    more = 1.0
    more += fitted.QUICK_GELU if network.quick_gelu else 0.0
    more += fitted.LAYER_SCALE if network.layer_scale else 0.0
    more += fitted.PARALLEL_BLOCKS if network.parallel_blocks else 0.0
    bare = network.structure == "vit" and not network.class_token
    return more + (fitted.NO_CLASS_TOKEN if bare and mode == "eager 2.9" else 0.0)
