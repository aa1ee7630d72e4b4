"""The README of a Kubernetes stack: what it says is what the stack does and needs."""

from __future__ import annotations

import shlex
from dataclasses import replace

import pytest

from gpuplan.kubernetes.lower import lower
from gpuplan.pipeline import emit
from gpuplan.plan.model import Plan, SecretRef
from tests.support.samples import (
    OPERATOR,
    libvirt_plan,
    serving_plan,
    serving_workload,
    training_plan,
)
from tests.support.stack_plans import KUBERNETES, batch_plan, mixture_plan, notebook_plan

every_plan = pytest.mark.parametrize("plan", [f() for f in KUBERNETES.values()], ids=KUBERNETES)


def readme(plan: Plan) -> str:
    return next(f.text for f in emit(plan).files if f.path == "README.md")


def section(plan: Plan, heading: str) -> str:
    return readme(plan).partition(f"\n## {heading}\n")[2].partition("\n## ")[0]


def commands(text: str) -> list[str]:
    lines = [line for block in text.split("```")[1::2] for line in block.splitlines()[1:]]
    return [line for line in lines if not line.startswith("#")]


def with_components(plan: Plan, minimum: str | None) -> Plan:
    return replace(plan, components=(replace(OPERATOR, kubernetes_minimum=minimum),))


@pytest.mark.parametrize(
    ("plan", "component", "expected"),
    [
        (serving_plan(), "1.16", "1.30 or newer, for `preStop.sleep`"),
        (serving_plan(), "1.32", "1.32 or newer, for `gpu-operator v26.3.3`"),
        (training_plan(), "1.16", "1.26 or newer, for `podFailurePolicy`"),
        (batch_plan(), None, "1.26 or newer, for `podFailurePolicy`"),
        (notebook_plan(), None, "1.30 or newer"),
    ],
)
def test_the_release_is_what_fields_and_charts_need(
    plan: Plan, component: str | None, expected: str
) -> None:
    assert f"Kubernetes {expected}" in section(with_components(plan, component), "Before")


def test_secrets_that_must_exist_are_said_and_made_between_namespace_and_pods() -> None:
    def reference(variable: str, name: str, key: str) -> SecretRef:
        return SecretRef(environment=variable, store="secret", name=name, key=key)

    secrets = (reference("HF_TOKEN", "hub", "token"), reference("NAME", "hub", "user"))
    plan = serving_plan(workloads=(serving_workload(secrets=secrets),))
    said = section(plan, "Before")
    assert "Secret `hub` in namespace `chat-search`, with keys `token` and `user`" in said
    assert "`HF_TOKEN` of `assistant`" in said
    steps = [shlex.split(line) for line in commands(section(plan, "Apply"))]
    names, make, last = steps[-3:]
    assert names == ["pulumi", "up", "--target", "**:Namespace::tenant-*"]
    assert make[:5] == ["kubectl", "create", "secret", "generic", "hub"]
    expected = {"--namespace=chat-search", "--from-file=token=FILE", "--from-file=user=FILE"}
    assert set(make[5:]) == expected
    assert last == ["pulumi", "up"]


def test_without_such_secrets_one_command_does() -> None:
    assert "--target" not in readme(serving_plan())
    assert "pulumi config set --secret" in section(serving_plan(), "Apply")


def test_storage_classes_are_said_with_what_they_must_do() -> None:
    said = section(notebook_plan(), "Before")
    assert "a storage class `fast`" in said  # of the homes, each its user's
    assert "`fast` whose" not in said
    assert "a default storage class whose volumes several nodes mount at once" in said
    assert "default storage class\n" in section(mixture_plan(), "Before")


@every_plan
def test_what_stays_is_what_is_kept(plan: Plan) -> None:
    said = section(plan, "Remove")
    kept = {o.name for o in lower(plan).objects if o.kind == "Namespace" and o.retain_on_delete}
    deleted = {c.split()[-1] for c in commands(said) if c.startswith("kubectl delete namespace")}
    assert deleted == kept
    # the program protects its own again: what goes for good says so itself
    assert ("--exclude-protected" in said) is ("--ignore-protect" in said) is bool(kept)


