"""Factors on the ends of intervals, written by bench/unseen_rates.py.

By quantity, kind and reach: the constants of the formulas have seen the points by which intervals
are measured, and of points that they did not see errors lie farther apart.
"""

from __future__ import annotations

STRETCH: dict[str, dict[str, dict[int, float]]] = {
    "benchmark_rate": {
        "": {
            2: 1.26,
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
            2: 1.3,
        },
    },
    "mlperf_first_latency": {
        "": {
            2: 1.06,
            3: 1.04,
        },
    },
    "mlperf_throughput": {
        "interactive": {
            2: 1.36,
            3: 1.05,
        },
        "samples": {
            3: 1.14,
        },
    },
    "mlperf_token_latency": {
        "": {
            2: 1.2,
            3: 1.1,
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
        },
    },
    "training_step": {
        "megatron-bridge": {
            1: 1.01,
            3: 1.07,
            4: 1.19,
        },
        "mlperf": {
            0: 1.11,
            2: 1.16,
            3: 1.2,
        },
        "torchtitan": {
            1: 1.17,
            5: 1.24,
        },
        "trainer": {
            3: 1.02,
            5: 1.04,
        },
    },
    "training_step_mixture": {
        "megatron-bridge": {
            1: 1.13,
        },
    },
}
