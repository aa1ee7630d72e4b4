"""No field of a workload is silently ignored, none is silently invented."""

from __future__ import annotations

from dataclasses import replace

import pytest

from gpuplan.diagnostics import Severity
from gpuplan.errors import Rejected
from gpuplan.manifest.v1 import Workload
from gpuplan.sizing.ask.fields import FIELDS
from gpuplan.sizing.ask.given import numbers
from gpuplan.sizing.hardware import efficiency
from gpuplan.source import format_path
from gpuplan.units import GIB
from tests.support.sizing_cases import (
    CASES,
    CHAT_8B,
    CHAT_70B,
    FULL_8B,
    IMAGES,
    LORA_70B,
    NOTEBOOKS,
    failure,
    refusals,
    site,
    sized,
    wanted,
    work,
)


def messages(workload: str) -> list[tuple[str, str, str]]:
    """Rule, place below the workload, message of each refusal."""
    return [
        (d.rule, format_path(d.origin.path[2:]), d.message)  # type: ignore[union-attr]
        for d in refusals(workload)
    ]


def dotted(model: type, prefix: str = "") -> set[str]:
    """Every field of the manifest's workload, down to values."""
    found: set[str] = set()
    for name, info in model.model_fields.items():  # type: ignore[attr-defined]
        field = f"{prefix}{name}"
        inner = [
            a
            for a in (info.annotation, *getattr(info.annotation, "__args__", ()))
            if isinstance(a, type) and hasattr(a, "model_fields")
        ]
        inner += [
            b
            for a in getattr(info.annotation, "__args__", ())
            for b in getattr(a, "__args__", ())
            if isinstance(b, type) and hasattr(b, "model_fields")
        ]
        known = field in FIELDS or not inner
        found |= {field} if known else dotted(inner[0], f"{field}.")
        if inner and known:  # a bare value is one of its fields
            found |= dotted(inner[0], f"{field}.") & set(FIELDS)
    return found


def test_every_field_of_a_workload_has_users() -> None:
    assert dotted(Workload) == set(FIELDS)


@pytest.mark.parametrize(
    ("workload", "field"),
    [
        (CHAT_8B + "    training: {steps: 3}\n", "training.steps"),
        (CHAT_8B + "    dataset: {size: 1 GB}\n", "dataset.size"),
        (CHAT_8B + "    slo: {finish_within: 3 h}\n", "slo.finish_within"),
        (CHAT_8B + "    deadline: 3 h\n", "deadline"),
        (CHAT_8B + "    overrides: {home_storage: 1 GiB}\n", "overrides.home_storage"),
        (FULL_8B + "    load: {idle: 3 h}\n", "load.idle"),
        (FULL_8B + "    overrides: {replicas: 2}\n", "overrides.replicas"),
        (IMAGES + "    overrides: {kv_cache_dtype: fp8}\n", "overrides.kv_cache_dtype"),
        (NOTEBOOKS + "    precision: bf16\n", "precision"),
        (NOTEBOOKS + "    growth: 2\n", "growth.factor"),
    ],
)
def test_a_field_that_the_task_does_not_use_is_refused_at_its_place(
    workload: str, field: str
) -> None:
    ((rule, place, message),) = messages(workload)
    assert (rule, place) == ("GP007", field)
    assert f"'{field}' is not used" in message


@pytest.mark.parametrize(
    ("workload", "place"),
    [
        ("    task: inference\n    model: meta-llama/Llama-3.1-8B\n", "load"),
        (CHAT_8B.replace(", output_tokens: 250", ""), "load"),
        ("    task: notebook\n", "notebook"),
        ("    task: finetuning\n    model: meta-llama/Llama-3.1-8B\n", "training"),
        (FULL_8B.replace(", tokens: 1e9", ""), "training"),
        (LORA_70B.replace("tokens: 5e7, ", ""), "dataset"),
    ],
)
def test_what_is_missing_is_named(workload: str, place: str) -> None:
    found = messages(workload)
    assert found
    assert {rule for rule, _, _ in found} == {"GP004"}
    assert any(place in where or place in text for _, where, text in found)


