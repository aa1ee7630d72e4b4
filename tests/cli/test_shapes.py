"""The nodes that are bought where nobody says which there are: shapes, prices and where from."""

from __future__ import annotations

from decimal import Decimal
from pathlib import Path

import pytest

from gpuplan.catalog.load import load_catalog
from gpuplan.catalog.market import load_market
from gpuplan.catalog.shapes import SIZES, Wanted, rates_by_place, shapes
from gpuplan.diagnostics import Severity
from gpuplan.kubernetes.lower import lower
from gpuplan.pipeline import Result, compile_files
from gpuplan.plan.model import Plan
from gpuplan.report.summary import summary
from gpuplan.units import format_seconds, format_usd

SMALL = """
- name: small
  task: inference
  model: meta-llama/Llama-3.2-3B-Instruct
  load: {requests_per_second: 0.5, input_tokens: 300, output_tokens: 100}
"""
RUN = """
- name: run
  task: finetuning
  model: meta-llama/Llama-3.1-8B
  preemptible: true
  training: {sequence_length: 4096, global_batch: 64, tokens: 1e8}
  checkpoint: {interval: 1 h}
"""


def compiled(
    folder: Path, platform: str, workloads: str = SMALL, *, target: str = "kubernetes"
) -> Result:
    path = folder / "stack.yaml"
    path.write_text(
        f"apiVersion: gpuplan.dev/v1\nname: stack\n"
        f"platform: {{target: {target}, {platform}}}\nworkloads:{workloads}"
    )
    return compile_files([path])


def plan(folder: Path, platform: str, workloads: str = SMALL) -> Plan:
    result = compiled(folder, platform, workloads)
    assert result.stacks, [d.message for d in result.problems]
    return result.stacks[0].plan


def test_one_gpu_is_paid_as_one(tmp_path: Path) -> None:
    """Not as the eight of the only node that was known."""
    (pool,) = plan(tmp_path, "gpus: [h100-sxm-80gb]").node_pools
    assert (pool.node_type, pool.gpus_per_node, pool.node_count) == ("p5.4xlarge", 1, 1)
    assert pool.usd_per_hour == Decimal("6.88")
    assert pool.rented == "aws, us-east-1"
    assert pool.priced_at is not None
    assert "price table" in pool.priced_at


def test_a_pod_has_all_threads_of_its_cores(tmp_path: Path) -> None:
    """Kubernetes counts threads: as many CPUs as cores would be half of what was sized."""
    (pool,) = plan(tmp_path, "gpus: [h100-sxm-80gb]").node_pools  # 16 vCPUs, its cores not stated
    assert (pool.node_type, pool.cpu_cores, pool.threads_per_core) == ("p5.4xlarge", 8, 2)
    made = plan(tmp_path, "gpus: [h100-sxm-80gb]")
    (work,) = made.workloads
    (pod,) = (o.tree["spec"] for o in lower(made).objects if o.kind == "Deployment")
    asked = pod["template"]["spec"]["containers"][0]["resources"]["requests"]["cpu"]
    assert int(asked) == 2 * work.resources.cpu_cores < 16


@pytest.mark.parametrize("gpu", ["h100-sxm-80gb", "a10", "l4", "l40s", "a100-sxm-80gb", "gb200"])
def test_cores_have_no_more_threads_than_the_instance(gpu: str) -> None:
    machines = {m.name: m for m in load_market().of_gpu(gpu)}
    found = [s for s in shapes(load_catalog(), gpu, Wanted()) if s.name in machines]
    for shape in found:
        vcpus = machines[shape.name].vcpus
        if vcpus and shape.cpu_cores:
            assert shape.threads_per_core is not None
            assert vcpus / 2 < shape.cpu_cores * shape.threads_per_core


def test_what_was_assumed_is_said_and_a_provider_ends_it(tmp_path: Path) -> None:
    said = [d.message for d in compiled(tmp_path, "gpus: [a10]").problems]
    assert any("names no nodes" in m and "Standard_NC8ads_A10_v4" in m for m in said)
    named = compiled(tmp_path, "gpus: [a10], provider: azure, region: eastus")
    assert not [d for d in named.problems if "names no nodes" in d.message]
    (pool,) = named.stacks[0].plan.node_pools
    assert pool.node_type == "Standard_NV36ads_A10_v5", "the other sizes are not in that region"
    assert pool.rented == "azure, eastus"


