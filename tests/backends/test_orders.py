"""What a stack has people order: who buys can trust the sheet, who sets up knows what is needed."""

from __future__ import annotations

import csv
import io
from dataclasses import replace
from decimal import Decimal
from pathlib import Path

import pytest
from ruamel.yaml import YAML

from gpuplan.cli.main import main
from gpuplan.plan import serialize
from gpuplan.plan.model import Plan
from gpuplan.plan.read import check
from gpuplan.stack.orders.emit import emit
from gpuplan.stack.orders.sheet import cell, sheet
from tests.support.clouds import compiled

SERVICE = """
workloads:
- name: assistant
  task: inference
  model: meta-llama/Llama-3.1-8B-Instruct
  precision: bf16
  load:
    requests_per_second: {mean: 1.5, peak: 4}
    input_tokens: {mean: 700, p95: 2000}
    output_tokens: {mean: 250, p95: 600}
  slo: {time_to_first_token: 1.5 s, time_per_output_token: 80 ms}
"""
DESKS = """\
- {{name: desks, task: notebook, notebook: {{users: {users}, gpu_memory: 9 GiB}}}}
"""


def text(platform: str) -> str:
    return f"apiVersion: gpuplan.dev/v1\nname: rented\nplatform: {platform}\n{SERVICE}"


def plan_of(stack: Path) -> Plan:
    return serialize.load((stack / "plan.yaml").read_text(encoding="utf-8"))


def rows(stack: Path) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO((stack / "order.csv").read_text(encoding="utf-8"))))


def order_of(stack: Path) -> str:
    readme = (stack / "README.md").read_text(encoding="utf-8")
    return readme.partition("## Order\n")[2].partition("\n## ")[0]


@pytest.fixture(scope="module")
def nebius(tmp_path_factory: pytest.TempPathFactory) -> Path:
    example = Path("examples/nebius.yaml").read_text(encoding="utf-8")
    return compiled(tmp_path_factory.mktemp("nebius"), example)


@pytest.fixture(scope="module")
def coreweave(tmp_path_factory: pytest.TempPathFactory) -> Path:
    platform = "{target: kubernetes, provider: coreweave, nodes: [gd-8xh100ib-i128]}"
    return compiled(tmp_path_factory.mktemp("coreweave"), text(platform))


def test_the_sheet_has_every_machine_with_its_price_and_adds_up(nebius: Path) -> None:
    *machines, total = rows(nebius)
    plan = plan_of(nebius)
    assert [(r["machine"], r["count"]) for r in machines] == [
        (pool.node_type, str(pool.node_count)) for pool in plan.node_pools
    ]
    hourly = [Decimal(r["usd_per_hour_each"]) * int(r["count"]) for r in machines]
    assert [Decimal(r["usd_per_hour"]) for r in machines] == hourly
    assert Decimal(total["usd_per_hour"]) == sum(hourly) == plan.cost.usd_per_hour
    assert Decimal(total["usd_per_month"]) == (sum(hourly) * 730).quantize(Decimal("0.01"))
    assert total["machine"] == "in all"
    assert all(r["price_list"] and r["region"] == "eu-north1" for r in machines)


def test_the_readme_says_where_and_what_the_plan_needs(nebius: Path) -> None:
    said = order_of(nebius)
    assert "https://docs.nebius.com/kubernetes/gpu/set-up" in said
    assert "https://nebius.com/prices" in said
    assert "Kubernetes 1.34" in said
    assert "in one network of InfiniBand, 50 GB/s for each GPU" in said
    assert "gpuplan.dev/pool=h100-sxm-80gb-x8" in said
    assert "nodes without the provider's GPU driver" in said
    assert "Not known from any source here: machines, disks" not in said
    assert "Not known from any source here: disks" in said


@pytest.mark.parametrize(
    ("work", "size"),
    [
        ("", "400 GiB"),  # eight of one GPU each
        (DESKS.format(users=10), "1,000 GiB"),  # fourteen instances on two GPUs, six GPUs
        (DESKS.format(users=56), "2.44 TiB"),  # seven GPUs of one node, one of another
        ("  overrides: {tensor_parallel_size: 2, scratch: 30 GiB}\n", "120 GiB"),
    ],
)
def test_a_machine_is_ordered_with_the_disk_that_all_its_pods_want(
    tmp_path: Path, work: str, size: str
) -> None:
    platform = "{target: kubernetes, provider: nebius, nodes: [gpu-h100-sxm_8gpu-128vcpu-1600gb]}"
    said = order_of(compiled(tmp_path, text(platform) + work))
    assert f"{size} on the own disk of each" in said


def test_an_unpriced_machine_makes_the_total_the_least(nebius: Path) -> None:
    plan = plan_of(nebius)
    first, second = plan.node_pools
    plan = replace(plan, node_pools=(replace(first, usd_per_hour=None), second))
    *machines, total = csv.DictReader(io.StringIO(sheet(plan)))
    assert (machines[0]["usd_per_hour"], machines[0]["price_list"]) == ("", "unpriced")
    assert total["machine"] == "in all, at least"
    (section,) = emit(plan).sections
    assert "unpriced" in section.text
    assert "In all at least" in section.text


