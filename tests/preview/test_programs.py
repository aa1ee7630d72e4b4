"""Real programs under the engine: what they register, exactly."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from gpuplan.preview.comparing.compare import compare
from gpuplan.preview.objects import kubernetes_objects
from gpuplan.preview.registered import Preview, Registered
from gpuplan.preview.running.run import preview
from gpuplan.preview.values import UNKNOWN, Secret
from tests.preview.programs import IMPORTS, PROJECT, names, write
from tests.preview.records import shown
from tests.support.samples import HOSTILE

pytestmark = pytest.mark.sdk

SHOP = (
    IMPORTS
    + """
import parts

cluster = k8s.Provider("cluster", render_yaml_to_directory="out")
managed = ResourceOptions(provider=cluster)
namespace = k8s.core.v1.Namespace(
    "shop",
    metadata={"name": "shop"},
    opts=ResourceOptions(provider=cluster, protect=True, aliases=[Alias(name="store")]),
)
app = parts.App("web", namespace, config, ResourceOptions(provider=cluster))
for name in ("b", "a"):
    k8s.core.v1.ConfigMap(
        name,
        metadata={"name": name, "namespace": namespace.metadata["name"]},
        data={"size": str(config.require_int("replicas")), "half": "0.5"},
        opts=ResourceOptions(
            provider=cluster,
            depends_on=[app],
            ignore_changes=["data.size"],
            delete_before_replace=False,
            retain_on_delete=True,
        ),
    )
k8s.core.v1.Service("unnamed", spec={"ports": [{"port": 80}]})
k8s.core.v1.NodePatch(
    "node-1",
    metadata={"name": "node-1", "labels": {"gpu": "yes"}},
    opts=ResourceOptions(provider=cluster, replace_on_changes=["metadata.labels"]),
)
pulumi.export("namespace", namespace.metadata["name"])
pulumi.export("token", config.require_secret("token"))
pulumi.export("address", app.service.status)
pulumi.log.warn("a warning")
print("printed")
"""
)
PARTS = """
import pulumi
import pulumi_kubernetes as k8s
from pulumi import Alias, ResourceOptions


class App(pulumi.ComponentResource):
    def __init__(self, name, namespace, config, opts):
        merged = ResourceOptions.merge(opts, ResourceOptions(aliases=[Alias(name="site")]))
        super().__init__("shop:parts:App", name, None, merged)
        here = ResourceOptions(parent=self)
        place = {"namespace": namespace.metadata["name"]}
        self.secret = k8s.core.v1.Secret(
            f"{name}-secret",
            metadata={"name": "secret", **place},
            string_data={"TOKEN": config.require_secret("token")},
            opts=here,
        )
        self.service = k8s.core.v1.Service(
            f"{name}-service", metadata={"name": "service", **place}, spec={}, opts=here
        )
        self.register_outputs({})
"""
CONFIGURED = (
    PROJECT
    + """\
config:
  token: {type: string, secret: true}
  replicas: {type: integer, default: 3}
