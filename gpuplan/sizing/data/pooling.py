"""Constants of reading texts: embedding models and rerankers."""

from __future__ import annotations

# Seconds of the API server's process for each request, whatever is in it. One server, 10,000 texts
# of 510 tokens: 414.9 requests/s with one text in each; with 16 in each 63.2, or 1,011 texts/s.
HOST_SECONDS = {"vllm": 1 / 414.91 - 1 / (16 * 63.19)}
HOST_SOURCE = "two runs of one server that differ in texts a request, vllm-project/vllm#23000"
# TEI tokenizes in threads of their own and answers from Rust; what a request costs was not told.
HOST_UNKNOWN = "assumption: nothing, no measurement tells it of this engine"
# Engines that fuse norms and activations into their products, and the source.
FUSING = {"tensorrt": "fused by TensorRT's plugins for BERT (NVIDIA/TensorRT, demo/BERT)"}
# Interval of the time where no measured point is at hand at all.
UNMEASURED = (0.5, 2.0)

# Text Embeddings Inference 1.9.3, backends/candle/src/lib.rs and cuda-all-entrypoint.sh: what its
# CUDA image reads, and the compute capabilities that it has a program for.
TEI_SOURCE = "huggingface/text-embeddings-inference v1.9.3, backends/candle/src/lib.rs"
TEI_READS = frozenset(
    (
        "BertForSequenceClassification",
        "BertModel",
        "LlamaModel",
        "MistralModel",
        "ModernBertForSequenceClassification",
        "ModernBertModel",
        "Qwen2Model",
        "Qwen3ForCausalLM",
        "Qwen3Model",
        "RobertaForSequenceClassification",
        "RobertaModel",
        "XLMRobertaForSequenceClassification",
        "XLMRobertaModel",
    )
)
TEI_PRECISION = "fp16"  # `--dtype` takes float16 and float32
TEI_CAPABILITIES = (7.5, 8.0, 8.6, 8.9, 9.0, 10.0, 12.0)
TEI_IMAGE = "image cuda-1.9 of text-embeddings-inference"