def test_nothing_priced_is_no_zero(tmp_path: Path) -> None:
    stack = compiled(
        tmp_path, text("{target: kubernetes, provider: oci, nodes: [BM.GPU.L40S-NC.4]}")
    )
    machine, total = rows(stack)
    assert (machine["usd_per_hour_each"], machine["price_list"]) == ("", "unpriced")
    assert (total["usd_per_hour"], total["machine"]) == ("", "in all, at least")
    assert "In all unpriced" in order_of(stack)


def test_a_provider_that_installs_the_driver_gets_a_warning(
    coreweave: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    compiled(tmp_path, (coreweave.parents[1] / "m.yaml").read_text(encoding="utf-8"))
    said = " ".join(capsys.readouterr().err.split())
    assert "warning[GP014]" in said
    assert "installGpuOperator false" in said
    assert "leave the stack's GPU operator out" in order_of(coreweave)


def test_node_pools_that_are_objects_are_a_manifest(coreweave: Path) -> None:
    (pool,) = plan_of(coreweave).node_pools
    found = YAML(typ="safe", pure=True).load(coreweave / "nodepools-coreweave.yaml")
    assert (found["apiVersion"], found["kind"]) == ("compute.coreweave.com/v1alpha1", "NodePool")
    spec = found["spec"]
    assert (spec["instanceType"], spec["targetNodes"]) == (pool.node_type, pool.node_count)
    assert spec["nodeLabels"] == {"nvidia.com/gpu.product": pool.gpu_product}


def test_who_nobody_knows_is_asked(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    stack = compiled(tmp_path, text("{target: kubernetes, provider: lambda}"))
    assert "Not known from any source here: quotas, kubernetes, driver." in order_of(stack)
    said = " ".join(capsys.readouterr().err.split())
    assert "order.csv lists those of Lambda." in said
    assert "says of them: what an account may run (its quotas); which releases" in said
    assert "whose stacks make them" not in said


@pytest.mark.parametrize(
    ("platform", "quota", "target"),
    [
        (
            "{target: kubernetes, provider: aws, gpus: [l4]}",
            "Running On-Demand G and VT instances, L-DB2E81BA: these take ",
            "eks",
        ),
        (
            "{target: kubernetes, provider: gcp, region: us-central1, gpus: [l4]}",
            "NVIDIA\\_L4\\_GPUS: these take ",
            "gke",
        ),
    ],
)
def test_of_a_known_cloud_quotas_and_driver_are_told(
    platform: str, quota: str, target: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    stack = compiled(tmp_path, text(platform))
    order = order_of(stack)
    assert quota in order
    assert "nodes without the provider's GPU driver: the stack's gpu-operator" in order
    assert f"With `target:` `{target}` the stack makes them" in order
    said = " ".join(capsys.readouterr().err.split())
    for word in ("its prices", "its quotas", "GPU driver on its nodes"):
        assert word not in said


def test_containers_on_one_machine_are_ordered_too(tmp_path: Path) -> None:
    stack = compiled(tmp_path, text("{target: docker, provider: lambda}"))
    assert rows(stack)[0]["count"] == "1"
    assert "GPU operator" not in order_of(stack)


@pytest.mark.parametrize(
    "platform",
    [
        "{target: kubernetes, gpus: [l40s], node: {gpus: 1, cpu_cores: 16, memory: 64 GiB}}",
        "{target: gke, region: us-central1, gpus: [l4], cluster: {zones: [us-central1-a]}}",
    ],
)
def test_machines_that_are_there_or_made_are_not_ordered(tmp_path: Path, platform: str) -> None:
    stack = compiled(tmp_path, text(platform))
    assert not (stack / "order.csv").exists()
    assert "## Order" not in (stack / "README.md").read_text(encoding="utf-8")


def test_explain_has_the_sources(coreweave: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["explain", str(coreweave), "order"]) == 0
    said = " ".join(capsys.readouterr().out.split())
    assert "gd-8xh100ib-i128 of CoreWeave: $49.24/h" in said
    assert "https://www.coreweave.com/pricing" in said
    assert main(["explain", str(coreweave)]) == 0
    assert "to order: gpuplan explain STACK order" in capsys.readouterr().out


def test_diff_names_another_order(
    nebius: Path, coreweave: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["diff", str(nebius), str(coreweave), "--json"]) in (0, 1)
    said = capsys.readouterr().out
    assert '"orders' in said
    assert "order.csv" in said


@pytest.mark.parametrize("begin", ["=", "+", "-", "@"])
def test_no_cell_is_a_formula(begin: str) -> None:
    assert cell(f"{begin}HYPERLINK(1)") == f"'{begin}HYPERLINK(1)"


def test_a_cell_is_one_line_and_amounts_stay_numbers() -> None:
    assert cell("a\n=b\tc") == "a =b c"
    assert cell("\t=1+1") == "'=1+1"
    assert cell(Decimal("-1.50")) == "-1.50"
    assert cell(None) == ""


def test_the_plan_is_read_again(nebius: Path) -> None:
    check(nebius)
    plan = plan_of(nebius)
    assert plan.orders[0].machines[1].together
    assert serialize.load(serialize.dump(plan)).orders == plan.orders


def findings(stack: Path, capsys: pytest.CaptureFixture[str]) -> str:
    main(["check", str(stack)])
    return " ".join(capsys.readouterr().out.split())


def test_a_machine_that_another_provider_has_for_less_is_named(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    dear = "{target: kubernetes, nodes: [Standard_ND96isr_H100_v5]}"
    stack = compiled(tmp_path, text(dear))
    said = findings(stack, capsys)
    own, (pool,) = Decimal("98.32"), plan_of(stack).node_pools
    assert pool.cheaper is not None
    assert pool.cheaper.usd_per_hour < own * Decimal("0.7")
    assert f"{pool.cheaper.node_type} ({pool.cheaper.rented}; {pool.cheaper.priced_at})" in said
    saved = (own - pool.cheaper.usd_per_hour) * 730
    assert f"saves ${saved:,.0f} a month while all run" in said
    assert "risk: aws is another provider: quota, images and data have to be there first" in said


@pytest.mark.parametrize(
    "platform",
    [
        "{target: kubernetes, nodes: [Standard_ND96isr_H100_v5], provider: azure, region: eastus}",
        "{target: kubernetes, nodes: [p5.48xlarge], prices: {h100-sxm-80gb: $12/hour}}",
    ],
)
def test_only_what_the_manifest_allows_counts(
    tmp_path: Path, platform: str, capsys: pytest.CaptureFixture[str]
) -> None:
    stack = compiled(tmp_path, text(platform))
    assert plan_of(stack).node_pools[0].cheaper is None
    assert "another provider" not in findings(stack, capsys)


def test_a_machine_with_less_beside_the_gpus_is_no_cheaper_one(tmp_path: Path) -> None:
    """g6e.xlarge costs less than g6e.2xlarge, with half of the cores."""
    stack = compiled(tmp_path, text("{target: kubernetes, provider: aws, nodes: [g6e.2xlarge]}"))
    assert plan_of(stack).node_pools[0].cheaper is None


BESIDE = """
- name: embeddings
  task: inference
  model: BAAI/bge-m3
  load: {requests_per_second: 20, input_tokens: 200}
  overrides: {gpu: a10}
"""


def test_pools_of_one_cluster_are_not_sent_apart(tmp_path: Path) -> None:
    """AWS has the machine of H100s for less, and none of the A10 that does the same for less."""
    nodes = "{target: kubernetes, nodes: [Standard_ND96isr_H100_v5, Standard_NV36ads_A10_v5]}"
    plan = plan_of(
        compiled(
            tmp_path,
            text(nodes).rstrip() + "\n  overrides: {gpu: h100-sxm-80gb}\n" + BESIDE.lstrip(),
        )
    )
    assert [(p.gpu, p.cheaper) for p in plan.node_pools] == [("h100-sxm-80gb", None), ("a10", None)]


GRACE = "{target: kubernetes, provider: lambda, gpus: [gh200-96gb]}"


def said_of(folder: Path, document: str, capsys: pytest.CaptureFixture[str]) -> str:
    compiled(folder, document)
    return " ".join(capsys.readouterr().err.split())


def test_an_image_that_is_built_for_arm_needs_no_word(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    said = said_of(tmp_path, text(GRACE), capsys)
    assert "is built for arm64" not in said
    assert "installs driver 580.126.20 on Arm" in said


def test_an_image_that_nobody_says_is_built_for_arm_is_a_finding(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    other = text(GRACE).replace("precision: bf16", "precision: bf16\n  engine: sglang")
    said = said_of(tmp_path, other, capsys)
    assert "no source states that lmsysorg/sglang:v0.5.16-cu130 is built for arm64" in said
    assert "docker manifest inspect lmsysorg/sglang:v0.5.16-cu130" in said


def test_an_image_of_ones_own_is_not_vouched_for(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    own = "engine: {name: vllm, version: 0.27.1, image: registry.example.org/vllm:0.27.1}"
    document = text(GRACE).replace("precision: bf16", f"precision: bf16\n  {own}")
    assert "registry.example.org/vllm:0.27.1 is built for arm64" in said_of(
        tmp_path, document, capsys
    )


def test_what_watches_containers_is_looked_at_too(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    said = said_of(tmp_path, text(GRACE.replace("kubernetes", "docker")), capsys)
    assert "quay.io/prometheus/prometheus" in said
    assert "are built for arm64" in said


def test_machines_without_arm_are_not_asked_about(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    said = said_of(tmp_path, text(GRACE.replace("gh200-96gb", "h100-sxm-80gb")), capsys)
    assert "arm64" not in said
    assert "Arm CPU" not in said
