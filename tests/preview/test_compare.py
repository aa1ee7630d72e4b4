"""What a merge would do, step by step."""

from __future__ import annotations

from dataclasses import replace

import pytest

from gpuplan.preview.comparing.compare import Comparison, Step, compare
from gpuplan.preview.registered import Registered
from gpuplan.preview.values import UNKNOWN
from tests.preview.records import (
    STACK_URN,
    claim,
    config_map,
    deployment,
    managed_by,
    preview,
    provider,
    resource,
    urn,
)


def between(old: list[Registered], new: list[Registered]) -> Comparison:
    return compare(preview(*old), preview(*new))


def changed(found: Comparison) -> dict[str, str]:
    return {s.resource.name: s.operation for s in found.steps if s.operation != "same"}


def step(found: Comparison, name: str) -> Step:
    return next(s for s in found.steps if s.resource.name == name)


def test_without_a_base_everything_is_created() -> None:
    found = compare(None, preview(config_map(), claim()))
    assert [s.operation for s in found.steps] == ["create"] * 3
    assert found.fresh


def test_nothing_changes_between_equal_programs() -> None:
    found = between([config_map(), deployment()], [config_map(), deployment()])
    assert not found.changed
    assert found.count("same") == 3


def test_an_update_names_the_property() -> None:
    found = between([deployment()], [deployment(image="web:2")])
    [change] = step(found, "web").changes
    assert change.route == ("spec", "template", "spec", "containers", 0, "image")
    assert (change.old, change.new) == ("web:1", "web:2")
    assert changed(found) == {"web": "update"}


def test_a_named_object_is_deleted_before_it_is_replaced() -> None:
    found = step(between([claim()], [claim(storage_class="slow")]), "models")
    assert found.operation == "replace"
    assert found.reasons == ("spec.storageClassName",)
    assert found.delete_before_replace
    assert found.stateful


def test_the_program_decides_the_order_of_a_replacement() -> None:
    kept = claim(storage_class="slow", delete_before_replace=False)
    assert not step(between([claim()], [kept]), "models").delete_before_replace


def test_a_new_object_name_is_created_before_the_old_one_goes() -> None:
    new = replace(config_map("other"), urn=config_map().urn, name="settings")
    found = step(between([config_map()], [new]), "settings")
    assert found.operation == "replace"
    assert not found.delete_before_replace


@pytest.mark.parametrize(
    ("before", "after", "blocked"),
    [(True, True, True), (True, False, False), (False, True, False)],
)
def test_protection_blocks_a_replacement_unless_it_goes_too(
    before: bool, after: bool, blocked: bool
) -> None:
    old, new = claim(protect=before), claim(storage_class="slow", protect=after)
    assert step(between([old], [new]), "models").blocked is blocked


def test_deletions_come_last_and_dependents_first() -> None:
    settings = config_map()
    web = deployment(dependencies=(settings.urn,))
    found = between([settings, web, claim()], [claim()])
    assert [s.resource.name for s in found.steps] == ["shop-dev", "models", "web", "settings"]
    assert changed(found) == {"web": "delete", "settings": "delete"}


def test_deleting_a_volume_is_flagged_and_a_protected_one_fails() -> None:
    deleted = step(between([claim()], []), "models")
    assert (deleted.stateful, deleted.blocked) == (True, False)
    assert step(between([claim(protect=True)], []), "models").blocked
    retained = step(between([claim(retain_on_delete=True)], []), "models")
    assert (retained.retained, retained.stateful) == (True, False)
    assert not step(between([config_map()], []), "settings").stateful


def test_an_alias_keeps_the_object() -> None:
    renamed = replace(config_map("new", aliases=(config_map().urn,)), inputs=config_map().inputs)
    found = between([config_map()], [renamed])
    assert changed(found) == {}
    assert step(found, "new").renamed_from == config_map().urn


def test_a_rename_without_an_alias_makes_a_second_object() -> None:
    found = between([config_map()], [config_map("new")])
    assert changed(found) == {"new": "create", "settings": "delete"}


def test_an_alias_never_takes_a_resource_that_is_still_there() -> None:
    both = [config_map(), config_map("new", aliases=(config_map().urn,))]
    assert changed(between([config_map()], both)) == {"new": "create"}


def test_ignored_properties_do_not_change() -> None:
    new = deployment(image="web:2", ignore_changes=("spec.template.spec.containers[0].image",))
    assert changed(between([deployment()], [new])) == {}
    whole = deployment(image="web:2", ignore_changes=("spec",))
    assert changed(between([deployment()], [whole])) == {}
    other = deployment(image="web:2", ignore_changes=("spec.replicas",))
    assert changed(between([deployment()], [other])) == {"web": "update"}


def test_the_default_namespace_may_be_named_or_not() -> None:
    named = config_map()
    inputs = {**named.inputs, "metadata": {"name": "settings", "namespace": "default"}}
    unnamed = {**named.inputs, "metadata": {"name": "settings"}}
    found = between([replace(named, inputs=inputs)], [replace(named, inputs=unnamed)])
    assert changed(found) == {}


