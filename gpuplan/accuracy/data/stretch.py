"""Factors on the ends of intervals, written by bench/accuracy/refitted_rates.py.

By quantity, kind and reach: the constants of the formulas have seen the points by which intervals
are measured, and of points that they did not see errors lie farther apart.
"""

from __future__ import annotations

STRETCH: dict[str, dict[str, dict[int, float]]] = {
    "benchmark_rate": {
        "": {
            2: 1.25,
        },
    },
    "first_token_alone": {
        "": {
            2: 1.65,
            3: 1.18,
        },
    },
    "maximum_throughput": {
        "": {
            2: 1.3,
        },
    },
    "mlperf_first_latency": {
        "": {
            2: 1.05,
            3: 1.01,
        },
    },
    "mlperf_throughput": {
        "interactive": {
            2: 1.12,
            3: 1.07,
        },
        "server": {
            4: 1.01,
        },
    },
    "mlperf_token_latency": {
        "": {
            2: 1.5,
            3: 1.24,
        },
    },
    "static_throughput": {
        "": {
            2: 1.19,
        },
    },
    "time_to_train": {
        "": {
            1: 1.32,
            2: 1.46,
            3: 1.0,
        },
    },
    "training_step": {
        "fms-fsdp": {
            1: 1.13,
        },
        "megatron-bridge": {
            2: 1.05,
            3: 1.12,
        },
        "mlperf": {
            0: 1.28,
            1: 1.11,
            2: 1.13,
            3: 1.06,
        },
        "torchtitan": {
            1: 1.18,
            5: 1.2,
        },
        "trainer": {
            1: 1.03,
            5: 1.04,
        },
    },
    "training_step_mixture": {
        "megatron-bridge": {
            1: 1.07,
            4: 1.06,
        },
    },
}
