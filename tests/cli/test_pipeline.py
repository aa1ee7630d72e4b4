"""What only the whole compiler can get right."""

from __future__ import annotations

import ast
from decimal import Decimal
from pathlib import Path

import pytest
from ruamel.yaml import YAML

from gpuplan.cli.main import main
from gpuplan.diagnostics import Diagnostic
from gpuplan.pipeline import Compiled, Result, compile_files
from gpuplan.plan import serialize
from gpuplan.render import yaml
from tests.support.samples import HOSTILE

ROOT = Path(__file__).parents[2]
BASE = """\
apiVersion: gpuplan.dev/v1
name: chat
platform: {target: kubernetes, gpus: [l40s]}
workloads:
- name: assistant
  task: inference
  model: meta-llama/Llama-3.1-8B-Instruct
  load: {requests_per_second: 1, input_tokens: 500, output_tokens: 100}
"""


def compiled(tmp_path: Path, text: str) -> Result:
    path = tmp_path / "m.yaml"
    path.write_text(text, encoding="utf-8")
    return compile_files([path])


def only(result: Result) -> Compiled:
    assert [p.message for p in result.problems if p.severity.value == "error"] == []
    return result.stacks[0]


def problem(result: Result, rule: str) -> Diagnostic:
    assert result.stacks == ()
    found = [p for p in result.problems if p.rule == rule]
    assert len(found) == 1, [p.message for p in result.problems]
    return found[0]


def test_the_shortest_manifest_compiles(tmp_path: Path) -> None:
    stack = only(compiled(tmp_path, BASE))
    assert stack.plan.workloads[0].gpu == "l40s"
    assert [c.name for c in stack.plan.components] == ["gpu-operator"]
    paths = {f.path for f in stack.files}
    assert {"plan.yaml", "README.md", "gpuplan.lock", "checksums.txt"} <= paths
    assert {"Pulumi.yaml", "helm/10-gpu-operator/values.yaml"} <= paths


def test_hostile_text_is_data_in_every_file(tmp_path: Path) -> None:
    hostile = yaml.quoted(HOSTILE)
    text = BASE.replace("name: chat\n", f"name: chat\ndescription: {hostile}\n") + (
        f"  description: {hostile}\n  environment: {{NOTE: {hostile}}}\n"
        f"  command: [sh, -c, {hostile}]\n"
    )
    stack = only(compiled(tmp_path, text))
    assert stack.plan.description == HOSTILE
    constants: list[object] = []
    for file in stack.files:
        if file.path.endswith(".py"):
            constants += [
                n.value for n in ast.walk(ast.parse(file.text)) if isinstance(n, ast.Constant)
            ]
        elif file.path.endswith(".yaml"):
            assert YAML(typ="safe", pure=True).load(file.text) is not None
    # Kubernetes expands $(NAME) in commands and variables; $$ keeps it text.
    assert constants.count(HOSTILE.replace("$", "$$")) == 2
    texts = {f.path: f.text for f in stack.files}
    assert serialize.load(texts["plan.yaml"]).workloads[0].description == HOSTILE
    assert YAML(typ="safe", pure=True).load(texts["Pulumi.yaml"])["description"]
    assert "<b>" not in texts["README.md"]


def test_moving_a_line_changes_no_stack(tmp_path: Path) -> None:
    one = only(compiled(tmp_path, BASE))
    two = only(compiled(tmp_path, "# a comment\n\n" + BASE.replace("{requests", "{  requests")))
    assert one.files == two.files


def test_an_override_wins_and_is_marked(tmp_path: Path) -> None:
    stack = only(compiled(tmp_path, BASE + "  overrides: {replicas: 3}\n"))
    work = stack.plan.workloads[0]
    assert work.replicas == 3
    assert [o.quantity for o in work.overrides] == ["assistant.replicas"]
    marked = [e for e in stack.plan.evidence if e.overridden_by]
    assert marked
    assert "replicas" in marked[0].quantity


def test_a_target_without_a_backend_is_refused_by_name(tmp_path: Path) -> None:
    found = problem(
        compiled(tmp_path, BASE.replace("target: kubernetes", "target: kubevirt")), "GP011"
    )
    assert "'kubevirt'" in found.message
    assert "kubernetes" in found.help


def test_another_vendors_gpu_is_known_but_not_planned(tmp_path: Path) -> None:
    text = BASE.replace("[l40s]", "[l40s, rx-7900-xtx-24gb]")
    found = problem(compiled(tmp_path, text), "GP012")
    assert found.message == "AMD Radeon RX 7900 XTX cannot be planned"