def test_a_cloud_s_cluster_has_the_cloud_s_nodes(tmp_path: Path) -> None:
    """Nothing is assumed that another field could say: `node` and `inventory` are errors there."""
    cloud = "gpus: [a10], region: eastus, cluster: {zones: ['1']}"
    made = compiled(tmp_path, cloud, target="aks")
    assert made.stacks
    assert not [d for d in made.problems if "names no nodes" in d.message]


def on(gpu: str, name: str) -> str:
    return f"{SMALL.rstrip()}\n  overrides: {{gpu: {gpu}}}\n".replace("small", name)


def test_nodes_of_a_stack_are_in_one_place_as_if_it_was_written(tmp_path: Path) -> None:
    """L4s are cheapest at gcp, which has no L40s: a cluster has nodes of one region."""
    assert plan(tmp_path, "gpus: [l4]", on("l4", "a")).node_pools[0].rented == "gcp, us-central1"
    workloads = on("l4", "a") + on("l40s", "b").lstrip()
    result = compiled(tmp_path, "gpus: [l4, l40s]", workloads)
    assert not [d for d in result.problems if "not in one place" in d.message]
    together = result.stacks[0].plan
    (rented,) = {pool.rented for pool in together.node_pools}
    provider, region = str(rented).split(", ")
    written = plan(tmp_path, f"gpus: [l4, l40s], provider: {provider}, region: {region}", workloads)
    bought = [(p.node_type, p.node_count, p.usd_per_hour) for p in together.node_pools]
    assert [(p.node_type, p.node_count, p.usd_per_hour) for p in written.node_pools] == bought
    assert written.cost.usd_per_hour == together.cost.usd_per_hour
    assert together.cost.usd_per_hour is not None
    for elsewhere in ("provider: aws, region: us-east-1", "provider: aws, region: us-west-2"):
        there = compiled(tmp_path, f"gpus: [l4, l40s], {elsewhere}", workloads).stacks
        usd = there[0].plan.cost.usd_per_hour if there else None
        assert usd is None or usd >= together.cost.usd_per_hour


def test_one_place_costs_least_of_all(tmp_path: Path) -> None:
    """Of every place of the catalogue, asked one by one."""
    workloads, gpus = SMALL + RUN.lstrip(), ("h100-sxm-80gb", "a100-sxm-80gb")
    chosen = plan(tmp_path, f"gpus: [{', '.join(gpus)}]", workloads)
    best = chosen.cost.usd_per_month
    assert best is not None
    assert len({str(p.rented).removesuffix(", spot") for p in chosen.node_pools}) == 1
    catalog, found = load_catalog(), dict[tuple[str, str], set[str]]()
    for capacity in ("on-demand", "spot"):
        for place, rates in rates_by_place(catalog, gpus, Wanted(capacity=capacity)).items():
            found.setdefault(place, set()).update(rates)
    asked = 0
    for provider, region in (place for place, there in found.items() if {*gpus} <= there):
        where = f"gpus: [{', '.join(gpus)}], provider: {provider}, region: {region}"
        for stack in compiled(tmp_path, where, workloads).stacks:
            usd, asked = stack.plan.cost.usd_per_month, asked + 1
            assert usd is None or usd >= best, (provider, region)
    assert asked > 2


def test_nodes_of_several_places_are_named_where_none_has_them_all(tmp_path: Path) -> None:
    workloads = on("gb200-186gb", "a") + on("h100-pcie-80gb", "b").lstrip()
    result = compiled(tmp_path, "gpus: [gb200-186gb, h100-pcie-80gb]", workloads)
    (said,) = [d for d in result.problems if "not in one place" in d.message]
    assert said.severity is Severity.WARNING
    places = {pool.rented for pool in result.stacks[0].plan.node_pools}
    assert len(places) == 2
    assert all(str(place) in said.message for place in places)


def test_nodes_restrict_the_shapes(tmp_path: Path) -> None:
    (pool,) = plan(tmp_path, "nodes: [p5.48xlarge, g6.12xlarge]").node_pools
    assert (pool.node_type, pool.gpus_per_node) == ("g6.12xlarge", 4)
    (server,) = plan(tmp_path, "nodes: [dgx-h100]").node_pools
    assert (server.node_type, server.usd_per_hour) == ("dgx-h100", None)
    assert (server.watts, server.boards_only) == (10_200, False)


