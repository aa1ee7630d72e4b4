"""Seconds of one optimizer step of a training run, and of the whole run.

A micro-batch on one GPU: products at a measured fraction of the peak, operand and activation
traffic at the peak bandwidth, the exchanges of tensor, context and expert parallelism. A step:
micro-batches and the pipeline's bubble, the exchange of weights and gradients as far as it is not
hidden, the optimizer. Sources: Narayanan (2021), Rajbhandari (2019), Korthikanti (2022); constants
fitted on public points (`data/training_speed.py`).
"""

from __future__ import annotations

from functools import cache

from gpuplan.frozen import record
from gpuplan.sizing.evidence.sheet import Sheet, sheet


@record
class Terms:
    """Which parts a step has. `exchange` is of data parallelism: a key of `_EXCHANGE`, `across`
    nodes or inside one."""

    moe: bool
    adapter: bool
    quantized: bool
    exchange: str
    across: bool
    mamba: bool = False
    tensor: bool = False
    context: bool = False
    pipeline: bool = False
    expert: bool = False


_TOKENS = sheet("""
    gradient_accumulation_steps: 1 = global_batch / (data_parallel_size * micro_batch)
        # reaches the global batch exactly
    passes: 1 = trained_passes + recompute  # forward, backward; recomputation adds one
    model_shards: 1 = tensor_parallel_size * pipeline_parallel_size
        # GPUs that divide the layers of one replica
    rank_tokens: 1 = tokens / context_parallel_size * (1 + prediction_layers / layers)
        # of a micro-batch, on one GPU; context parallelism divides sequences, layers that predict
        # further tokens count as more of them
""")
_PRODUCTS = sheet("""
    matmul_seconds: s = mac_flop * unrouted_parameters * rank_tokens * passes
        / (peak * compute * model_shards)
        # forward, and two backward products of all weights that train
    head_seconds: s = mac_flop * vocabulary * hidden_size * rank_tokens * trained_passes
        * (1 + prediction_heads) / (bf16_peak * bf16_compute * model_shards)
        # the output layer, in bf16 always
    attention_seconds: s = mac_flop * (full_width * sequence_length
        + 2 * window_width * min(sequence_length / 2, attended_window))
        * rank_tokens * (3.5 + attention_recompute)
        / (bf16_peak * attention_compute * model_shards)
        # causal scores and values; the backward pass takes 2.5 of the forward one
""")
_LOGITS = sheet("""
    logits_seconds: s = logits_bytes * vocabulary * rank_tokens * (1 + prediction_heads)
        / (bandwidth * model_shards)
        # the loss over the vocabulary, read and written forward and backward; fitted
""")
_ADAPTERS = sheet("""
    adapter_seconds: s = adapter_factor * bf16_bytes * operand_width * rank_tokens
        / (model_shards * bandwidth)
        # adapters read what the products read and add to what they write, both ways; fitted
""")
_EXPERTS = sheet("""
    expert_seconds: s = mac_flop * routed_parameters * rank_tokens * passes
        / (peak * compute * expert_compute * model_shards)
        # small products reach a part of large ones' rate; fitted
""")
_RANK = {
    False: sheet("""
    rank_parameters: 1 = parameters / model_shards  # weights of one GPU
"""),
    True: sheet("""
    rank_parameters: 1 = (parameters - expert_parameters_held) / model_shards
        + expert_parameters_held / (pipeline_parallel_size * expert_parallel_size)
        # weights of one GPU; expert parallelism divides the experts
"""),
}
_TRAFFIC = sheet("""
    operand_seconds: s = operand_factor * bf16_bytes * operand_width * rank_tokens * passes
        / (model_shards * bandwidth)  # inputs and outputs of the products; fitted
    elementwise_seconds: s = elementwise_bytes * hidden_size * layers
        * streams_factor ** log2(residual_streams) * rank_tokens * (2 + recompute)
        / (model_shards * bandwidth)  # norms, activations, residuals; fitted
    weight_seconds: s = weight_traffic * rank_parameters / bandwidth
        # reads of the weights and accumulation of gradients in a micro-batch
""")
_ROUTING = sheet("""
    routing_seconds: s = routing_factor * bf16_bytes * routed_width * rank_tokens * (2 + recompute)
        / (model_shards * bandwidth)
        # sorting tokens by expert and back, their activations; fitted
""")
_MAMBA = sheet("""
    mamba_seconds: s = mamba_bytes * mamba_width * rank_tokens * 3 / (model_shards * bandwidth)
        # convolution and scan of state space layers, forward and backward; fitted
""")
_TENSOR = sheet("""
    tensor_seconds: s = tensor_exposed * 8 * bf16_bytes * hidden_size
        * (tensor_parallel_size - 1) / tensor_parallel_size
        * rank_tokens * layers / pipeline_parallel_size / inside_rate * (1 + recompute / 2)
        # gather and scatter of activations around attention and MLP, forward and backward, as far
        # as exposed; fitted
""")
_CONTEXT = sheet("""
    context_seconds: s = context_bytes * rank_tokens * (context_parallel_size - 1) * layers
        / (pipeline_parallel_size * inside_rate)
        # keys and values that pass around the ring, as far as exposed; fitted
""")
_DISPATCH = sheet("""
    dispatch_bytes: B = 4 * bf16_bytes * rank_tokens * exchanged_width * expert_layers
        / model_shards  # one copy of every token: dispatch and combine, forward and backward
    expert_domains: 1 = max(1, expert_parallel_size * tensor_parallel_size / domain_gpus)
        # NVLink domains that the experts of a layer span
    dispatch_seconds: s = dispatch_exposed * dispatch_bytes * (expert_parallel_size - 1)
        * (1 - (1 - 1 / expert_parallel_size) ** active_experts) / inside_rate
        + remote_exposed * dispatch_bytes * (expert_domains - 1)
        * (1 - (1 - 1 / expert_domains) ** active_experts) / network_rate
        # one copy to each GPU that holds some of a token's experts, and to each other domain, as
        # far as exposed; fitted
""")
_HOP = sheet("""
    hop_seconds: s = hop_overhead * virtual_stages  # stages that wait for another; fitted
""")
_LAST = sheet("""
    last_seconds: s = last_stage * (head_seconds + logits_seconds) * (pipeline_parallel_size - 1)
        * (1 - ceil(layers / pipeline_parallel_size) + floor(layers / pipeline_parallel_size))
        # the output layer is the last stage's alone, and the others wait for it, unless that has
        # fewer layers than they; fitted
""")
_DEQUANTIZE = sheet("""
    dequantize_seconds: s = 3 * dequantize_seconds_each * linear_parameters
        # three passes over nf4 weights; fitted
""")
_LINK = sheet("""
    link_rate: B/s = min(inside_rate, fabric_rate
        * max(1, gpus_per_node / (tensor_parallel_size * context_parallel_size)))
        # rings over nodes use every network card of a node
""")
_MICRO = sheet("""
    micro_seconds: s = norm(device_seconds, host_seconds * whole_layers / pipeline_parallel_size, 3)
        # the GPU, or the host that feeds it where that is slower; fitted
""")
_COMPUTE = {
    False: sheet("""
    compute_seconds: s = gradient_accumulation_steps * micro_seconds  # all micro-batches of a step
"""),
    True: sheet("""
    compute_seconds: s = (gradient_accumulation_steps
        + bubble * (pipeline_parallel_size - 1) / virtual_stages) * micro_seconds
        # all micro-batches of a step, and the pipeline's bubble (Narayanan 2021)
"""),
}
_RING = "(data_parallel_size - 1) / data_parallel_size"
_BEHIND = """
    exchange_seconds: s = max(exchange_bytes / link_rate - hidden_part * compute_seconds, 0)
        # as far as it does not hide behind the products; fitted
"""
_EXPOSED = """
    exchange_seconds: s = gradients_exposed * exchange_bytes / link_rate
        # what overlap does not hide; fitted
"""
_EXCHANGE = {
    "none": sheet("exchange_seconds: s = 0 * second  # nothing is exchanged"),
    "gradients": sheet(f"""
    exchange_bytes: B = 2 * bf16_bytes * rank_parameters * {_RING}
        # a ring's reduction of bf16 gradients and gathering of what they became, once a step
    {_EXPOSED}
"""),
    "divided": sheet(f"""
    exchange_bytes: B = bf16_bytes * rank_parameters * (gradient_accumulation_steps + 1) * {_RING}
        # ZeRO-2: a ring's reduction of bf16 gradients a micro-batch, since none keeps the sum of
        # all, and gathering of what they became, once a step (Rajbhandari 2019)
    {_EXPOSED}
"""),
    "adapters": sheet(f"""
    exchange_bytes: B = 2 * bf16_bytes * trained_parameters * {_RING}
        # a ring's all-reduce of the adapters' gradients, once a step
    {_EXPOSED}
"""),
    "weights": sheet(f"""
    exchange_bytes: B = 3 * bf16_bytes * parameters / model_shards
        * gradient_accumulation_steps * {_RING}
        # ZeRO-3: weights twice and gradients once a micro-batch (Rajbhandari 2019)
    {_BEHIND}
"""),
    "copies": sheet("""
    group_nodes: 1 = gpus / (state_copies * gpus_per_node)  # nodes that hold all states together
    exchange_bytes: B = 3 * bf16_bytes * parameters / model_shards * gradient_accumulation_steps
        * (weight_shards - 1) / weight_shards
        # ZeRO-3 inside a group: weights twice and gradients once a micro-batch (Rajbhandari 2019)
    copied_bytes: B = 2 * bf16_bytes * parameters / (model_shards * weight_shards)
        * (state_copies - 1) / state_copies
        # a ring's all-reduce of a GPU's part of the gradients over the groups, once a step
    exchange_seconds: s = max(max(exchange_bytes / inside_rate,
        min(1, group_nodes - 1) * exchange_bytes / link_rate) - hidden_part * compute_seconds, 0)
        + gradients_exposed * copied_bytes / min(inside_rate, fabric_rate)
        # as far as it does not hide behind the products; all GPUs of a node send to the other
        # groups at once, so each has its own part of the fabric; fitted
"""),
    "frozen": sheet(f"""
    exchange_bytes: B = 2 * frozen_bytes * gradient_accumulation_steps * {_RING}
        # ZeRO-3: frozen weights twice a micro-batch (Rajbhandari 2019)
    {_BEHIND}
"""),
}
_UPDATE = sheet("""
    update_seconds: s = update_factor * (bf16_bytes + gradient_bytes_each + optimizer_bytes_each)
        * rank_parameters / optimizer_shards / bandwidth
        # weights, gradients and states are read and written; fitted
""")
_RUN = sheet("""
    step_seconds: s = max(roofline_seconds, step_correction * modelled_step_seconds)
        # one optimizer step, as measured points near it correct it
    tokens_per_second: 1/s = global_batch * sequence_length / step_seconds  # all GPUs
    time_to_finish: s = steps * step_seconds * (1 + lost_share)
        # the whole run, with what checkpoints and failures take
""")