def test_cards_without_price_and_reference_node_are_offered_by_name_only(tmp_path: Path) -> None:
    node = "node: {gpus: 4, cpu_cores: 32, memory: 256 GiB}"
    (workload,) = only(compiled(tmp_path, BASE.replace("gpus: [l40s]", node))).plan.workloads
    offered = {workload.gpu, *(a.gpu for a in workload.alternatives)}
    assert "l40s" in offered
    assert not offered & {"rtx-4090-24gb", "mi300x-192gb"}
    named = BASE.replace("gpus: [l40s]", f"gpus: [rtx-4090-24gb], {node}")
    assert only(compiled(tmp_path, named)).plan.workloads[0].gpu == "rtx-4090-24gb"


def test_an_unknown_engine_is_refused_by_name(tmp_path: Path) -> None:
    found = problem(compiled(tmp_path, BASE + "  engine: vlm\n"), "GP006")
    assert found.label == "did you mean 'vllm'?"


def test_an_engine_version_without_an_image_is_not_guessed(tmp_path: Path) -> None:
    text = BASE + "  engine: {name: vllm, version: 0.1.0}\n"
    assert "never guessed" in problem(compiled(tmp_path, text), "GP015").help


def test_a_field_that_the_task_does_not_use_is_refused(tmp_path: Path) -> None:
    result = compiled(tmp_path, BASE + "  training: {tokens: 1e9}\n")
    assert result.stacks == ()
    (told,) = {p.message for p in result.problems}
    assert told == "'training.tokens' is not used by an inference workload"


def test_what_is_wrong_with_a_workload_is_said_at_once(tmp_path: Path) -> None:
    text = BASE.replace("[l40s]", "[l40s, l40z]").replace(
        "requests_per_second: 1,", "requests_per_second: {mean: 2, peak: 1},"
    )
    text += "  training: {tokens: 1e9}\n  overrides: {gpu: l4}\n"
    found = [p.message for p in compiled(tmp_path, text).problems]
    assert sorted(found) == [
        "'l4' cannot be chosen as overrides.gpu here",
        "'peak' is below the mean",
        "'training.tokens' is not used by an inference workload",
        "unknown GPU 'l40z'",
    ]


@pytest.mark.parametrize(
    ("written", "meant"),
    [
        ("rtx-4090", "'rtx-4090-24gb' or 'rtx-4090-d-24gb'"),
        ("NVIDIA B200", "'b200-sxm-180gb'"),
        ("L40-S", "'l40s'"),
        ("l4os", "'l40s'"),
    ],
)
def test_a_gpu_that_is_named_otherwise_is_told_its_name(
    tmp_path: Path, written: str, meant: str
) -> None:
    found = problem(compiled(tmp_path, BASE.replace("[l40s]", f"[{written}]")), "GP006")
    assert found.label == f"did you mean {meant}?"


def test_a_load_that_nothing_can_carry_names_each_gpu_and_the_nearest_remedy(
    tmp_path: Path,
) -> None:
    text = BASE + "  slo: {time_per_output_token: 0.1 ms}\n"
    found = problem(compiled(tmp_path, text), "GP010")
    assert "l40s" in found.message + found.label + found.help


def test_prices_of_the_manifest_beat_the_catalogue(tmp_path: Path) -> None:
    text = BASE.replace("gpus: [l40s]", "gpus: [l40s, l4], prices: {l40s: $0.01/hour}")
    stack = only(compiled(tmp_path, text))
    assert stack.plan.workloads[0].gpu == "l40s"
    assert stack.plan.cost.price_source == "manifest: platform.prices.l40s"


SERVED = """\
- name: {name}
  task: inference
  model: meta-llama/Llama-3.1-8B-Instruct
  load: {{requests_per_second: {rate}, input_tokens: 1000, output_tokens: 300}}
  slo: {{time_per_output_token: 50 ms}}
"""
FOUR_OR_EIGHT = "nodes: [Standard_NC32ads_A10_v4, p4d.24xlarge]"
RACK = """\
apiVersion: gpuplan.dev/inventory/v1
name: rack
hosts:
- names: [h1, h2, h3, h4]
  gpus: [{type: h100-sxm-80gb, count: 8}]
- names: [l1, l2]
  gpus: [{type: l40s, count: 4}]
"""


def stack_of(platform: str, *workloads: str) -> str:
    head = f"apiVersion: gpuplan.dev/v1\nname: chat\nplatform: {{target: kubernetes, {platform}}}\n"
    return f"{head}workloads:\n{''.join(workloads)}"