@pytest.mark.parametrize(
    ("workload", "place"),
    [
        (CHAT_70B.replace("peak: 20", "peak: 2"), "load.requests_per_second.peak"),
        (CHAT_70B.replace("p95: 4000", "p95: 400"), "load.input_tokens.p95"),
        (CHAT_70B.replace("p95: 4000", "p95: 140000"), "load"),
        (CHAT_8B + "    overrides: {max_model_len: 512}\n", "overrides.max_model_len"),
        (CHAT_8B + "    secrets: {HF_TOKEN: {config: a, key: b}}\n", "secrets.HF_TOKEN"),
        (CHAT_8B + "    secrets: {HF_TOKEN: {}}\n", "secrets.HF_TOKEN"),
        (FULL_8B.replace("tokens: 1e9", "tokens: 1e9, steps: 4"), "training.steps"),
        (FULL_8B + "    precision: int4\n", "precision"),
        (LORA_70B.replace("finetuning", "training"), "training.lora"),
        (IMAGES.replace("10 h", "30 h"), "load.idle"),
    ],
)
def test_what_contradicts_itself_is_refused_at_its_place(workload: str, place: str) -> None:
    ((rule, where, _),) = messages(workload)
    assert (rule, where) == ("GP007", place)


def test_all_problems_come_at_once() -> None:
    text = (
        CHAT_8B.replace("input_tokens: 800, ", "")
        + "    deadline: 1 h\n    notebook: {users: 1, gpu_memory: 1 GiB}\n"
    )
    assert len(messages(text)) == 4


def test_an_engine_that_cannot_do_the_task_is_refused() -> None:
    with pytest.raises(Rejected) as caught:
        wanted(CHAT_8B, "jupyter")
    assert "engine 'jupyter' does not do inference" in str(caught.value)


def test_every_default_is_named_by_its_field() -> None:
    evidence = {e.quantity: e for e in sized(CHAT_8B).evidence}
    for field in (
        "slo.confidence",
        "growth.factor",
        "precision",
        "load.requests_per_second.peak",
        "load.input_tokens.p95",
        "load.output_tokens.p95",
        "overrides.max_model_len",
        "overrides.gpu_memory_utilization",
    ):
        name = field.removeprefix("overrides.")
        assert evidence[f"work.{name}"].source.startswith(f"default: {field} ("), field
    assert evidence["work.load.input_tokens.mean"].source == (
        "manifest: workloads.work.load.input_tokens.mean"
    )


@pytest.mark.parametrize("name", sorted(CASES))
def test_every_number_of_the_manifest_is_in_the_evidence(name: str) -> None:
    from tests.support.sizing_cases import wanted

    quantities = {e.quantity for e in sized(CASES[name]).evidence}
    paths = (n.field.path.removeprefix("overrides.") for n in numbers(wanted(CASES[name])))
    assert {f"work.{path}" for path in paths} <= quantities


# --- overrides ----------------------------------------------------------------------------------

OVERRIDDEN = """    overrides:
      gpu: l40s
      tensor_parallel_size: 2
      replicas: 3
      max_model_len: 4096
      max_num_seqs: 32
      gpu_memory_utilization: 0.8
      kv_cache_dtype: fp8
      cpu_cores_per_gpu: 4
      host_memory_per_gpu: 24 GiB
      shared_memory: 4 GiB
      model_storage: 100 GiB
"""


