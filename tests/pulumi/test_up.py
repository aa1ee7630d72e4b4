"""The generated programs under the real Pulumi, from nothing over a change to nothing."""

from __future__ import annotations

import json
import shutil
from base64 import b64decode
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
from ruamel.yaml import YAML

from gpuplan.preview.running.run import preview
from gpuplan.simulate.nodes import nodes, volumes
from tests.support.plans import commands, read_plan
from tests.tools import crds, updates
from tests.tools.kube import PATIENCE_SECONDS, Kube, Object
from tests.tools.program import ROOT, gpuplan
from tests.tools.stacks import objects_of, stacks, switches
from tests.tools.updates import Failed, Workspace, short

pytestmark = [pytest.mark.pulumi, pytest.mark.sdk]

EDITED = "assistant-70b"
# Those that are one program; two are in test_moves.py.
WHOLE = [s for s in stacks("kubernetes") if not (s / "operators").is_dir()]
PROVIDER = "    enable_server_side_apply=True,\n"
PROVIDER_NAMES = [f"pulumi:providers:kubernetes::{name}" for name in ("cluster", "reader")]
CHECKED = "context=system.metadata.uid.apply(proven)"


def options(stack: Path) -> dict[str, str]:
    """Everything on but what needs a chart from the network."""
    found = switches(stack)
    return found | {name: "false" for name in found if name.startswith("install")}


def registered(stack: Path, config: dict[str, str]) -> list[str]:
    """`type::name` of what `gpuplan preview` says that the program registers."""
    found = preview(stack, config=config).resources
    return sorted(short(r.urn) for r in found if not r.is_stack)


def the_stack(stack: Path) -> str:
    return f"pulumi:pulumi:Stack::{stack.name}-dev"


@pytest.fixture
def edited(tmp_path: Path) -> Path:
    """The stack of a manifest that was changed after the first `up`."""
    shutil.copytree(ROOT / "examples", tmp_path / "examples")
    manifest = tmp_path / "examples" / f"{EDITED}.yaml"
    with manifest.open("a", encoding="utf-8") as text:
        text.write("  environment: {LOG_LEVEL: debug}\n")
    gpuplan("compile", manifest, "-o", tmp_path / "edited")
    return tmp_path / "edited" / EDITED


@pytest.fixture
def site(full_cluster: Kube, request: pytest.FixtureRequest) -> Iterator[tuple[Path, Kube]]:
    """A stack, and a cluster with the nodes and the storage that it expects."""
    stack: Path = request.param
    objects, plan = objects_of(stack), read_plan(stack)
    crds.install(full_cluster, objects, [c.version for c in plan.components])
    prepared = [*nodes(plan), *volumes(objects)]
    full_cluster.apply(prepared)
    yield stack, full_cluster
    full_cluster.sweep([*(o for o in reversed(objects) if not o.is_patch), *prepared])


@pytest.mark.parametrize("site", WHOLE, ids=lambda s: s.name, indirect=True)
def test_on_a_cluster(site: tuple[Path, Kube], edited: Path, tmp_path: Path) -> None:
    stack, cluster = site
    before = cluster.inventory()
    work = Workspace(tmp_path / "program", tmp_path / "home", cluster)
    work.create(stack, options(stack))
    expected = registered(stack, options(stack))
    assert work.preview() == {"create": sorted([*expected, the_stack(stack)])}
    work.up()
    assert work.resources() == expected
    assert work.preview("--expect-no-changes") == {}
    if stack.name == EDITED:
        work.replace(edited)
        assert work.preview() == {"update": ["kubernetes:apps/v1:Deployment::assistant"]}
        work.up()
    for command in commands(stack, "Remove", 0):
        work.run(command, cluster)
    kept = [i for i in expected if ":Namespace::" in i or ":PersistentVolumeClaim::" in i]
    assert work.resources() == sorted([*kept, *PROVIDER_NAMES])
    data = [o for o in objects_of(stack) if o.tree["kind"] == "PersistentVolumeClaim"]
    identities = [c["metadata"]["uid"] for c in cluster.read(data)]
    work.up()
    assert work.resources() == expected
    assert [c["metadata"]["uid"] for c in cluster.read(data)] == identities
    forget, delete = (
        [c for c in commands(stack, "Remove", 1) if c.startswith(program)]
        for program in ("pulumi", "kubectl")
    )
    for command in forget:
        work.run(command, cluster)
    assert work.resources() == []
    assert [c["metadata"]["uid"] for c in cluster.read(data)] == identities
    if data:
        with pytest.raises(Failed, match="already exists"):
            work.up()
    (adopt,) = commands(stack, "Adopt", 0)
    work.run(adopt, cluster)
    assert work.resources() == expected
    assert [c["metadata"]["uid"] for c in cluster.read(data)] == identities
    for command in forget:
        work.run(command, cluster)
    for command in delete:
        work.run(command, cluster)
    assert cluster.inventory() == before


