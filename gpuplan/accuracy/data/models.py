"""What points rest on of their models and no configuration says, by how an architecture's name
begins."""

from __future__ import annotations

# Mixtures whose 4-bit checkpoints of NVIDIA's leave attention in 16 bits: `exclude_modules` of
# DeepSeek-V4-Flash-NVFP4 and MiniMax-M2.5-NVFP4 (model_configs of ai-dynamo/aiconfigurator,
# 095f58a5, 2026-08-21). Of Llama 4 it is assumed: no source of it is known.
ATTENTION_KEPT = ("DeepseekV4", "MiniMax", "Llama4")
# Whose gates NeMo does not count, as rows that publish both tokens and FLOP per second tell.
UNGATED = ("GptOss",)