def test_another_gpu_type_to_choose_from_never_makes_the_plan_dearer(tmp_path: Path) -> None:
    """An A100 is cheaper by the GPU, but comes in nodes of eight."""
    one = SERVED.format(name="a", rate=4)
    few = only(compiled(tmp_path, stack_of(f"gpus: [a10], {FOUR_OR_EIGHT}", one))).plan
    both = stack_of(f"gpus: [a10, a100-sxm-40gb], {FOUR_OR_EIGHT}", one)
    more = only(compiled(tmp_path, both)).plan
    assert few.cost.usd_per_hour is not None
    assert more.cost.usd_per_hour is not None
    assert more.cost.usd_per_hour <= few.cost.usd_per_hour
    (work,) = more.workloads
    assert work.usd_per_hour == more.cost.usd_per_hour
    (other,) = work.alternatives
    assert other.usd_per_hour == 8 * Decimal("2.744705")


def test_a_flip_of_the_price_is_where_the_plan_would_change(tmp_path: Path) -> None:
    one = SERVED.format(name="a", rate=4)
    (other,) = (
        only(compiled(tmp_path, stack_of(f"gpus: [a10, a100-sxm-40gb], {FOUR_OR_EIGHT}", one)))
        .plan.workloads[0]
        .alternatives
    )
    assert other.flip is not None
    for factor, gpu in ((0.99, "a100-sxm-40gb"), (1.01, "a10")):
        price = f"prices: {{a100-sxm-40gb: ${other.flip.needed * factor:.6f}/hour}}"
        text = stack_of(f"gpus: [a10, a100-sxm-40gb], {FOUR_OR_EIGHT}, {price}", one)
        assert only(compiled(tmp_path, text)).plan.workloads[0].gpu == gpu


def test_workloads_share_nodes_where_that_costs_less_than_the_best_of_each(tmp_path: Path) -> None:
    """Alone each takes a node of four A10; four of them fill the eight GPUs of one node."""
    prices = "prices: {a10: $2/hour, a100-sxm-40gb: $1.5/hour}"
    gpus = f"gpus: [a10, a100-sxm-40gb], nodes: [oci-bm-gpu-a10-4, oci-bm-gpu4-8], {prices}"
    alone = only(compiled(tmp_path, stack_of(gpus, SERVED.format(name="a", rate=2)))).plan
    assert alone.workloads[0].gpu == "a10"
    four = [SERVED.format(name=name, rate=2) for name in "abcd"]
    plan = only(compiled(tmp_path, stack_of(gpus, *four))).plan
    assert {w.gpu for w in plan.workloads} == {"a100-sxm-40gb"}
    assert [p.node_count for p in plan.node_pools] == [1]
    assert sum(w.usd_per_hour or 0 for w in plan.workloads) == plan.cost.usd_per_hour == 12


def test_machines_that_are_taken_send_a_workload_to_other_ones(tmp_path: Path) -> None:
    (tmp_path / "rack.yaml").write_text(RACK)
    prices = "inventory: rack.yaml, prices: {l40s: $1/hour, h100-sxm-80gb: $9/hour}"
    two = [SERVED.format(name=name, rate=18) for name in "ab"]
    plan = only(compiled(tmp_path, stack_of(prices, *two))).plan
    assert [w.gpu for w in plan.workloads] == ["h100-sxm-80gb"] * 2, "one node is paid for both"
    assert [p.node_count for p in plan.node_pools] == [1]
    two[0] += "  overrides: {gpu: l40s}\n"
    plan = only(compiled(tmp_path, stack_of(prices, *two))).plan
    assert [w.gpu for w in plan.workloads] == ["l40s", "h100-sxm-80gb"]
    (refused,) = [a for w in plan.workloads for a in w.alternatives if a.shortfalls]
    assert (refused.gpu, refused.gate) == ("l40s", "nodes with l40s")


def test_where_no_combination_fits_the_idle_machines_are_named(tmp_path: Path) -> None:
    (tmp_path / "rack.yaml").write_text(RACK)
    two = [SERVED.format(name=n, rate=18) + "  overrides: {gpu: l40s}\n" for n in "ab"]
    found = problem(compiled(tmp_path, stack_of("inventory: rack.yaml", *two)), "GP041")
    assert "nodes with l40s: 3 asked, 0 of 2 taken" in found.message
    assert found.label == "idle: 4 nodes of 8 × h100-sxm-80gb"