def _step(terms: Terms) -> Sheet:
    weights = "(unrouted_parameters + routed_parameters)" if terms.moe else "unrouted_parameters"
    update = "" if terms.adapter else " + update_seconds"
    return sheet(f"""
        roofline_seconds: s = mac_flop * {weights} * rank_tokens * passes
            * gradient_accumulation_steps / (peak * model_shards)
            # no step is faster than its products at the dense peak
        modelled_step_seconds: s = max(roofline_seconds, slower
            * (compute_seconds + exchange_seconds{update}
            + step_overhead + scale_overhead * log2(max(1, gpus / 8))))
            # one optimizer step by the formulas; fitted
    """)


@cache
def time(terms: Terms) -> Sheet:
    """Needs the numbers of `shapes` and `widths`, the division, micro-batch, `memory`'s lines, the
    constants and `step_correction`."""
    device = _TOKENS + _PRODUCTS
    for part, wanted in (
        (_EXPERTS, terms.moe),
        (_RANK[terms.moe] + _TRAFFIC + _LOGITS, True),
        (_ADAPTERS, terms.adapter),
        (_ROUTING, terms.moe),
        (_MAMBA, terms.mamba),
        (_TENSOR, terms.tensor),
        (_CONTEXT, terms.context),
        (_DISPATCH, terms.expert),
        (_HOP, terms.pipeline),
        (_LAST, terms.pipeline),
        (_DEQUANTIZE, terms.quantized),
    ):
        device = device + part if wanted else device
    sums = " + ".join(name for name, _ in device.lines if name.endswith("_seconds"))
    micro = sheet(f"device_seconds: s = {sums}  # one micro-batch on the GPU") + _MICRO
    link = _LINK if terms.across else Sheet(())
    update = Sheet(()) if terms.adapter else _UPDATE
    exchange = _EXCHANGE[terms.exchange]
    return (
        device + micro + link + _COMPUTE[terms.pipeline] + exchange + update + _step(terms) + _RUN
    )
