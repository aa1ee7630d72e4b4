"""Resource names, as the engine builds them."""

from __future__ import annotations

import pytest

from gpuplan.preview import urn as urns

STACK = "urn:pulumi:dev::shop::pulumi:pulumi:Stack::shop-dev"
COMPONENT = "urn:pulumi:dev::shop::my:app:App::web"


@pytest.mark.parametrize(
    ("parent", "kind", "name", "expected"),
    [
        ("", urns.STACK_TYPE, "shop-dev", STACK),
        (STACK, "k:core/v1:Pod", "p", "urn:pulumi:dev::shop::k:core/v1:Pod::p"),
        (COMPONENT, "k:core/v1:Pod", "p", "urn:pulumi:dev::shop::my:app:App$k:core/v1:Pod::p"),
    ],
)
def test_a_urn_holds_the_types_of_its_parents(
    parent: str, kind: str, name: str, expected: str
) -> None:
    made = urns.make("dev", "shop", urns.qualified_type(parent) if parent else "", kind, name)
    assert made == expected
    assert (urns.type_of(made), urns.name_of(made)) == (kind, name)


def test_a_name_may_hold_the_separator() -> None:
    made = urns.make("dev", "shop", "", "k:core/v1:Pod", "a::b")
    assert urns.name_of(made) == "a::b"
    assert urns.short(made) == "k:core/v1:Pod::a::b"


@pytest.mark.parametrize(
    ("child", "expected"),
    [("web-config", "old-config"), ("database", "database")],
)
def test_a_child_named_after_its_parent_was_named_after_the_old_one(
    child: str, expected: str
) -> None:
    old = "urn:pulumi:dev::shop::my:app:App::old"
    found = urns.inherited_alias("k:core/v1:Pod", child, "web", old)
    assert found == f"urn:pulumi:dev::shop::my:app:App$k:core/v1:Pod::{expected}"