def test_machines_of_one_kind_may_be_listed_in_several_entries(tmp_path: Path) -> None:
    split = RACK.replace("[h1, h2, h3, h4]", "[h1]")
    split += "- names: [h2, h3]\n  gpus: [{type: h100-sxm-80gb, count: 8}]\n"
    (tmp_path / "rack.yaml").write_text(split)
    text = stack_of("inventory: rack.yaml, gpus: [h100-sxm-80gb]", SERVED.format(name="a", rate=4))
    replicas = "  overrides: {tensor_parallel_size: 8, replicas: 3}\n"
    (pool,) = only(compiled(tmp_path, text + replicas)).plan.node_pools
    assert pool.node_names == ("h1", "h2", "h3")
    other = split.replace("[h2, h3]", "[h2, h3]\n  memory: 4 TiB")
    (tmp_path / "rack.yaml").write_text(other)
    found = problem(compiled(tmp_path, text + replicas), "GP011")
    assert "one kind" in found.label


def test_training_an_image_model_is_refused_for_what_it_is(tmp_path: Path) -> None:
    text = BASE.replace("inference", "finetuning").replace(
        "meta-llama/Llama-3.1-8B-Instruct", "black-forest-labs/FLUX.1-dev"
    )
    text = text.replace(
        "load: {requests_per_second: 1, input_tokens: 500, output_tokens: 100}",
        "training: {steps: 100}",
    )
    found = problem(compiled(tmp_path, text), "GP007")
    assert found.message == "training of an image model (black-forest-labs/FLUX.1-dev) is not sized"


def test_what_a_target_does_nothing_with_is_said(tmp_path: Path) -> None:
    """On machines there are no add-ons, no scheduler and no secrets of Kubernetes."""
    text = (ROOT / "examples/notebooks.yaml").read_text()
    hosts = ROOT / "examples/inventories/hypervisors.yaml"
    text = text.replace("inventories/hypervisors.yaml", str(hosts))
    text = text.replace("  gpus:", "  versions: {gpu-operator: v25.3.0}\n  gpus:")
    fabric = "{kind: infiniband, bandwidth_per_gpu: 400 Gb/s, resource: rdma/one}"
    more = f"  storage: {{class: fast}}\n  fabric: {fabric}\n"
    text = text.replace("  gpus:", f"{more}  gpus:")
    text += "  priority: high\n  preemptible: true\n  secrets: {A: {config: a}}\n"
    result = compiled(tmp_path, text)
    assert only(result).plan.components == ()
    said = [p.message.partition(" has no effect")[0] for p in result.problems]
    assert {
        "platform.versions",
        "platform.storage.class",
        "platform.fabric.resource",
        "'helper': priority",
        "'helper': preemptible",
    } <= set(said)
    assert any("in its VMs, nor puts A there" in text for text in said)


def test_the_storages_bandwidth_says_how_long_a_replica_reads_its_weights(tmp_path: Path) -> None:
    text = BASE.replace("gpus: [l40s]", "gpus: [l40s], storage: {bandwidth: 2 GB/s}")
    evidence = {e.quantity: e.value for e in only(compiled(tmp_path, text)).plan.evidence}
    assert 7 < evidence["assistant.load_seconds"] < 9


def test_an_inventory_problem_stands_at_the_inventorys_line(tmp_path: Path) -> None:
    (tmp_path / "rack.yaml").write_text(
        "apiVersion: gpuplan.dev/inventory/v1\nname: rack\nhosts:\n"
        "- names: [a]\n  gpus: [{type: l40x, count: 4}]\n"
    )
    text = BASE.replace("gpus: [l40s]", "inventory: rack.yaml")
    result = compiled(tmp_path, text)
    found = problem(result, "GP006")
    place = result.sources.locate(found.origin)
    assert place is not None
    assert (Path(place[0].path).name, place[1].line) == ("rack.yaml", 5)


def test_a_manifest_and_an_inventory_of_one_name_keep_their_lines(tmp_path: Path) -> None:
    (tmp_path / "site").mkdir()
    (tmp_path / "site/m.yaml").write_text(
        "apiVersion: gpuplan.dev/inventory/v1\nname: rack\nhosts:\n"
        "- {names: [a], node_type: pcie-4x-l40s, gpus: [{type: l40s, count: 4}]}\n"
    )
    result = compiled(tmp_path, BASE.replace("gpus: [l40s]", "inventory: site/m.yaml"))
    (note,) = [p for p in result.problems if "list prices" in p.message]
    place = result.sources.locate(note.origin)
    assert place is not None
    assert place[0].path == str(tmp_path / "m.yaml")
    assert place[1].line == 3