@pytest.mark.parametrize("site", [ROOT / "stacks" / EDITED], ids=[EDITED], indirect=True)
def test_a_secret_of_the_cluster_is_there_before_the_pods(
    site: tuple[Path, Kube], tmp_path: Path
) -> None:
    stack, cluster = site
    work = Workspace(tmp_path / "program", tmp_path / "home", cluster)
    work.create(stack, options(stack))
    (tmp_path / "token").write_text("hf_secret")
    _, *steps = commands(stack, "Apply", 0)
    seen = []
    for command in steps:
        if "preview" not in command and "config" not in command:
            work.run(command, cluster, {"FILE": str(tmp_path / "token")})
            seen.append(work.resources())
    spaces, _, everything = seen
    assert spaces == ["kubernetes:core/v1:Namespace::tenant-platform", *PROVIDER_NAMES]
    assert everything == registered(stack, options(stack))
    (container,) = json.loads(
        cluster.kubectl("get", "deployment", "-n", "assistant-70b-platform", "-o", "json")
    )["items"][0]["spec"]["template"]["spec"]["containers"]
    (wanted,) = (e["valueFrom"]["secretKeyRef"] for e in container["env"] if "valueFrom" in e)
    made = cluster.kubectl(
        "get", "secret", wanted["name"], "-n", "assistant-70b-platform", "-o", "json"
    )
    assert set(json.loads(made)["data"]) == {wanted["key"]}
    work.destroy()
    cluster.kubectl("delete", "namespace", "assistant-70b-platform")


@pytest.mark.parametrize("site", [ROOT / "stacks" / EDITED], ids=[EDITED], indirect=True)
def test_another_cluster_of_that_name_is_left_alone(
    site: tuple[Path, Kube], tmp_path: Path
) -> None:
    stack, cluster = site
    work = Workspace(tmp_path / "program", tmp_path / "home", cluster)
    work.create(stack, options(stack))
    right = updates.cluster_uid(cluster)
    work.pulumi("config", "set", "clusterUid", "another")
    before = cluster.inventory()
    for action in ("preview", "up"):
        with pytest.raises(Failed, match=f"reaches cluster {right}, not another"):
            work.pulumi(action, *(["--yes"] if action == "up" else []), f"--stack={updates.STACK}")
    assert cluster.inventory() == before
    work.pulumi("config", "set", "clusterUid", right)
    work.up()
    held = work.resources()
    work.pulumi("config", "set", "clusterUid", "another")
    with pytest.raises(Failed, match=f"reaches cluster {right}, not another"):
        work.run(commands(stack, "Remove", 0)[0], cluster)
    assert work.resources() == held
    work.pulumi("config", "set", "clusterUid", right)
    work.destroy()
    cluster.kubectl("delete", "namespace", "assistant-70b-platform")


def end(cluster: Kube, space: str) -> None:
    """Every pod of the namespace ends well, and with it its run; simulated ones stay otherwise."""
    patience = f"--timeout={PATIENCE_SECONDS}s"
    here = ("-n", space)
    running = "--for=jsonpath={.status.phase}=Running"
    cluster.kubectl("wait", running, "pods", "--all", patience, *here)
    done = ("--subresource=status", "--type=merge", '-p={"status": {"phase": "Succeeded"}}')
    for pod in cluster.kubectl("get", "pods", "-o", "name", *here).split():
        cluster.kubectl("patch", pod, *done, *here)
    cluster.kubectl("wait", "--for=condition=Complete", "jobs", "--all", patience, *here)