@pytest.mark.parametrize(
    ("platform", "message"),
    [
        ("nodes: [p5.49xlarge]", "unknown node 'p5.49xlarge'"),
        ("provider: gpc", "unknown provider 'gpc'"),
        ("provider: gcp, region: us-nowhere", "no prices of gcp are known for region 'us-nowhere'"),
        ("region: us-east-1", "target 'kubernetes' has no regions"),
        ("nodes: [p5.48xlarge], node: {gpus: 8}", "the nodes are described twice"),
        ("nodes: [p5.48xlarge], gpus: [l4]", "none of the nodes has l4"),
        ("provider: aws, gpus: [h100-nvl-94gb]", "no node of aws is known for 'h100-nvl-94gb'"),
    ],
)
def test_what_does_not_exist_is_refused(tmp_path: Path, platform: str, message: str) -> None:
    result = compiled(tmp_path, platform)
    assert not result.stacks
    assert any(message in d.message for d in result.problems)


def test_a_type_that_a_region_lacks_is_said_of_that_region(tmp_path: Path) -> None:
    """AWS has H100s, and not there: where it has them stands beside it; and Azure alone an NVL."""
    region = "region: us-gov-east-1, cluster: {zones: [us-gov-east-1a, us-gov-east-1b]}"
    result = compiled(tmp_path, f"{region}, gpus: [h100-sxm-80gb]", target="eks")
    (problem,) = (d for d in result.problems if d.severity is Severity.ERROR)
    assert problem.message == "no node of aws in us-gov-east-1 is known for 'h100-sxm-80gb'"
    assert problem.label.startswith("there are nodes of aws in us-gov-east-1 with ")
    assert problem.help is not None
    assert problem.help.startswith("aws in us-east-1 and us-gov-west-1, azure, ")
    result = compiled(tmp_path, f"{region}, gpus: [t4, h100-nvl-94gb]", target="eks")
    (left,) = (d for d in result.problems if d.rule == "GP012")
    assert left.help is not None
    assert left.help.startswith("azure rents some; ")


def test_every_shape_is_one_of_its_size_and_priced_by_its_own_list() -> None:
    catalog = load_catalog()
    for gpu in catalog.gpu_ids:
        found = shapes(catalog, gpu, Wanted())
        assert len({s.gpus for s in found}) == len(found)
        assert {s.gpus for s in found} <= set(SIZES)
        for shape in found:
            assert (shape.price is None) or shape.price.capacity == "on-demand"
            assert (shape.provider is None) <= (shape.price is None), "nobody lists servers"


def test_machines_that_are_sold_as_spot_alone_are_not_on_demand() -> None:
    """Of a3-highgpu, one to four GPUs."""
    catalog, where = load_catalog(), Wanted("gcp", "us-central1")
    kept = shapes(catalog, "h100-sxm-80gb", where)
    spare = shapes(catalog, "h100-sxm-80gb", where._replace(capacity="spot"))
    assert [s.gpus for s in kept] == [8]
    assert [s.gpus for s in spare] == [8, 4, 2, 1]


def test_work_that_may_be_stopped_takes_spare_capacity_and_says_what_that_costs(
    tmp_path: Path,
) -> None:
    where = "gpus: [h100-sxm-80gb], provider: gcp"
    result = compiled(tmp_path, where, RUN)
    (pool,) = result.stacks[0].plan.node_pools
    kept = plan(tmp_path, where, RUN.replace("true", "false")).node_pools[0]
    assert pool.rented is not None
    assert pool.rented.endswith("spot")
    assert pool.usd_per_hour is not None
    assert kept.usd_per_hour is not None
    assert pool.usd_per_hour / pool.gpus_per_node < kept.usd_per_hour / kept.gpus_per_node
    (note,) = [d.message for d in result.problems if "runs on spare capacity" in d.message]
    assert "30 min of work" in note, "half of an hour between two checkpoints"
    assert "of restart" in note