def test_a_missing_inventory_is_said_where_it_is_named(tmp_path: Path) -> None:
    result = compiled(tmp_path, BASE.replace("gpus: [l40s]", "inventory: none.yaml"))
    place = result.sources.locate(problem(result, "GP009").origin)
    assert place is not None
    assert place[1].line == 3


@pytest.mark.parametrize(
    ("model", "rule"),
    [
        ("./none.json", "GP009"),
        ("{path: ./x.json, config: {}}", "GP007"),
        ("{revision: abc}", "GP004"),
        ("{name: a/b, config: {architectures: [FooForCausalLM]}}", "GP011"),
    ],
)
def test_a_model_that_cannot_be_known(tmp_path: Path, model: str, rule: str) -> None:
    problem(compiled(tmp_path, BASE.replace("meta-llama/Llama-3.1-8B-Instruct", model)), rule)


def test_the_lock_names_what_the_stack_was_made_from(tmp_path: Path) -> None:
    stack = only(compiled(tmp_path, BASE))
    lock = yaml.loads(next(f.text for f in stack.files if f.path == "gpuplan.lock"))
    assert set(lock) >= {"gpuplan", "catalog_sha256", "inputs", "prices", "charts", "images"}
    changed = only(compiled(tmp_path, BASE.replace("output_tokens: 100", "output_tokens: 101")))
    other = yaml.loads(next(f.text for f in changed.files if f.path == "gpuplan.lock"))
    assert lock["inputs"] != other["inputs"]


INVENTORY = """\
apiVersion: gpuplan.dev/inventory/v1
name: rack
hosts:
- names: [gpu-01]
  numa_nodes:
  - {cpus: "0-31,64-95", memory: 512 GiB, distances: [10, 32]}
  - {cpus: "32-63,96-127", memory: 512 GiB, distances: [32, 10]}
  gpus:
  - {type: l40s, count: 2}
"""


def with_inventory(tmp_path: Path, inventory: str, manifest: str = BASE) -> list[str]:
    """What is wrong with a manifest that names `inventory`."""
    (tmp_path / "rack.yaml").write_text(inventory, encoding="utf-8")
    named = manifest.replace("target: kubernetes", "target: kubernetes, inventory: rack.yaml")
    result = compiled(tmp_path, named)
    problems = [p for p in result.problems if p.severity.value == "error"]
    assert bool(problems) != bool(result.stacks)
    assert all(result.sources.locate(p.origin) for p in problems)
    return [p.message for p in problems]


@pytest.mark.parametrize(
    ("old", "new", "messages"),
    [
        (INVENTORY, "", ["rack.yaml holds no document"]),
        (INVENTORY, "# later\n", ["rack.yaml holds no document"]),
        (INVENTORY, f"{INVENTORY}---\na: 1\n", ["rack.yaml holds more than one document"]),
        ("gpu-01", "HV_03", ["'HV_03' is not a valid entry of 'names'"]),
        ("0-31,", "31-0,", ["'cpus': '31-0' runs backwards, write 0-31"]),
        ("0-31,", "0-99999999999,", ["'0-99999999999,64-95' is not a valid 'cpus'"]),
        ("[32, 10]", "[31, 10]", ["NUMA node 0 is 31 from node 1, and 32 the other way round"]),
        (
            "count: 2}",
            'count: 2, address: "0000:25:00.0"}',
            ["one address for 2 GPUs"],
        ),
        (
            "  - {type: l40s",
            "  - {type: l4os, count: 2}\n  - {typ: l40s",
            ["unknown GPU 'l4os'", "unknown field 'typ'"],
        ),
    ],
)
def test_each_mistake_of_an_inventory_is_told_once(
    tmp_path: Path, old: str, new: str, messages: list[str]
) -> None:
    assert with_inventory(tmp_path, INVENTORY) == []
    assert sorted(with_inventory(tmp_path, INVENTORY.replace(old, new))) == sorted(messages)


def test_two_workloads_of_one_name_are_one_message(tmp_path: Path) -> None:
    result = compiled(tmp_path, BASE + BASE.partition("workloads:\n")[2])
    found = problem(result, "GP007")
    assert len(result.problems) == 1
    assert found.message == "two workloads are, or were, called 'assistant'"
    assert result.sources.locate(found.origin)[1].line == 9  # type: ignore[index]
    assert result.sources.locate(found.related[0].origin)[1].line == 5  # type: ignore[index]