def test_an_override_wins_and_is_marked() -> None:
    answer = sized(CHAT_8B + OVERRIDDEN)
    found = answer.workload
    assert found.serving is not None
    assert found.gpu == "l40s"
    assert found.parallelism.tensor_parallel_size == 2
    assert found.replicas == 3
    assert found.serving.max_model_len == 4096
    assert found.serving.max_num_seqs == 32
    assert found.serving.gpu_memory_utilization == 0.8
    assert found.serving.kv_cache_dtype == "fp8"
    assert found.resources.cpu_cores == 8
    assert found.resources.host_memory_bytes == 48 * 2**30
    assert found.resources.shared_memory_bytes == 4 * 2**30
    assert next(v.size_bytes for v in found.volumes) == 100 * 2**30
    assert len(found.overrides) == 11
    replaced = {o.quantity: o.derived for o in found.overrides}
    assert replaced["work.replicas"] == 1
    assert replaced["work.gpu_memory_utilization"] == 0.9
    marked = {e.quantity for e in answer.evidence if e.overridden_by}
    assert {"work.replicas", "work.tensor_parallel_size", "work.max_num_seqs"} <= marked


def test_overrides_of_a_training_run() -> None:
    text = FULL_8B + "    overrides: {gpu_count: 8, micro_batch: 1, checkpoint_storage: 1 TiB}\n"
    found = work(text, site("h100-sxm-80gb"))
    assert found.training is not None
    assert found.gpu_count == 8
    assert found.training.micro_batch == 1
    assert found.training.gradient_accumulation_steps == 16
    sizes = {v.purpose: v.size_bytes for v in found.volumes}
    assert sizes["checkpoints"] == 2**40
    assert {o.quantity for o in found.overrides} == {
        "work.gpu_count",
        "work.micro_batch",
        "work.checkpoint_storage_bytes",
    }


@pytest.mark.parametrize(
    ("overrides", "gate"),
    [
        ("{gpu: l40s, tensor_parallel_size: 1}", "gpu_memory"),
        ("{replicas: 1}", "replicas"),
        ("{tensor_parallel_size: 3}", "3 GPUs do not divide 64 attention heads"),
        ("{tensor_parallel_size: 16}", "gpus_per_node"),
    ],
)
def test_an_override_that_does_not_fit_is_an_error(overrides: str, gate: str) -> None:
    found = failure(CHAT_70B + f"    overrides: {overrides}\n")
    assert found.rule == "GP011"
    assert gate in found.label


@pytest.mark.parametrize(
    ("overrides", "instead"),
    [
        ("max_num_seqs: 1000000", "max_num_seqs 192"),
        ("gpu_memory_utilization: 0.03", "gpu_memory_utilization 0.9"),
        ("kv_cache_dtype: fp8", "kv_cache_dtype auto"),
    ],
)
def test_an_override_that_keeps_all_from_fitting_is_named_with_what_is_derived(
    overrides: str, instead: str
) -> None:
    gpu = "a100-sxm-80gb" if "kv_cache" in overrides else "l40s"
    found = failure(CHAT_8B + f"    overrides: {{{overrides}}}\n", site(gpu, node_count=9))
    assert (found.rule, str(found.origin)) == (
        "GP011",
        f"m.yaml:workloads[0].overrides.{overrides.partition(':')[0]}",
    )
    assert instead in found.help


@pytest.mark.parametrize(
    ("overrides", "why"),
    [
        ("model_storage: 1 GiB", "15 GiB must lie there"),
        ("shared_memory: 500 GiB, host_memory_per_gpu: 32 GiB", "which is 32 GiB"),
    ],
)
def test_an_override_that_cannot_work_is_refused(overrides: str, why: str) -> None:
    found = failure(CHAT_8B + f"    overrides: {{{overrides}}}\n", site("l40s", node_count=9))
    assert found.rule == "GP011"
    assert why in found.message