def test_work_that_may_be_stopped_says_where_no_spare_capacity_has_a_price(tmp_path: Path) -> None:
    """And the remedy that it names is taken."""

    def notes(where: str) -> list[str]:
        messages = [d.message for d in compiled(tmp_path, where, RUN).problems]
        return [m for m in messages if "spare capacity" in m]

    where = "gpus: [h100-sxm-80gb], provider: aws, region: us-east-1"
    (note,) = notes(where)
    assert "priced on nodes that are kept" in note
    assert notes(f"{where}, prices: {{h100-sxm-80gb: $3.00/hour}}") == []


def test_an_interruption_costs_what_is_redone_and_the_restart(tmp_path: Path) -> None:
    where = "gpus: [h100-sxm-80gb], provider: gcp, storage: {bandwidth: 2 GB/s}"
    limited = RUN + "  slo: {finish_within: 20 d}\n"
    made = plan(tmp_path, where, limited)
    values = {e.quantity.removeprefix("run."): e.value for e in made.evidence}
    loaded = 12.64e9 + values["model_bytes"] + values["checkpoint_bytes"]
    restart = 300 + loaded / 2e9 + 120
    (run,) = made.workloads
    lost = run.interruption
    assert lost is not None
    assert lost.restart_seconds == pytest.approx(restart)
    assert lost.seconds == pytest.approx(1800 + restart)
    assert run.usd_per_hour is not None
    assert lost.usd is not None
    assert float(lost.usd) == pytest.approx(float(run.usd_per_hour) * lost.seconds / 3600)
    finish = next(m for m in run.metrics if m.name == "time_to_finish")
    assert lost.in_time == (20 * 86400 - finish.estimate.value) // lost.seconds
    shown = " ".join(summary(made).split())
    assert f"each adds {format_seconds(lost.seconds)} and {format_usd(lost.usd)}" in shown
    assert f"in time with up to {lost.in_time:,}" in shown
    kept = plan(tmp_path, where, limited.replace("true", "false"))
    assert kept.workloads[0].interruption is None
    assert "interruption" not in summary(kept)


def test_a_batch_on_spare_capacity_begins_anew_and_a_service_only_restarts(tmp_path: Path) -> None:
    where = "gpus: [l4], provider: gcp, storage: {bandwidth: 2 GB/s}"
    model = "\n- {name: work, preemptible: true, model: Qwen/Qwen3-0.6B, task: "
    load = "input_tokens: 500, output_tokens: 100}}\n"
    batch = plan(tmp_path, where, f"{model}batch, load: {{requests: 2000000, {load}")
    served = plan(tmp_path, where, f"{model}inference, load: {{requests_per_second: 2, {load}")
    (run,), (service,) = batch.workloads, served.workloads
    assert run.interruption is not None
    assert service.interruption is not None
    finish = next(m for m in run.metrics if m.name == "time_to_finish").estimate.value
    again = run.interruption.seconds - run.interruption.restart_seconds
    assert again == pytest.approx(finish / 2)
    assert service.interruption.seconds == service.interruption.restart_seconds > 420


def test_the_storage_of_checkpoints_is_part_of_a_runs_price(tmp_path: Path) -> None:
    where = "gpus: [h100-sxm-80gb], storage: {price: $0.50/GB/month}"
    made = plan(tmp_path, where, RUN)
    (run,), free = made.workloads, plan(tmp_path, "gpus: [h100-sxm-80gb]", RUN).workloads[0]
    (volume,) = [v for v in run.volumes if v.purpose == "checkpoints"]
    assert run.run_hours is not None
    stored = volume.size_bytes / 1e9 * 0.5 * float(run.run_hours) / 730
    assert float(run.usd_of_storage or 0) == pytest.approx(stored, abs=1e-5)
    assert run.usd_per_run is not None
    assert free.usd_per_run is not None
    assert run.usd_per_run - free.usd_per_run == run.usd_of_storage
    assert made.cost.usd_of_runs == run.usd_per_run
    assert made.cost.usd_per_month == made.cost.usd_of_runs, "it takes less than a month"
    values = {e.quantity: e.value for e in made.evidence}
    assert values["run.usd_per_run"] == pytest.approx(float(run.usd_per_run), abs=1e-4)
    assert f"with {format_usd(run.usd_of_storage or 0)} of storage" in " ".join(
        summary(made).split()
    )