"""
)


@pytest.fixture(scope="module")
def shop(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Preview]:
    folder = tmp_path_factory.mktemp("shop")
    write(folder, SHOP, project=CONFIGURED, files={"parts.py": PARTS})
    return folder, preview(folder)


def found(shop: tuple[Path, Preview], name: str) -> Registered:
    return next(r for r in shop[1].resources if r.name == name)


def test_resources_come_in_the_order_of_the_program(shop: tuple[Path, Preview]) -> None:
    assert names(shop[1]) == [
        "shop-dev",
        "cluster",
        "shop",
        "web",
        "web-secret",
        "web-service",
        "a",
        "b",
        "unnamed",
        "node-1",
    ]


def test_urns_are_those_of_the_engine(shop: tuple[Path, Preview]) -> None:
    start = "urn:pulumi:dev::shop::"
    assert found(shop, "shop-dev").urn == f"{start}pulumi:pulumi:Stack::shop-dev"
    assert found(shop, "cluster").urn == f"{start}pulumi:providers:kubernetes::cluster"
    child = found(shop, "web-secret")
    assert child.urn == f"{start}shop:parts:App$kubernetes:core/v1:Secret::web-secret"
    assert child.parent == found(shop, "web").urn


def test_options_arrive(shop: tuple[Path, Preview]) -> None:
    namespace, settings = found(shop, "shop"), found(shop, "a")
    assert (namespace.protect, settings.protect) == (True, False)
    assert namespace.aliases == ("urn:pulumi:dev::shop::kubernetes:core/v1:Namespace::store",)
    assert settings.ignore_changes == ("data.size",)
    assert settings.delete_before_replace is False
    assert namespace.delete_before_replace is None
    assert settings.retain_on_delete
    assert found(shop, "node-1").replace_on_changes == ("metadata.labels",)


def test_a_child_has_the_names_it_had_below_its_parents_old_name(
    shop: tuple[Path, Preview],
) -> None:
    old = "urn:pulumi:dev::shop::shop:parts:App$kubernetes:core/v1:Secret::site-secret"
    assert found(shop, "web-secret").aliases == (old,)


def test_dependencies_are_told_by_property(shop: tuple[Path, Preview]) -> None:
    namespace, child = found(shop, "shop"), found(shop, "web-secret")
    assert child.dependencies == (namespace.urn,)
    assert child.property_dependencies == (("metadata", (namespace.urn,)),)
    children = {found(shop, n).urn for n in ("web-secret", "web-service")}
    assert children < set(found(shop, "a").dependencies)


def test_providers_are_named_with_their_version(shop: tuple[Path, Preview]) -> None:
    explicit, inherited, default = (
        found(shop, n).provider for n in ("shop", "web-secret", "unnamed")
    )
    assert explicit == inherited
    assert explicit is not None
    assert default is not None
    assert explicit.urn == found(shop, "cluster").urn
    assert (default.package, default.urn) == ("kubernetes", None)
    assert default.name == "default_" + default.version.replace(".", "_")
    assert found(shop, "web").provider is None


def test_inputs_are_plain_and_secrets_hidden(shop: tuple[Path, Preview]) -> None:
    assert found(shop, "a").inputs == {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": "a", "namespace": "shop"},
        "data": {"size": "3", "half": "0.5"},
    }
    hidden = found(shop, "web-secret").inputs["stringData"]
    assert isinstance(hidden, Secret)
    assert hidden.shape == {"TOKEN": "[secret]"}
    assert found(shop, "unnamed").inputs["spec"] == {"ports": [{"port": 80}]}


def test_outputs_are_known_as_far_as_they_can_be(shop: tuple[Path, Preview]) -> None:
    outputs = shop[1].outputs
    assert outputs["namespace"] == "shop"
    assert outputs["address"] == UNKNOWN
    assert str(outputs["token"]) == "[secret]"


def test_a_secret_without_a_value_is_named(shop: tuple[Path, Preview]) -> None:
    assert shop[1].placeholders == ("shop:token",)


def test_what_the_program_says_is_kept(shop: tuple[Path, Preview]) -> None:
    said = [(m.severity, m.text) for m in shop[1].messages]
    assert said == [("warning", "a warning"), ("info", "printed")]


def test_positions_point_into_the_stack(shop: tuple[Path, Preview]) -> None:
    line = PARTS.splitlines().index("        self.secret = k8s.core.v1.Secret(") + 1
    assert found(shop, "web-secret").position == f"parts.py:{line}"
    assert found(shop, "shop").position.startswith("__main__.py:")


def test_objects_are_ready_to_apply(shop: tuple[Path, Preview]) -> None:
    kinds = [(o.identity[1], o.identity[3], o.patch) for o in kubernetes_objects(shop[1])]
    assert kinds == [
        ("Namespace", "shop", False),
        ("Secret", "secret", False),
        ("Service", "service", False),
        ("ConfigMap", "a", False),
        ("ConfigMap", "b", False),
        ("Service", "unnamed", False),
        ("Node", "node-1", True),
    ]


def test_a_second_run_gives_the_same_and_leaves_the_folder_alone(
    shop: tuple[Path, Preview],
) -> None:
    folder, before = shop
    assert preview(folder) == before
    assert sorted(p.name for p in folder.rglob("*")) == ["Pulumi.yaml", "__main__.py", "parts.py"]


def test_two_versions_compare(shop: tuple[Path, Preview], tmp_path: Path) -> None:
    program = SHOP.replace('"half": "0.5"', '"half": "0.6"')
    write(tmp_path, program, project=CONFIGURED, files={"parts.py": PARTS})
    steps = compare(shop[1], preview(tmp_path, config={"replicas": "9"})).steps
    changed = {s.resource.name: s for s in steps if s.operation != "same"}
    assert {n: s.operation for n, s in changed.items()} == {"a": "replace", "b": "replace"}
    assert [c.route for c in changed["a"].changes] == [("data", "half")]


def test_strings_are_data_whatever_they_hold(tmp_path: Path) -> None:
    program = (
        IMPORTS
        + f"""