def test_an_override_that_is_unwise_wins_with_a_warning() -> None:
    answer = sized(
        CHAT_8B + "    overrides: {host_memory_per_gpu: 8 GiB}\n", site("l40s", node_count=9)
    )
    assert answer.workload.resources.host_memory_bytes == 8 * GIB
    (warning,) = answer.diagnostics
    assert (warning.rule, warning.severity) == ("GP011", Severity.WARNING)
    assert "'overrides.host_memory_per_gpu' is less than it should be" in warning.message
    few = sized(
        FULL_8B + "    overrides: {checkpoint_storage: 150 GiB, gpu_count: 8}\n",
        site("h100-sxm-80gb"),
    )
    (unwise,) = (d for d in few.diagnostics if d.severity is Severity.WARNING)
    assert unwise.message.endswith(
        "two checkpoints that are kept and one that is written take 314 GiB"
    )
    none = failure(FULL_8B + "    overrides: {checkpoint_storage: 1 GiB}\n", site("h100-sxm-80gb"))
    assert "must lie there" in none.message


def test_gates_of_several_types_that_are_alike_are_said_once() -> None:
    where = site("h100-sxm-80gb", "h200-sxm-141gb")
    found = failure(CHAT_70B + "    overrides: {tensor_parallel_size: 3}\n", where)
    assert found.label == ("h100-sxm-80gb, h200-sxm-141gb: 3 GPUs do not divide 64 attention heads")