@pytest.mark.parametrize("site", [ROOT / "stacks" / "finetune"], ids=["finetune"], indirect=True)
def test_a_run_that_has_ended_runs_again_when_asked_to(
    site: tuple[Path, Kube], tmp_path: Path
) -> None:
    stack, cluster = site

    def runs() -> dict[str, str]:
        items = json.loads(cluster.kubectl("get", "jobs", "-A", "-o", "json"))["items"]
        return {j["metadata"]["name"]: j["metadata"]["uid"] for j in items}

    work = Workspace(tmp_path / "program", tmp_path / "home", cluster)
    work.create(stack, options(stack))
    work.up()
    first = runs()
    end(cluster, "finetune-training")
    work.pulumi("up", "--yes", "--skip-preview", "--refresh", f"--stack={updates.STACK}")
    assert runs() == first
    work.run(commands(stack, "Run again", 0)[0], cluster)
    again = runs()
    assert again.keys() == first.keys()
    assert len(set(first.values()) - set(again.values())) == 1
    work.destroy()
    cluster.kubectl("delete", "namespace", "finetune-training")


def same(ours: Any, rendered: Any) -> bool:
    """Equal, but for a field that is false and so, to the provider, absent."""
    if isinstance(ours, Mapping) and isinstance(rendered, Mapping):
        keys = ours.keys() | rendered.keys()
        return all(same(ours.get(k, False), rendered.get(k, False)) for k in keys)
    if isinstance(ours, list) and isinstance(rendered, list):
        return len(ours) == len(rendered) and all(map(same, ours, rendered))
    return bool(ours == rendered)


def rendered(folder: Path) -> dict[str, Any]:
    """The objects in the provider's files; it has encoded the text of secrets."""
    reader = YAML(typ="safe", pure=True)
    trees = [reader.load(f.read_text("utf-8")) for f in sorted(folder.rglob("*.yaml"))]
    for tree in trees:
        if tree["kind"] == "Secret":
            data = tree.pop("data")
            tree["stringData"] = {k: b64decode(v).decode() for k, v in data.items()}
    return {Object(t).reference: t for t in trees}


@pytest.mark.parametrize("stack", WHOLE, ids=lambda s: s.name)
def test_as_yaml(stack: Path, edited: Path, tmp_path: Path) -> None:
    """The provider writes what it would apply into a folder: it is what our preview shows."""
    config = dict.fromkeys(switches(stack), "false")  # a node has one file: one patch only
    work = Workspace(tmp_path / "program", tmp_path / "home")
    work.create(stack, config)

    def write_files() -> None:
        program = work.program / "cluster.py"
        text = program.read_text("utf-8")
        assert text.count(PROVIDER) == text.count(CHECKED) == 1
        line = "    render_yaml_to_directory='rendered',\n"
        # without one: the provider takes a folder or a cluster, never both
        text = text.replace(PROVIDER, PROVIDER + line).replace(f"    {CHECKED},\n", "")
        start, end = text.index("system = "), text.index('provider = k8s.Provider(\n    "cluster"')
        program.write_text(text[:start] + text[end:], "utf-8")  # there is no cluster to read

    def check(source: Path) -> None:
        expected = {o.reference: o.tree for o in objects_of(source, config)}
        found = rendered(work.program / "rendered")
        assert found.keys() == expected.keys()
        assert [r for r in found if not same(expected[r], found[r])] == []

    write_files()
    expected = set(registered(stack, config)) - {"pulumi:providers:kubernetes::reader"}
    assert work.preview()["create"] == sorted([*expected, the_stack(stack)])
    work.up()
    check(stack)
    assert work.preview("--expect-no-changes") == {}
    if stack.name == EDITED:
        work.replace(edited, "rendered")
        write_files()
        assert work.preview() == {"update": ["kubernetes:apps/v1:Deployment::assistant"]}
        work.up()
        check(edited)
    work.destroy()
    assert work.resources() == []


@pytest.mark.parametrize("stack", stacks("libvirt"), ids=lambda s: s.name)
def test_hypervisor_stacks_are_previewed_alike(stack: Path, tmp_path: Path) -> None:
    work = Workspace(tmp_path / "program", tmp_path / "home")
    work.create(stack, {})
    assert work.preview() == {"create": sorted([*registered(stack, {}), the_stack(stack)])}