def test_without_volumes_nothing_stays() -> None:
    (work,) = serving_plan().workloads
    plan = serving_plan(workloads=(replace(work, volumes=()),))
    assert commands(section(plan, "Remove")) == ["pulumi destroy --run-program"]


def test_a_chart_of_the_whole_cluster_can_be_left_to_the_others() -> None:
    plan = serving_plan()
    assert "its driver 580.126.20" in section(plan, "Before")
    assert "`pulumi config set installGpuOperator false`" in section(plan, "Before")
    assert "`--exclude '**::addon-gpu-operator'`" in section(plan, "Remove")
    kept = "What a chart keeps in its `crds/` outlives it"
    assert kept in section(plan, "Remove")
    assert kept in section(replace(plan, operators="separate"), "Remove")
    assert kept not in section(replace(plan, operators="elsewhere"), "Remove")
    bare = serving_plan(components=())
    assert "operator" not in section(bare, "Before") + section(bare, "Remove")


def test_definitions_that_a_chart_deletes_are_named_before_they_go() -> None:
    (pin,) = serving_plan().components
    definitions = "clusterpolicies.nvidia.com", "deviceconfigs.amd.com"
    plan = serving_plan(components=(replace(pin, uninstall_removes=definitions),))
    said = section(plan, "Remove")
    assert all(f"`{name}`" in said for name in definitions)
    assert "whoever made them" in said
    assert "What else a chart keeps in its `crds/`" in said
    assert "whoever made them" not in section(serving_plan(), "Remove")
    assert "whoever made them" not in section(replace(plan, operators="elsewhere"), "Remove")


def test_definitions_of_an_operator_that_stays_are_not_named() -> None:
    (first,) = serving_plan().components
    definitions = "nodefeatures.nfd.k8s-sigs.io", "deviceconfigs.amd.com"
    second = replace(first, name="amd-gpu-operator", uninstall_removes=definitions)
    said = section(serving_plan(components=(first, second)), "Remove")
    assert "`deviceconfigs.amd.com`" in said
    assert "nodefeatures" not in said
    assert "nodefeatures" in section(serving_plan(components=(second,)), "Remove")


def test_a_monitor_is_let_in_by_the_label_that_the_policy_knows() -> None:
    plan = serving_plan()
    (command,) = commands(section(plan, "Reach"))
    label = command.split()[-1].partition("=")[0]
    policy = next(
        o for o in lower(plan).objects if o.kind == "NetworkPolicy" and o.key == "assistant"
    )
    (ingress,) = policy.tree["spec"]["ingress"]
    selectors = [s["namespaceSelector"]["matchLabels"] for s in ingress["from"][1:]]
    assert selectors == [{label: "true"}]
    assert section(training_plan(), "Reach") == ""


def test_runs_say_how_they_run_again() -> None:
    assert commands(section(training_plan(), "Run again")) == ["pulumi up --replace '**:Job::tune'"]
    assert "last checkpoint" in section(training_plan(), "Run again")
    assert "last checkpoint" not in section(batch_plan(), "Run again")
    assert section(serving_plan(), "Run again") == ""


def test_a_stack_of_guests_speaks_of_no_cluster() -> None:
    page = readme(libvirt_plan())
    assert "kubectl" not in page
    assert "Kubernetes" not in page
    assert "pulumi up" in section(libvirt_plan(), "Apply")


def test_the_disk_of_nodes_is_said_before() -> None:
    said = section(serving_plan(), "Before")
    assert "50 GiB of its node's own disk (`ephemeral-storage`) for each pod of `assistant`" in said
    assert "`overrides.scratch` of the manifest sets it" in said


def test_a_user_of_notebooks_is_let_into_a_pod_of_their_own() -> None:
    role, binding, forward, token = (
        shlex.split(line, comments=True)
        for line in commands(section(notebook_plan(), "Reach"))
        if "lab-0" in line
    )
    assert role[:6] == ["kubectl", "-n", "team-search", "create", "role", "lab-0"]
    assert {"--resource=pods,pods/portforward,pods/exec", "--resource-name=lab-0"} <= set(role)
    assert binding[5:] == ["lab-0", "--role=lab-0", "--user=USER"]
    assert forward[3:] == ["port-forward", "pod/lab-0", "8888"]
    assert token[3:] == ["exec", "lab-0", "--", "jupyter", "server", "list"]
