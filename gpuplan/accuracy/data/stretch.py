"""Factors on the ends of intervals, written by bench/unseen_rates.py.

By quantity, kind and reach: the constants of the formulas have seen the points by which intervals
are measured, and of points that they did not see, errors lie farther apart or not so far.
"""

from __future__ import annotations

STRETCH: dict[str, dict[str, dict[int, float]]] = {
    "benchmark_rate": {
        "": {
            0: 0.816,
            2: 1.26,
        },
    },
    "benchmark_step": {
        "": {
            3: 0.825,
        },
    },
    "first_token_alone": {
        "": {
            2: 1.8,
            3: 1.8,
        },
    },
    "maximum_throughput": {
        "": {
            0: 0.7,
            1: 0.832,
            2: 1.17,
            3: 0.866,
            4: 0.821,
        },
    },
    "mlperf_first_latency": {
        "": {
            0: 0.913,
            2: 1.06,
            3: 1.04,
            4: 0.881,
        },
    },
    "mlperf_throughput": {
        "interactive": {
            2: 1.26,
            3: 0.975,
        },
        "offline": {
            0: 0.7,
            2: 0.7,
            3: 0.863,
            4: 0.726,
        },
        "samples": {
            2: 0.94,
            3: 1.09,
        },
        "server": {
            0: 0.7,
            2: 0.731,
            3: 0.916,
            4: 0.802,
        },
    },
    "mlperf_token_latency": {
        "": {
            0: 0.926,
            2: 1.2,
            3: 0.948,
            4: 0.711,
        },
    },
    "static_throughput": {
        "": {
            2: 1.31,
            3: 1.11,
        },
    },
    "time_to_train": {
        "": {
            0: 1.34,
            1: 1.31,
            2: 1.45,
            3: 0.892,
        },
    },
    "training_step": {
        "llm-foundry": {
            1: 0.902,
            2: 0.7,
            3: 0.904,
        },
        "megatron-bridge": {
            1: 1.01,
            2: 0.846,
            3: 1.07,
            4: 1.19,
        },
        "mlperf": {
            0: 1.11,
            1: 0.964,
            2: 1.16,
            3: 1.2,
        },
        "torchtitan": {
            1: 1.17,
            5: 1.24,
        },
        "trainer": {
            1: 0.946,
            3: 1.02,
            5: 1.04,
        },
    },
    "training_step_mixture": {
        "megatron-bridge": {
            1: 1.13,
            2: 0.736,
            4: 0.861,
        },
    },
}
