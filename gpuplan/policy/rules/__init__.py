"""All rules, in order. A rule that is not here does not exist."""

from __future__ import annotations

from gpuplan.policy.api import Rule, WaiverRule
from gpuplan.policy.rules import (
    allocation,
    balance,
    cost,
    domains,
    integrity,
    joins,
    locality,
    memory,
    objectives,
    parallelism,
    pins,
    privileged,
    secrecy,
    spare,
    support,
    waivers,
    written,
)

RULES: tuple[Rule, ...] = (
    Rule("GP101", "memory-fit", memory.memory_fit),
    Rule("GP102", "memory-headroom", memory.memory_headroom),
    Rule("GP103", "kv-cache", memory.kv_cache),
    Rule("GP105", "tensor-parallel-link", parallelism.tensor_parallel_link),
    Rule("GP201", "over-provisioned", cost.over_provisioned),
    Rule("GP202", "headroom", spare.headroom),
    Rule("GP203", "idle-gpus", spare.idle),
    Rule("GP204", "budget", cost.budget),
    Rule("GP205", "accepted-miss", objectives.accepted_miss),
    Rule("GP206", "price-age", cost.price_age),
    Rule("GP301", "few-cores", balance.few_cores),
    Rule("GP302", "many-cores", balance.many_cores),
    Rule("GP303", "host-memory", balance.host_memory),
    Rule("GP304", "host-to-gpu-memory", balance.host_to_gpu_memory),
    Rule("GP305", "numa-split", locality.numa_split),
    Rule("GP306", "remote-cores", written.remote_cores),
    Rule("GP307", "huge-pages", locality.huge_pages),
    Rule("GP310", "held-by-another", allocation.held_by_another),
    Rule("GP311", "less-than-planned", written.less_than_planned),
    Rule("GP312", "one-cluster", joins.one_cluster),
    Rule("GP313", "one-domain", domains.one_domain),
    Rule("GP601", "chart-version", pins.chart_version),
    Rule("GP602", "image-tag", pins.image_tag),
    Rule("GP605", "untested-version", pins.untested_version),
    Rule("GP606", "requirement", pins.requirement),
    Rule("GP607", "support-ends", support.support_ends),
    Rule("GP701", "privileged", privileged.privileged),
    Rule("GP702", "secret-value", secrecy.secret_value),
    Rule("GP904", "checksums", integrity.checksums),
)

WAIVER_RULES: tuple[WaiverRule, ...] = (
    WaiverRule("GP901", "waiver-expired", waivers.expired),
    WaiverRule("GP902", "waiver-stale", waivers.stale),
    WaiverRule("GP903", "waiver-incomplete", waivers.incomplete),
)