@pytest.mark.parametrize("former", ["[assistant]", "[old, old]"])
def test_a_former_name_belongs_to_one_workload(tmp_path: Path, former: str) -> None:
    result = compiled(tmp_path, BASE + f"  renamed_from: {former}\n")
    assert result.sources.locate(problem(result, "GP007").origin)[1].line == 9  # type: ignore[index]


@pytest.mark.parametrize("broken", ["task: infer", "task: inference"])
def test_a_target_without_a_backend_hides_nothing(tmp_path: Path, broken: str) -> None:
    text = BASE.replace("task: inference", broken).replace("Llama-3.1-8B", "Lama-3.1-8B")
    result = compiled(tmp_path, text.replace("target: kubernetes", "target: kubevirt"))
    rules = {p.rule for p in result.problems}
    assert rules == {"GP006", "GP011"} | ({"GP005"} if broken == "task: infer" else set())


def test_one_problem_of_two_manifests_is_printed_once(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "rack.yaml").write_text("", encoding="utf-8")
    for name in ("a", "b"):
        text = BASE.replace("name: chat", f"name: {name}")
        path = tmp_path / f"{name}.yaml"
        path.write_text(text.replace("kubernetes,", "kubernetes, inventory: rack.yaml,"))
    assert main(["compile", str(tmp_path / "a.yaml"), str(tmp_path / "b.yaml")]) == 2
    assert capsys.readouterr().err.count("holds no document") == 1


@pytest.mark.parametrize(
    ("config", "reason"),
    [
        ("[" * 100_000, "nested too deeply"),
        ('{"_name_or_path": "\\ud83d"}', "half of a surrogate pair"),
        ("{", "not JSON"),
    ],
)
def test_a_broken_config_is_refused(tmp_path: Path, config: str, reason: str) -> None:
    (tmp_path / "config.json").write_text(config, encoding="utf-8")
    text = BASE.replace("meta-llama/Llama-3.1-8B-Instruct", "./config.json")
    assert reason in problem(compiled(tmp_path, text), "GP009").message


def test_a_numa_node_that_does_not_exist_is_said_of_every_target(tmp_path: Path) -> None:
    text = (ROOT / "examples/inventories/rack-7.yaml").read_text(encoding="utf-8")
    node = "numa_nodes: [{cpus: 0-55, memory: 1 TiB}, {cpus: 56-111, memory: 1 TiB}]"
    text = text.replace("cpu_cores: 112\n  memory: 2 TiB", node, 1)
    text = text.replace("h100-sxm-80gb, count: 8}", "h100-sxm-80gb, count: 8, numa_node: 9}")
    (tmp_path / "rack.yaml").write_text(text, encoding="utf-8")
    manifest = BASE.replace("gpus: [l40s]", "inventory: rack.yaml, gpus: [h100-sxm-80gb]")
    place = problem(compiled(tmp_path, manifest), "GP007")
    assert place.message == "NUMA node 9 does not exist: the host has 2"


NOTEBOOKS = (
    ROOT.joinpath("examples/notebooks.yaml")
    .read_text(encoding="utf-8")
    .replace("inventories/", f"{ROOT}/examples/inventories/")
)
CHEAP_H100 = "prices: {h100-sxm-80gb: $2/hour, a100-pcie-80gb: $3/hour}"


def test_gpus_of_which_a_fact_is_absent_are_passed_over_for_others(tmp_path: Path) -> None:
    text = NOTEBOOKS.replace("gpus: [a100-pcie-80gb]", CHEAP_H100)
    stack = only(compiled(tmp_path, text))
    shared = [w for w in stack.plan.workloads if w.partition]
    assert shared
    assert {w.gpu for w in shared} == {"a100-pcie-80gb"}
    (note,) = [d for d in stack.diagnostics if "'virtual_functions' is not stated" in d.message]
    assert "h100-sxm-80gb is planned as whole GPUs alone" in note.message


def test_where_no_other_gpus_serve_the_absent_fact_is_named(tmp_path: Path) -> None:
    text = NOTEBOOKS.replace("gpus: [a100-pcie-80gb]", f"gpus: [h100-sxm-80gb], {CHEAP_H100}")
    text = text.replace(f", {CHEAP_H100}", "")
    result = compiled(tmp_path, text)
    assert result.stacks == ()
    assert {p.message for p in result.problems if p.severity.value == "error"} == {
        "'virtual_functions' is not stated"
    }