# --- consequences for others ---------------------------------------------------------------------


def test_what_is_made_of_a_replaced_object_goes_before_it() -> None:
    """The dependent's data comes from the replaced object, and data cannot be updated."""

    def program(value: str) -> list[Registered]:
        root = config_map("root", {"a": value})
        needs = {"dependencies": (root.urn,)}
        copy = config_map("copy", property_dependencies=(("data", (root.urn,)),), **needs)
        web = deployment(property_dependencies=(("spec", (root.urn,)),), **needs)
        only_after = claim(**needs)
        return [root, copy, web, only_after]

    found = between(program("1"), program("2"))
    assert changed(found) == {"root": "replace", "copy": "replace"}
    assert step(found, "copy").reasons == ("data",)
    assert step(found, "copy").delete_before_replace


def test_a_protected_dependent_blocks_the_replacement() -> None:
    def program(value: str) -> list[Registered]:
        root = config_map("root", {"a": value})
        copied = (("data", (root.urn,)),)
        return [root, config_map("copy", protect=True, property_dependencies=copied)]

    assert step(between(program("1"), program("2")), "copy").blocked


def test_objects_in_a_replaced_namespace_are_replaced() -> None:
    def program(label: str) -> list[Registered]:
        root = config_map("root", {"a": label})
        placed = deployment(property_dependencies=(("metadata", (root.urn,)),))
        return [root, placed]

    assert changed(between(program("1"), program("2"))) == {"root": "replace", "web": "replace"}


def test_another_cluster_replaces_everything_in_it() -> None:
    def program(identifier: str) -> list[Registered]:
        cluster = provider(clusterIdentifier=identifier)
        return [cluster, config_map(provider=managed_by(cluster)), config_map("elsewhere")]

    found = between(program("prod"), program("test"))
    assert changed(found) == {"cluster": "replace", "settings": "replace"}
    assert step(found, "settings").reasons == ("provider",)


def test_a_new_kubeconfig_of_the_same_cluster_replaces_nothing() -> None:
    def program(token: str) -> list[Registered]:
        cluster = provider(clusterIdentifier="prod", kubeconfig=token)
        return [cluster, config_map(provider=managed_by(cluster))]

    assert changed(between(program("a"), program("b"))) == {"cluster": "update"}


def test_unknown_outputs_of_a_changed_command_are_a_change() -> None:
    def program(command: str) -> list[Registered]:
        first = resource("command:local:Command", "first", {"create": command})
        uses = (("triggers", (first.urn,)),)
        second = resource(
            "command:local:Command", "second", {"triggers": [UNKNOWN]}, property_dependencies=uses
        )
        return [first, second]

    assert changed(between(program("a"), program("a"))) == {}
    assert changed(between(program("a"), program("b"))) == {"first": "update", "second": "replace"}


def test_an_unknown_value_from_another_resource_is_a_change() -> None:
    def program(source: str) -> list[Registered]:
        made = [resource("command:local:Command", n, {"create": "x"}) for n in ("one", "two")]
        uses = (("spec", (urn("command:local:Command", source),)),)
        inputs = {**deployment().inputs, "spec": {"paused": UNKNOWN}}
        return [*made, replace(deployment(property_dependencies=uses), inputs=inputs)]

    assert changed(between(program("one"), program("two"))) == {"web": "update"}


def test_children_follow_a_renamed_component() -> None:
    def program(name: str, *aliases: str) -> list[Registered]:
        kind = "my:app:App"
        app = resource(kind, name, custom=False, aliases=tuple(urn(kind, a) for a in aliases))
        old = tuple(urn("kubernetes:core/v1:ConfigMap", "x", urn(kind, a)) for a in aliases)
        return [app, config_map("x", parent=app.urn, aliases=old)]

    found = between(program("web"), program("site", "web"))
    assert changed(found) == {}
    assert [s.operation for s in found.steps] == ["same"] * 3


def test_options_that_change_no_object_are_told() -> None:
    found = between([claim(protect=True)], [claim()])
    assert step(found, "models").notes == ("protect off",)
    assert changed(found) == {}


def test_packages_without_known_rules_are_named() -> None:
    kind = "proxmoxve:vm/virtualMachine:VmLegacy"
    found = between([resource(kind, "vm", {"cores": 1})], [resource(kind, "vm", {"cores": 2})])
    assert changed(found) == {"vm": "update"}
    assert found.unjudged == ("proxmoxve",)


def test_changed_outputs_count_as_a_change() -> None:
    old, new = preview(outputs={"url": "a"}), preview(outputs={"url": "b"})
    found = compare(old, new)
    assert found.changed
    assert [c.route for c in found.outputs] == [("url",)]


def test_an_imported_resource_is_not_created() -> None:
    found = between([], [config_map(import_id="shop/settings")])
    assert changed(found) == {"settings": "import"}
    assert step(found, "settings").resource.parent == STACK_URN