text = {HOSTILE!r}
metadata = {{"name": "c", "annotations": {{text: text}}}}
k8s.core.v1.ConfigMap("c", metadata=metadata, data={{"t": text}})
class Part(pulumi.ComponentResource):
    pass
Part("shop:parts:Part", text + "::$")
pulumi.export(text, text)
"""
    )
    made = preview(
        write(tmp_path, program, project=f"{PROJECT}description: {json.dumps(HOSTILE)}\n")
    )
    settings = next(r for r in made.resources if r.name == "c")
    assert settings.inputs["data"] == {"t": HOSTILE}
    assert settings.inputs["metadata"]["annotations"] == {HOSTILE: HOSTILE}
    assert HOSTILE + "::$" in names(made)
    assert made.outputs == {HOSTILE: HOSTILE}
    assert [c for c in shown(made) if not c.isprintable() and c != "\n"] == []


def test_files_and_other_packages(tmp_path: Path) -> None:
    program = """
    import pulumi
    import pulumi_command as command
    from pathlib import Path

    login = {"host": "10.0.0.1", "private_key": "key"}
    define = command.remote.Command(
        "vm",
        connection=login,
        create="virsh define /dev/stdin",
        stdin=Path("vm.xml").read_text(),
        triggers=[1],
    )
    command.remote.CopyToRemote(
        "files",
        connection=login,
        source=pulumi.FileArchive("files"),
        remote_path=define.stdout,
    )
    """
    files = {"vm.xml": "<domain/>\n", "files/a": "1"}
    made = preview(write(tmp_path, program, files=files))
    define, copy = made.resources[-2:]
    assert define.inputs["stdin"] == "<domain/>\n"
    assert str(define.inputs["connection"]) == "[secret]"
    assert copy.inputs["source"].path == "files"
    assert copy.inputs["remotePath"] == UNKNOWN
    assert copy.dependencies == (define.urn,)


def test_a_stack_reference_is_unknown_and_says_so(tmp_path: Path) -> None:
    program = """
    import pulumi
    other = pulumi.StackReference("acme/network/prod")
    pulumi.export("subnet", other.get_output("subnet"))
    """
    made = preview(write(tmp_path, program))
    assert made.outputs == {"subnet": UNKNOWN}
    assert [m.text for m in made.messages] == [
        "outputs of stack 'acme/network/prod' are unknown here"
    ]


def test_a_chart_that_its_provider_expands_says_so(tmp_path: Path) -> None:
    program = IMPORTS + 'k8s.helm.v4.Chart("operator", chart="./chart")\n'
    made = preview(write(tmp_path, program))
    assert [(r.name, r.remote) for r in made.resources[1:]] == [("operator", True)]
    assert "resources that are not shown" in shown(made)


def test_a_loop_counts_as_people_do(tmp_path: Path) -> None:
    program = (
        IMPORTS + "for n in range(9, 12):\n    pulumi.ComponentResource('a:b:C', f'node-{n}')\n"
    )
    made = preview(write(tmp_path, program))
    assert names(made)[1:] == ["node-9", "node-10", "node-11"]


def test_main_may_lie_in_a_folder(tmp_path: Path) -> None:
    program = "import pulumi\npulumi.export('here', open('note').read())\n"
    write(tmp_path, "", project=PROJECT + "main: code\n")
    write(tmp_path / "code", program, files={"note": "found"})
    assert preview(tmp_path).outputs == {"here": "found"}
