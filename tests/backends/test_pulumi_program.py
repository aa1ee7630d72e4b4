"""The generated Pulumi programs: how they read, what they register, what stays data."""

from __future__ import annotations

import ast
import shlex
from collections.abc import Iterator, Mapping
from dataclasses import replace
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from ruamel.yaml import YAML

from gpuplan.backends.pulumi import project, view
from gpuplan.backends.pulumi.typed import type_token
from gpuplan.cli.main import main
from gpuplan.kubernetes.addons import charts
from gpuplan.kubernetes.lower import lower
from gpuplan.kubernetes.objects import KubernetesObject, resolve
from gpuplan.pipeline import emit
from gpuplan.plan.model import Plan
from gpuplan.render.tree import File
from gpuplan.source import Place
from tests.support.require import require
from tests.support.samples import HOSTILE, libvirt_plan, serving_plan, training_plan
from tests.support.stack_plans import KUBERNETES, LIBVIRT, hostile_plan, lora_plan, renamed_plan
from tests.support.toolbox import ruff

if TYPE_CHECKING:
    from gpuplan.preview.registered import Preview, Registered

SAMPLES = KUBERNETES | LIBVIRT
LINTS = "E,F,I,UP,B"

every_sample = pytest.mark.parametrize("name", SAMPLES)
every_cluster = pytest.mark.parametrize("name", KUBERNETES)


def file(plan: Plan, path: str) -> File:
    return next(f for f in emit(plan).files if f.path == path)


def document(plan: Plan, path: str) -> dict[str, Any]:
    tree: dict[str, Any] = YAML(typ="safe", pure=True).load(file(plan, path).text)
    return tree


def write(plan: Plan, folder: Path) -> Path:
    for item in emit(plan).files:
        path = folder / item.path
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(item.text, encoding="utf-8")
    return folder