def test_a_remedy_is_what_the_search_and_the_checkpoint_allow(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """No engine makes int4 of published bf16 weights; an A100 computes bf16 and no fp8, where the
    engine does not widen its weights."""
    monkeypatch.setattr(efficiency, "WIDENED", {})
    relaxed = CHAT_70B.replace("time_to_first_token: 1 s", "time_to_first_token: 4 s")
    found = failure(relaxed, site("a100-sxm-80gb"))
    assert "`precision: bf16` takes" in found.help
    where = site("h100-nvl-94gb")
    without = replace(where.gpus[0], gpu=replace(where.gpus[0].gpu, peak_fp8=None))
    unknown = failure(CHAT_70B, replace(where, gpus=(without,)))
    assert unknown.label == "h100-nvl-94gb: the catalogue does not know its fp8 peak"


def test_an_objective_that_is_too_tight_is_called_as_it_was_written() -> None:
    text = FULL_8B.replace("slo: {finish_within: 2 d}", "deadline: 1 h")
    where = site("h100-sxm-80gb", node_count=1)
    found = failure(text, where)
    assert "`deadline: " in found.help  # the nearest answer, however far
    (change,) = next(r for r in found.remedies if r[0].origin.path[-1] == "deadline")
    assert change.origin.path == ("workloads", 0, "deadline")
    assert work(text.replace("1 h", str(change.value)), where).gpu_count == 8


@pytest.mark.parametrize(
    ("old", "new", "cause"),
    [
        ("tokens: 1e9", "tokens: 1e9", "platform.fabric"),
        ("global_batch: 128", "global_batch: 13", "`global_batch: 16` takes"),
        ("tokens: 1e9", "tokens: 1e9, optimizer: adamw-bf16", "`optimizer: adamw` takes"),
    ],
)
def test_a_run_that_no_number_of_gpus_holds_says_what_limits_the_number(
    old: str, new: str, cause: str
) -> None:
    text = FULL_8B.replace(old, new).replace("2 d", "60 d")
    where = site("h100-sxm-80gb")
    if "batch" not in new:
        text = text.replace("Llama-3.1-8B", "Llama-3.3-70B-Instruct")
    if cause == "platform.fabric":
        where = replace(where, fabric=None)
    assert cause in failure(text, where).help


def test_an_override_is_not_blamed_for_what_nothing_meets() -> None:
    text = CHAT_70B.replace("40 ms", "1 ms") + "    overrides: {tensor_parallel_size: 4}\n"
    assert failure(text).rule == "GP010"


def test_a_gpu_that_is_not_offered_cannot_be_chosen() -> None:
    found = failure(CHAT_70B + "    overrides: {gpu: h100-sxm-80g}\n")
    assert found.rule == "GP011"
    assert found.label == "did you mean 'h100-sxm-80gb'?"


def test_a_partition_that_does_not_exist_cannot_be_chosen() -> None:
    found = failure(CHAT_8B + "    overrides: {partition: 3g.40g}\n", site("h100-sxm-80gb"))
    assert found.rule == "GP011"
    assert found.label == "did you mean '3g.40gb'?"
    chosen = work(CHAT_8B + "    overrides: {partition: 3g.40gb}\n", site("h100-sxm-80gb"))
    assert chosen.partition == "3g.40gb"


def test_a_forced_gpu_shows_what_would_be_cheaper() -> None:
    found = work(CHAT_8B + "    overrides: {gpu: b200-sxm-180gb}\n")
    assert found.gpu == "b200-sxm-180gb"
    cheaper = next(a for a in found.alternatives if a.gpu == "l40s")
    assert cheaper.gate == "override"
    assert cheaper.flip is not None
    assert cheaper.flip.needed > cheaper.flip.now


def test_what_no_data_parallel_run_holds_is_held_by_dividing_its_layers() -> None:
    """The engine of the run divides no model: it is said which one does."""
    text = FULL_8B.replace("Llama-3.1-8B", "Llama-3.1-405B")
    found = failure(text, site("h100-sxm-80gb", node_count=64))
    assert "128 × h100-sxm-80gb hold it with tensor parallel " in found.help
    assert "pipeline parallel" in found.help
    assert "which `engine: megatron-bridge` runs" in found.help
    few = failure(text, site("h100-sxm-80gb", node_count=2))
    assert "parallel" not in few.help


def drafting(accepted: float, more: str = "") -> str:
    """A service that drafts three tokens."""
    fields = f"accepted_tokens: {accepted}, draft_tokens: 3, draft_cost: 0.1"
    return CHAT_8B + f"    speculative: {{{fields}{more and ', '}{more}}}\n"


@pytest.mark.parametrize(
    "workload",
    [
        CHAT_70B.replace("mean: 8, peak: 20", "mean: 20, peak: 20"),
        CHAT_70B.replace("mean: 1200, p95: 4000", "mean: 4000, p95: 4000"),
        CHAT_70B.replace("p95: 4000", "p95: 130772"),  # and 300 out: 131,072, its context
        CHAT_8B + "    overrides: {max_model_len: 1050}\n",  # 800 in and 250 out
        FULL_8B.replace("sequence_length: 4096", "sequence_length: 131072"),
        drafting(4),
        IMAGES.replace("10 h", "23.9 h"),
        CHAT_8B + "    secrets: {TOKEN: {config: hf}}\n",
        CHAT_8B + "    secrets: {TOKEN: {secret: hf, key: token}}\n",
        *(FULL_8B + f"    precision: {name}\n" for name in ("bf16", "fp16", "fp8")),
    ],
)
def test_what_may_just_be_is_taken(workload: str) -> None:
    assert refusals(workload) == ()


@pytest.mark.parametrize(
    ("written", "store", "name", "key"),
    [
        ("config: hf", "config", "hf", "TOKEN"),
        ("secret: hf", "secret", "hf", "TOKEN"),
        ("secret: hf, key: token", "secret", "hf", "token"),
    ],
)
def test_a_secret_is_read_under_its_key_or_else_the_name_of_the_variable(
    written: str, store: str, name: str, key: str
) -> None:
    (secret,) = work(f"{CHAT_8B}    secrets: {{TOKEN: {{{written}}}}}\n").secrets
    assert (secret.environment, secret.store) == ("TOKEN", store)
    assert (secret.name, secret.key) == (name, key)


@pytest.mark.parametrize(
    ("workload", "place", "words"),
    [
        (
            CHAT_70B.replace("p95: 4000", "p95: 130773"),
            "load",
            "131,073 tokens are more than meta-llama/Llama-3.3-70B-Instruct can take",
        ),
        (
            CHAT_8B + "    overrides: {max_model_len: 1049}\n",
            "overrides.max_model_len",
            "input and output reach 1,050 tokens",
        ),
        (
            FULL_8B.replace("sequence_length: 4096", "sequence_length: 131073"),
            "training.sequence_length",
            "its context is 131,072 tokens",
        ),
        (
            drafting(4.5),
            "speculative.accepted_tokens",
            "a step yields 4 at most: all drafts and one more",
        ),
        (IMAGES.replace("10 h", "24 h"), "load.idle", "a day has 24 h"),
        (
            CHAT_8B + "    secrets: {TOKEN: {config: hf, secret: hf}}\n",
            "secrets.TOKEN",
            "write 'config', or 'secret' with its 'key'",
        ),
        (
            CHAT_8B.replace("800", "{mean: 800, p95: 799}"),
            "load.input_tokens.p95",
            "799 < 800",
        ),
        (
            CHAT_8B.replace("250", "{mean: 250, p95: 249}"),
            "load.output_tokens.p95",
            "249 < 250",
        ),
        (
            IMAGES.replace("mean: 1024x1024", "mean: 1024x1024, p95: 512x512"),
            "load.images.p95",
            "raise it, or leave it out of 'load.images'",
        ),
        (
            drafting(2, "method: eagle"),
            "speculative.method",
            "method 'eagle' needs a draft model",
        ),
        (
            drafting(2, "method: mtp, model: a/b"),
            "speculative.model",
            "method 'mtp' has no draft model",
        ),
        (
            drafting(2, "model: a/b"),
            "speculative.model",
            "a draft model without the method that uses it",
        ),
        (
            CHAT_8B.replace("requests_per_second: 2", "requests_per_second: 2, concurrency: 4"),
            "load.concurrency",
            "an open and a closed loop",
        ),
    ],
)
def test_a_little_more_is_refused_with_the_numbers(workload: str, place: str, words: str) -> None:
    (refusal,) = refusals(workload)
    assert refusal.origin is not None
    assert format_path(refusal.origin.path[2:]) == place
    assert words in (refusal.message, refusal.label, refusal.help)


def test_a_field_that_is_missing_or_not_used_is_underlined_by_its_key() -> None:
    """The name, not all that stands below it."""
    for text in (CHAT_8B.replace(", output_tokens: 250", ""), CHAT_8B + "    deadline: 3 h\n"):
        (refusal,) = refusals(text)
        assert refusal.origin is not None
        assert refusal.origin.key


@pytest.mark.parametrize(("engine", "place"), [("    engine: axolotl\n", "engine"), ("", "task")])
def test_an_engine_that_does_not_fit_is_refused_where_it_was_chosen(
    engine: str, place: str
) -> None:
    with pytest.raises(Rejected) as refused:
        wanted(CHAT_8B + engine, engine="axolotl")
    (refusal,) = refused.value.diagnostics
    assert refusal.message == "engine 'axolotl' does not do inference"
    assert refusal.origin is not None
    assert format_path(refusal.origin.path[2:]) == place


@pytest.mark.parametrize(
    ("text", "missing"),
    [
        ("    task: batch\n    load: {requests: 9, images: {mean: 512x512, steps: 4}}\n", []),
        ("    task: batch\n    load: {requests: 9}\n", ["input_tokens", "output_tokens"]),
        ("    task: inference\n", ["requests_per_second", "input_tokens", "output_tokens"]),
    ],
)
def test_where_the_model_is_unknown_the_load_tells_what_is_missing(
    text: str, missing: list[str]
) -> None:
    said = [d.message for d in refusals(text)]
    assert said == [f"missing field '{name}'" for name in ("model", *missing)]


def test_a_run_without_a_place_for_its_epochs_is_told_where_to_write_them() -> None:
    """Beside the dataset where there is one, else in the workload."""
    bare = "    task: finetuning\n    model: meta-llama/Llama-3.1-8B\n    training: {epochs: 2}\n"
    for more, place in (("", ""), ("    dataset: {name: corpus}\n", "dataset")):
        ((rule, where, message),) = messages(bare + more)
        assert (rule, where, message) == ("GP004", place, "missing field 'tokens'")
