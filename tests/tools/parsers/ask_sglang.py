"""Whether SGLang takes arguments: its parser and its checks of them.

A question is the arguments of `sglang.launch_server`. The answer has the settings that the engine
would run with; of each group of data-parallel attention where there are several. Runs in the
environment of the parsers, knows no gpuplan.
"""

from __future__ import annotations

from typing import Any

import answers
import gpu

gpu.modules("sgl_kernel")
gpu.device()

from sglang.srt.server_args import prepare_server_args  # noqa: E402


def parse(words: list[str]) -> dict[str, Any]:
    made = prepare_server_args(words)
    made.check_server_args()
    # As model_runner and pool_configurator divide it (`attn_dp_size`).
    groups = made.dp_size if made.enable_dp_attention else 1
    return {
        "tensor": made.tp_size,
        "pipeline": made.pp_size,
        "data": made.dp_size,
        "expert": made.ep_size,
        "nodes": made.nnodes,
        "rank": made.node_rank,
        "max_model_len": made.context_length,
        "max_num_seqs": made.max_running_requests // groups,
        "max_num_batched_tokens": made.chunked_prefill_size,
        "revision": made.revision,
        "drafts": made.speculative_num_draft_tokens,
        "quantization": made.quantization,
        "moe_runner_backend": made.moe_runner_backend,
        "quantization_of_drafts": made.speculative_draft_model_quantization,
    }


if __name__ == "__main__":
    answers.answer(parse)
