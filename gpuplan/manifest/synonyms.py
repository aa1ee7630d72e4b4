"""Words that people write for fields of a manifest, and the fields that they mean."""

from __future__ import annotations

import re

SYNONYMS = {
    "workloads.slo": "sla slos objectives targets",
    "workloads.slo.time_to_first_token": "ttft first_token_latency time_to_first_token_p95",
    "workloads.slo.time_per_output_token": "tpot itl tbt inter_token_latency token_latency",
    "workloads.slo.request_latency": "latency e2e e2e_latency end_to_end_latency response_time",
    "workloads.slo.tokens_per_second": "tps throughput tok_s token_throughput output_throughput",
    "workloads.slo.finish_within": "max_duration time_limit",
    "workloads.load": "traffic",
    "workloads.load.requests_per_second": "rps qps request_rate req_s rate",
    "workloads.load.requests_per_second.peak": "max_rps peak_rps",
    "workloads.load.input_tokens": "isl input_length prompt_tokens prompt_length input_len inputs",
    "workloads.load.output_tokens": "osl output_length output_len completion_tokens max_tokens "
    "outputs",
    "workloads.load.concurrency": "concurrent_users concurrent_requests max_concurrency clients",
    "workloads.load.prefix_cache": "cache_hit_rate prefix_cache_hit_rate",
    "workloads.load.images": "image_size resolution pictures",
    "workloads.load.videos": "video clips",
    "workloads.load.videos.frames": "num_frames frame_count",
    "workloads.task": "type kind workload_type",
    "workloads.precision": "dtype quantization quant weight_dtype data_type",
    "workloads.engine": "runtime framework backend server",
    "workloads.engine.image": "container docker_image container_image",
    "workloads.environment": "env envs variables",
    "workloads.speculative": "speculative_decoding spec_decode",
    "workloads.training.global_batch": "batch_size global_batch_size gbs train_batch_size",
    "workloads.training.sequence_length": "seq_len seq_length sequence_len max_seq_len",
    "workloads.training.steps": "max_steps iterations train_steps",
    "workloads.training.recompute": "gradient_checkpointing activation_checkpointing checkpointing",
    "workloads.training.sharding": "zero zero_stage fsdp deepspeed sharding_strategy",
    "workloads.training.lora": "peft qlora adapter method",
    "workloads.training.lora.rank": "r lora_r lora_rank",
    "workloads.tenancy.team": "namespace tenant owner",
    "workloads.after": "depends_on dependencies needs dependency",
    "workloads.schedule": "cron crontab recurrence",
    "workloads.preemptible": "spot preemptable interruptible",
    "workloads.overrides.gpu": "gpu_type accelerator",
    "workloads.overrides.gpu_count": "gpus num_gpus n_gpus ngpus world_size",
    "workloads.overrides.tensor_parallel_size": "tp tp_size tensor_parallel tensor_parallelism",
    "workloads.overrides.pipeline_parallel_size": "pp pp_size pipeline_size pipeline_stages "
    "pipeline_parallel",
    "workloads.overrides.replicas": "instances num_replicas dp data_parallel_size",
    "workloads.overrides.max_model_len": "context_length context max_context context_window",
    "workloads.overrides.max_num_seqs": "max_batch_size batch max_running_requests",
    "workloads.overrides.max_num_batched_tokens": "chunked_prefill_size max_batched_tokens "
    "batched_tokens",
    "workloads.overrides.gpu_memory_utilization": "gpu_util mem_fraction_static gpu_mem_util",
    "workloads.overrides.kv_cache_dtype": "kv_dtype kv_cache cache_dtype",
    "workloads.overrides.micro_batch": "micro_batch_size mbs per_device_batch_size",
    "workloads.overrides.cpu_cores_per_gpu": "cpu cpus cores vcpus",
    "workloads.overrides.host_memory_per_gpu": "memory_per_gpu ram host_memory mem",
    "workloads.overrides.shared_memory": "shm shm_size dev_shm",
    "workloads.overrides.scratch": "ephemeral_storage tmp scratch_storage",
    "workloads.overrides.dataset_storage": "data_storage dataset_volume",
    "platform.gpus": "gpu_types accelerators gpu_models",
    "platform.node": "machine server_shape",
    "platform.fabric": "interconnect rdma",
    "platform.storage": "volumes pvc",
    "platform.storage.class": "storage_class storageclass storageclassname",
    "platform.storage.type": "product volume_type",
    "platform.storage.price": "cost usd_per_gb_month",
    "platform.inventory": "hosts hardware",
    "platform.budget": "cost max_cost price_limit",
}
# What people write for values, and the values that they mean.
VALUES = {
    "inference": "serving serve service server chat completion embedding embeddings rerank "
    "reranking transcription image_generation text_to_image classification deployment",
    "batch": "offline batch_inference offline_inference bulk",
    "training": "train pretraining pretrain",
    "finetuning": "fine_tuning fine_tune finetune sft lora qlora peft instruction_tuning rlhf dpo",
    "notebook": "notebooks jupyter dev development interactive workspace workstation vdi",
    "bf16": "bfloat16",
    "fp16": "float16 half",
    "fp8": "float8 e4m3",
    "int4": "4bit awq gptq w4a16",
}
_MEANT: dict[str, list[str]] = {}
for _path, _words in SYNONYMS.items():
    for _word in _words.split():
        _MEANT.setdefault(_word, []).append(_path)


_VALUED = {word: value for value, words in VALUES.items() for word in words.split()}


def snake(name: str) -> str:
    """`requestsPerSecond`, `requests-per-second` → `requests_per_second`."""
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", name).replace("-", "_").casefold()


def meant(name: str) -> tuple[str, ...]:
    """Dotted paths of the fields that `name` is another word for; () for any other word."""
    return tuple(_MEANT.get(snake(name), ()))


def meant_value(text: str) -> str:
    """The value that `text` is another word for; itself where it is none."""
    return _VALUED.get(snake(text), text)