@pytest.fixture(scope="session")
def stacks(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Every sample's stack, in a folder of its own."""
    root = tmp_path_factory.mktemp("stacks")
    for name, make in SAMPLES.items():
        write(make(), root / name)
    return root


def sdk() -> None:
    try:
        version("pulumi-kubernetes")
    except PackageNotFoundError:
        require("sdk", "the Pulumi SDK is not installed: pip install gpuplan[pulumi]")


@cache
def registered(root: Path, name: str, *settings: str) -> Preview:
    from gpuplan.preview.running.run import preview

    sdk()
    given = dict(s.split("=", 1) for s in settings)
    return preview(root / name, config=given, strict=False)  # not every program has every setting


# --- how the programs read ---------------------------------------------------------------------


@every_sample
def test_the_layout_is_the_formatters(stacks: Path, name: str) -> None:
    done = ruff("format", "--diff", ".", cwd=stacks / name)
    assert done.returncode == 0, done.stdout


@every_sample
def test_linters_find_nothing(stacks: Path, name: str) -> None:
    done = ruff("check", "--select", LINTS, ".", cwd=stacks / name)
    assert done.returncode == 0, done.stdout


@every_sample
def test_a_program_needs_no_gpuplan(name: str) -> None:
    for item in emit(SAMPLES[name]()).files:
        if item.path.endswith(".py"):
            imports = [n for n in ast.walk(ast.parse(item.text)) if isinstance(n, ast.Import)]
            assert "gpuplan" not in {a.name for n in imports for a in n.names}


@every_sample
def test_the_same_plan_gives_the_same_bytes(name: str) -> None:
    assert emit(SAMPLES[name]()) == emit(SAMPLES[name]())


def test_numbers_carry_their_reason() -> None:
    lines = file(serving_plan(), "workload.py").text.splitlines()
    at = next(i for i, line in enumerate(lines) if "--max-num-seqs=128" in line)
    assert "KV cache takes 30 GiB" in lines[at - 1]


def test_what_several_statements_hold_is_written_once() -> None:
    plan = serving_plan()
    twin = replace(plan.workloads[0], name="second")
    two = file(replace(plan, workloads=(*plan.workloads, twin)), "network.py").text
    assert two.count("egress=[dns, https]") == two.count("ingress=[search_clients_8000]") == 2
    assert two.count("port=53") == 2  # UDP and TCP
    one = file(plan, "network.py").text
    assert "dns = " not in one
    assert one.count("port=53") == 2

    pods = file(plan, "workload.py").text
    assert "requests=assistant_resources" in pods
    assert "limits=assistant_resources" in pods
    assert pods.count("physical cores") == 1  # the reason, too


def test_hostile_text_is_one_literal() -> None:
    tree = ast.parse(file(hostile_plan(), "workload.py").text)
    texts = [n.value for n in ast.walk(tree) if isinstance(n, ast.Constant)]
    doubled = HOSTILE.replace("$", "$$")
    assert texts.count(doubled) == 2  # the command and the environment
    assert HOSTILE in texts  # the description is an annotation, which nobody expands
    assert document(hostile_plan(), "Pulumi.yaml")["description"] == HOSTILE


# --- what they register ------------------------------------------------------------------------


def own(preview: Preview) -> Iterator[Registered]:
    return (r for r in preview.resources if not r.is_stack)


def identities(text: str) -> dict[str, tuple[str, ...]]:
    """`type::name` → marks, from `urns.txt`."""
    lines = [line.split("  ") for line in text.splitlines() if not line.startswith("#")]
    return {line[0]: tuple(line[1:]) for line in lines}


def everything(root: Path, name: str) -> Preview:
    """What is registered with every setting on."""
    settings = ("installGpuOperator=true", "taintNodes=true") if name in KUBERNETES else ()
    return registered(root, name, *settings)


@pytest.mark.sdk
@every_sample
def test_the_list_of_identities_is_what_is_registered(stacks: Path, name: str) -> None:
    listed = identities(file(SAMPLES[name](), "urns.txt").text)
    found = {f"{r.type}::{r.name}" for r in own(everything(stacks, name))}
    assert found == set(listed)


@pytest.mark.sdk
def test_settings_leave_out_what_depends_on_them(stacks: Path) -> None:
    listed = identities(file(serving_plan(), "urns.txt").text)
    nothing = registered(stacks, "serving", "installGpuOperator=false", "taintNodes=false")
    always = {i for i, marks in listed.items() if not any(m.startswith("if=") for m in marks)}
    assert {f"{r.type}::{r.name}" for r in own(nothing)} == always
    assert len(always) < len(listed)


@pytest.mark.sdk
@every_sample
def test_marks_are_the_registered_options(stacks: Path, name: str) -> None:
    listed = identities(file(SAMPLES[name](), "urns.txt").text)
    for resource in own(everything(stacks, name)):
        marks = listed[f"{resource.type}::{resource.name}"]
        assert ("protect" in marks) is resource.protect
        assert ("retain" in marks) is resource.retain_on_delete
        names = {alias.rpartition("::")[2] for alias in resource.aliases} - {resource.name}
        assert {m.removeprefix("former=") for m in marks if m.startswith("former=")} == names


def wire(item: KubernetesObject) -> Any:
    """An object's tree as a program sends it."""
    return resolve(view.annotated(item).tree, {"hfToken": "[secret]"})


def unmasked(inputs: Mapping[str, Any]) -> dict[str, Any]:
    from gpuplan.preview.values import Secret

    return {k: v.shape if isinstance(v, Secret) else v for k, v in inputs.items()}


@pytest.mark.sdk
@every_cluster
def test_registered_objects_are_the_plans_objects(stacks: Path, name: str) -> None:
    plan = KUBERNETES[name]()
    items = [*lower(plan).objects]
    for chart in charts.charts(plan):
        items += [charts.namespace(chart), *charts.beside(plan, chart)]
    wanted = {(type_token(i), i.key): wire(i) for i in items}
    found = {
        (r.type, r.name): unmasked(r.inputs)
        for r in own(everything(stacks, name))
        if not r.is_provider and "helm.sh" not in r.type
    }
    assert found == wanted


@pytest.mark.sdk
@every_cluster
def test_everything_is_managed_by_the_named_cluster(stacks: Path, name: str) -> None:
    for resource in own(everything(stacks, name)):
        if not resource.is_provider:
            assert resource.provider is not None
            assert (resource.provider.name, resource.provider.version) == ("cluster", "4.34.2")


@pytest.mark.sdk
def test_pods_wait_for_policies_and_charts(stacks: Path) -> None:
    found = {r.type.rpartition(":")[2]: r for r in own(everything(stacks, "serving"))}
    needs = {urn.split("::", 2)[2] for urn in found["Deployment"].dependencies}
    assert {
        "kubernetes:helm.sh/v3:Release::addon-gpu-operator",
        "kubernetes:networking.k8s.io/v1:NetworkPolicy::tenant-search",
        "kubernetes:networking.k8s.io/v1:NetworkPolicy::assistant",
    } <= needs


@pytest.mark.sdk
def test_other_stacks_find_namespace_account_and_claims(stacks: Path) -> None:
    preview = everything(stacks, "serving")
    (work,) = preview.outputs["workloads"].values()
    found = {
        (r.type.rpartition(":")[2], r.inputs["metadata"]["name"])
        for r in own(preview)
        if "metadata" in r.inputs
    }
    assert ("Namespace", work["namespace"]) in found
    assert ("ServiceAccount", work["account"]) in found
    claims = {name for kind, name in found if kind == "PersistentVolumeClaim"}
    assert set(work["claims"]) == claims != set()


@pytest.mark.sdk
def test_the_operator_is_pinned_and_given_its_values(stacks: Path) -> None:
    (release,) = (r for r in own(everything(stacks, "serving")) if "helm.sh" in r.type)
    assert release.inputs["version"] == "v26.3.3"
    (asset,) = release.inputs["valueYamlFiles"]
    assert asset.path == "helm/10-gpu-operator/values.yaml"
    assert (stacks / "serving" / asset.path).is_file()


def test_a_release_waits_longer_on_more_nodes() -> None:
    plan = serving_plan()
    pools = tuple(replace(p, node_count=180, node_names=()) for p in plan.node_pools)
    (few,), (many,) = charts.charts(plan), charts.charts(replace(plan, node_pools=pools))
    assert few.timeout_seconds < many.timeout_seconds == 600 + 180 * 30


@pytest.mark.sdk
def test_a_secret_is_a_secret_on_the_wire(stacks: Path) -> None:
    preview = registered(stacks, "serving", "hfToken=hunter2")
    assert "hunter2" not in repr(preview)
    (secret,) = (r for r in own(preview) if r.type == "kubernetes:core/v1:Secret")
    assert str(secret.inputs["stringData"]) == "[secret]"


def test_a_rename_in_the_manifest_is_an_alias() -> None:
    before = set(identities(file(serving_plan(), "urns.txt").text))
    after = identities(file(renamed_plan(), "urns.txt").text)
    gone = before - set(after)
    aliased = {
        f"{identity.partition('::')[0]}::{mark.removeprefix('former=')}"
        for identity, marks in after.items()
        for mark in marks
        if mark.startswith("former=")
    }
    assert gone
    assert gone <= aliased


# --- the project around them -------------------------------------------------------------------


def test_settings_have_types_and_defaults_but_secrets_have_none() -> None:
    settings = document(serving_plan(), "Pulumi.yaml")["config"]
    assert settings["installGpuOperator"]["default"] is True
    assert settings["taintNodes"]["default"] is False
    assert settings["hfToken"] == {
        "type": "string",
        "description": "HF_TOKEN of assistant",
        "secret": True,
    }


def test_the_users_own_file_says_what_must_be_set() -> None:
    seed = file(serving_plan(), "Pulumi.dev.yaml")
    assert seed.seed
    assert "#     pulumi config set --secret hfToken\n" in seed.text
    assert "#     pulumi config set context CONTEXT\n" in seed.text
    assert "#     pulumi config set clusterUid CLUSTERUID\n" in seed.text
    assert YAML(typ="safe", pure=True).load(seed.text) == {"config": {}}
    work = serving_plan().workloads[0]
    quiet = serving_plan(workloads=(replace(work, secrets=()),))
    assert "hfToken" not in file(quiet, "Pulumi.dev.yaml").text


@pytest.mark.sdk
def test_no_cluster_is_touched_that_nobody_named(stacks: Path) -> None:
    """The context of the moment may be another one when the stack is destroyed."""
    from gpuplan.preview.messages import PreviewFailed

    assert "default" not in document(serving_plan(), "Pulumi.yaml")["config"]["context"]
    named = {r.name: r for r in own(registered(stacks, "serving", "context=rack-7"))}
    assert named["cluster"].inputs["context"] == "rack-7"
    unnamed = registered(stacks, "serving")
    assert unnamed.placeholders == ("chat:clusterUid", "chat:context", "chat:hfToken")
    for setting, value in (("context", "CONTEXT"), ("clusterUid", "UID")):
        with pytest.raises(PreviewFailed) as refused:
            registered(stacks, "serving", f"{setting}=")
        (problem,) = refused.value.diagnostics
        assert f"pulumi config set {setting} {value}" in problem.message
        # Every module that registers something imports this one first.
        assert isinstance(problem.origin, Place)
        assert problem.origin.document == "cluster.py"


@pytest.mark.sdk
def test_nothing_is_registered_in_a_cluster_that_is_another_one(
    stacks: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """After a switch of contexts, or in a kubeconfig that has the name for another cluster."""
    from gpuplan.preview.messages import PreviewFailed
    from gpuplan.preview.running.engine import Monitor
    from gpuplan.preview.running.run import preview

    asked: list[tuple[str, str]] = []
    answer = Monitor.RegisterResource

    def register(self: Monitor, request: Any, context: Any) -> Any:
        asked.append((request.type, request.name))
        return answer(self, request, context)

    monkeypatch.setattr(Monitor, "RegisterResource", register)
    settings = {"context": "rack-7", "clusterUid": "1111"}
    preview(stacks / "serving", config=settings, cluster_uid="1111", strict=False)
    assert ("kubernetes:core/v1:Namespace", "tenant-search") in asked
    asked.clear()
    with pytest.raises(PreviewFailed) as refused:
        preview(stacks / "serving", config=settings, cluster_uid="2222", strict=False)
    (problem,) = refused.value.diagnostics
    assert "context rack-7 reaches cluster 2222, not 1111" in problem.message
    assert {kind for kind, _ in asked} <= {"pulumi:pulumi:Stack", "pulumi:providers:kubernetes"}


def test_a_secret_named_like_a_setting_is_said() -> None:
    work = serving_plan().workloads[0]
    (secret,) = work.secrets
    plan = serving_plan(workloads=(replace(work, secrets=(replace(secret, name="context"),)),))
    assert [d.message for d in emit(plan).diagnostics] == [
        "a secret cannot be called 'context': the stack has a setting of that name"
    ]


def test_hosts_that_look_alike_are_kept_apart() -> None:
    plan = libvirt_plan()
    (host,) = plan.hosts
    hosts = (replace(host, name="hv.01"), host)
    text = file(replace(plan, hosts=hosts), "hosts.py").text
    assert "hv_01_connection = " in text
    assert "hv_01_2_connection = " in text


def test_configuration_files_are_part_of_the_stack() -> None:
    paths = {f.path for f in emit(training_plan()).files}
    assert {"workloads/tune/axolotl.yaml", "workloads/tune/deepspeed.json"} <= paths
    text = file(lora_plan(), "workload.py").text
    assert 'Path("workloads/adapter/axolotl.yaml").read_text(encoding="utf-8")' in text


@pytest.mark.sdk
def test_requirements_are_the_versions_tested_with() -> None:
    sdk()
    for pin in (project.PULUMI, project.KUBERNETES, project.COMMAND):
        package, _, number = pin.partition("==")
        assert version(package) == number


@pytest.mark.sdk
def test_the_table_of_types_is_current() -> None:
    sdk()
    from gpuplan.backends.pulumi.generate_types import TYPES, generate

    assert TYPES.read_text(encoding="utf-8") == generate(), "make generate"


# --- guests ------------------------------------------------------------------------------------


@pytest.mark.sdk
def test_a_guest_is_defined_from_the_reviewed_file(stacks: Path) -> None:
    found = {r.name: r for r in own(everything(stacks, "libvirt"))}
    guest = found["tune-0-on-hv-01"]
    text = (stacks / "libvirt" / "hypervisor/libvirt/tune-0.xml").read_text(encoding="utf-8")
    assert guest.inputs["stdin"] == text
    assert guest.inputs["create"] == guest.inputs["update"]
    assert "define --validate /dev/stdin" in guest.inputs["create"]
    assert "undefine" in guest.inputs["delete"]
    assert guest.protect
    # A trigger's change replaces the resource, and a replaced guest would be undefined first.
    assert "triggers" not in guest.inputs


@pytest.mark.sdk
def test_a_guest_that_moves_is_another_resource_and_the_preview_says_what_to_do(
    stacks: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """An update in place would run on the new host, and leave the guest defined on both."""
    plan = libvirt_plan()
    host = replace(plan.hosts[0], name="hv-02")
    (machine,) = plan.virtual_machines
    moved = replace(plan, hosts=(host,), virtual_machines=(replace(machine, host="hv-02"),))
    new = write(moved, tmp_path / "libvirt")
    old = stacks / "libvirt"
    assert main(["preview", str(new), "--against", str(old)]) == 1
    printed = capsys.readouterr()
    assert "tune-0-on-hv-02" in printed.out
    assert "tune-0-on-hv-01" in printed.out
    assert "VM tune-0 moves from hv-01 to hv-02" in printed.err
    assert "ssh root@hv-01 virsh shutdown tune-0" in printed.err.replace("\n", " ")
    assert main(["preview", str(old), "--against", str(old)]) == 0
    assert "moves" not in capsys.readouterr().err


def test_a_guest_starts_with_its_host() -> None:
    """Also one with an NVSwitch partition, which libvirt's hook activates."""
    plan = libvirt_plan()
    (machine,) = plan.virtual_machines
    joined = replace(plan, virtual_machines=(replace(machine, fabric_partition=3),))
    assert "autostart tune-0" in file(joined, "machines.py").text


@pytest.mark.sdk
def test_hosts_get_the_files_that_were_written_for_them(stacks: Path) -> None:
    found = {r.name: r for r in own(everything(stacks, "libvirt"))}
    archive = found["host-hv-01-files"].inputs["source"]
    assert (stacks / "libvirt" / archive.path / "setup.sh").is_file()
    folder = found["host-hv-01-files"].inputs["remotePath"]
    assert folder in found["host-hv-01-folder"].inputs["create"]
    units = found["host-hv-01-units"].inputs
    script = (stacks / "libvirt/hypervisor/host/hv-01/setup.sh").read_text(encoding="utf-8")
    assert units["stdin"] == script
    assert units["create"] == units["update"] == f"sh -s apply {folder}/hv-01"
    enabled = [u.split()[-1] for u in script.splitlines() if "systemctl reenable" in u]
    assert enabled == ["gpuplan-hugepages.service"]
    for unit in enabled:
        assert (stacks / "libvirt" / archive.path / "etc/systemd/system" / unit).is_file()


@pytest.mark.sdk
def test_a_named_user_asks_for_the_rights_of_root_and_no_password(stacks: Path) -> None:
    found = {r.name: r for r in own(registered(stacks, "libvirt", "sshUser=admin"))}
    for name in ("host-hv-01-units", "tune-0-on-hv-01"):
        for step in ("create", "update", "delete"):
            words = shlex.split(found[name].inputs[step])
            assert words[:4] == ["sudo", "-n", "sh", "-c"]
            assert len(words) == 5
    assert "sudo" not in found["host-hv-01-folder"].inputs["create"]


@pytest.mark.sdk
def test_a_destroyed_stack_takes_its_host_s_setup_along(stacks: Path) -> None:
    units = {r.name: r for r in own(everything(stacks, "libvirt"))}["host-hv-01-units"]
    assert units.inputs["delete"] == "sh -s remove"
    # A replaced resource is deleted after its successor is made, and would undo what that one did.
    assert "triggers" not in units.inputs


@pytest.mark.sdk
def test_an_environment_says_where_hosts_are_and_who_they_are(stacks: Path) -> None:
    plain = {r.name: r for r in own(everything(stacks, "libvirt"))}["tune-0-on-hv-01"]
    assert plain.inputs["connection"].shape.keys() >= {"host", "user", "privateKey"}
    assert "hostKey" not in plain.inputs["connection"].shape
    given = ('hosts={"hv-01": "10.0.0.7"}', 'hostKeys={"hv-01": "ssh-ed25519 AAAA"}')
    guest = {r.name: r for r in own(registered(stacks, "libvirt", *given))}["tune-0-on-hv-01"]
    assert "hostKey" in guest.inputs["connection"].shape
    assert guest.inputs["connection"].digest != plain.inputs["connection"].digest


@pytest.mark.sdk
def test_the_key_to_the_hosts_is_a_secret(stacks: Path) -> None:
    preview = registered(stacks, "libvirt", "sshPrivateKey=hunter2")
    assert "hunter2" not in repr(preview)
    settings = document(libvirt_plan(), "Pulumi.yaml")["config"]
    assert settings["sshPrivateKey"]["secret"] is True
