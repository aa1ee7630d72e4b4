"""What an encoder of images beside a language model takes of one GPU, on top of its weights.

vLLM tries it at its start: it encodes at once as many of the largest images as a step's tokens
hold, and keeps what they become (`profile_run` of vllm/v1/worker/gpu_model_runner.py,
vllm/multimodal/encoder_budget.py).
"""

from __future__ import annotations

from collections.abc import Mapping

from gpuplan.models.model import Transformer
from gpuplan.sizing.data.serving_memory import IMAGE_SHARE, IMAGE_SOURCE, IMAGES_ELSEWHERE
from gpuplan.sizing.evidence.formula import Quantity, constant
from gpuplan.sizing.evidence.sheet import sheet


def tower_inputs(model: Transformer, engine: str) -> Mapping[str, Quantity]:
    """The scope of `TOWER`, and `rotary_elements`; nothing for a model of text alone."""
    if not model.towers:
        return {}
    (tower,) = model.towers  # of images: no family here has two
    stated = {
        "encoded_size": tower.output_size,
        "tower_hidden_size": tower.hidden_size,
        "tower_width": tower.intermediate_size,
        "tower_outputs": 3 if tower.gated_mlp else 2,
        "rotary_elements": model.rotary_elements,
    }
    largest = {
        "image_tokens": tower.image_tokens,
        "image_patches": tower.image_tokens * tower.patches_per_token,
    }
    limited = f"{model.source}, the largest image of its processor"
    share = constant(IMAGE_SHARE, "1", IMAGE_SOURCE.get(engine, IMAGES_ELSEWHERE))
    made = {name: Quantity(float(value), "1", model.source) for name, value in stated.items()}
    made |= {name: Quantity(float(value), "1", limited) for name, value in largest.items()}
    return made | {"image_share": share}


# A layer of the tower as one of a language model: `serving.memory` has the same of its layers. No
# number is fitted; that the form holds for towers as well was read off logs of Gemma 3 on one and
# two GPUs (bench/points/memory_served_public.csv); logs of Qwen3.6 had no part in it.
TOWER = sheet("""
    images_at_once: 1 = max(1, min(floor(image_share * max_num_batched_tokens / image_tokens),
        max_num_seqs * max(1, floor(max_model_len / image_tokens))))
        # of the largest size: as many as a step's tokens hold and requests may bring, at least one
    tower_bytes: B = bf16_bytes * images_at_once * image_patches
        * (tower_outputs * tower_width / tensor_parallel_size + 4 * tower_hidden_size)
        # a layer of the encoder of images, on all of their patches: what its MLP makes, before and
        # after its activation, and what the layer holds beside it
    encoded_bytes: B = bf16_bytes * max(max_num_batched_tokens, image_tokens) * encoded_size
        # images as the language model reads them are kept until it has: of a step, at least one
""")