@pytest.mark.parametrize("storage", ["", ", storage: {type: gcp-managed-lustre}"])
def test_storage_without_a_price_is_said_and_is_not_zero(tmp_path: Path, storage: str) -> None:
    result = compiled(tmp_path, f"gpus: [h100-sxm-80gb]{storage}", RUN)
    (stack,) = result.stacks
    assert any(
        "storage of the checkpoints of 'run' is not priced" in d.message for d in result.problems
    )
    assert stack.plan.workloads[0].usd_of_storage is None
    assert stack.plan.cost.amounts.endswith("without the checkpoints of run (unpriced)")
    assert "checkpoints unpriced" in " ".join(summary(stack.plan).split())


def test_a_type_of_storage_is_priced_by_the_catalogue_and_locked(tmp_path: Path) -> None:
    made = plan(tmp_path, "gpus: [h100-sxm-80gb], storage: {type: aws-fsx-lustre-125}", RUN)
    (price,) = [i for e in made.evidence for i in e.inputs if i.name == "usd_per_gb_month"]
    assert price.value == 0.145
    assert "storage/aws-fsx-lustre-125.yaml" in price.source
    assert any("aws-fsx-lustre-125" in d.name for d in made.provenance.catalog)
    result = compiled(tmp_path, "gpus: [h100-sxm-80gb], storage: {type: aws-fsx-lustre-12}", RUN)
    assert any("unknown storage 'aws-fsx-lustre-12'" in d.message for d in result.problems)
    assert not result.stacks


def test_a_run_has_its_own_price_and_none_of_a_month(tmp_path: Path) -> None:
    cost = plan(tmp_path, "gpus: [h100-sxm-80gb], budget: $5000/month", RUN).cost
    assert cost.usd_per_hour is not None
    assert cost.usd_of_runs is not None
    assert cost.staying_usd_per_month == 0
    assert cost.usd_per_month == cost.usd_of_runs, "it takes less than a month"
    assert cost.usd_per_hour * 730 > 5000 > cost.usd_of_runs
    assert not cost.over_budget
    both = plan(tmp_path, "gpus: [h100-sxm-80gb]", RUN + SMALL.lstrip("\n")).cost
    assert both.usd_per_month is not None
    assert both.staying_usd_per_month is not None
    assert both.usd_per_month == both.staying_usd_per_month + both.runs_usd_per_month
    assert both.staying_usd_per_month > 0


def test_power_says_whose_it_is(tmp_path: Path) -> None:
    servers = plan(tmp_path, "nodes: [dgx-h100]").cost
    assert servers.power == "10.2 kW at most, whole servers"
    boards = plan(tmp_path, "gpus: [h100-sxm-80gb]").cost
    assert boards.power == "700 W at most, GPU boards only in h100-sxm-80gb-x1"


@pytest.mark.parametrize(
    "nodes", ["nodes: [p5.48xlarge]", "nodes: [dgx-h100]", "node: {gpus: 8}", "provider: azure"]
)
def test_idle_gpus_of_a_node_and_what_they_would_hold_are_shown(tmp_path: Path, nodes: str) -> None:
    alone = plan(tmp_path, f"gpus: [h100-sxm-80gb], {nodes}")
    (pool,) = alone.node_pools
    shown = " ".join(summary(alone).split())
    left = pool.gpus_per_node - 1
    assert (f"{left} of {pool.gpus_per_node} GPUs idle" in shown) == (left > 0)
    if left:
        assert f"would hold {left} more of small" in shown


def test_a_node_that_is_too_small_for_a_pod_is_no_cheaper_choice(tmp_path: Path) -> None:
    """15 GiB of host memory on 14 GiB that pods may have: nothing of it fits, at no price."""
    corpus = """
- name: corpus
  task: batch
  model: BAAI/bge-m3
  load: {requests: 10000000, input_tokens: 500}
  slo: {finish_within: 3 h}
"""
    (work,) = plan(tmp_path, "nodes: [g6.xlarge, g6e.xlarge]", corpus).workloads
    assert work.gpu == "l40s"
    (other,) = work.alternatives
    assert (other.gpu, other.node_type, other.usd_per_hour) == ("l4", "g6.xlarge", None)
    assert [s.resource for s in other.shortfalls] == ["memory of one node"]
    assert all(s.requested > s.capacity for s in other.shortfalls)
