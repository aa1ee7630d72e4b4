"""Values on the wire and off it."""

from __future__ import annotations

import hashlib
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpuplan.preview.values import (
    ARCHIVE_SIGNATURE,
    ASSET_SIGNATURE,
    RESOURCE_SIGNATURE,
    SECRET_SIGNATURE,
    SIGNATURE,
    UNKNOWN,
    UNKNOWN_WIRE,
    Asset,
    Reference,
    decode,
    displayed,
    has_unknown,
    parse_route,
    route_text,
)


def secret(value: object) -> dict[str, object]:
    return {SIGNATURE: SECRET_SIGNATURE, "value": value}


def test_a_secret_keeps_its_keys_and_loses_its_values(tmp_path: Path) -> None:
    found = decode({"data": secret({"token": "hunter2", "more": ["x", None]})}, tmp_path)
    assert found["data"].shape == {"token": "[secret]", "more": ["[secret]", None]}
    assert "hunter2" not in repr(found)
    assert displayed(found) == {"data": "[secret]"}


def test_secrets_compare_by_what_they_hide(tmp_path: Path) -> None:
    one, same, other = (decode(secret(v), tmp_path) for v in ("a", "a", "b"))
    assert one == same
    assert one != other


def test_unknown_values_are_found_anywhere(tmp_path: Path) -> None:
    tree = decode({"a": [{"b": UNKNOWN_WIRE}], "c": "known"}, tmp_path)
    assert tree["a"][0]["b"] == UNKNOWN
    assert has_unknown(tree)
    assert has_unknown(decode(secret({"x": UNKNOWN_WIRE}), tmp_path))
    assert not has_unknown(decode({"c": "known", "d": secret("s")}, tmp_path))


def test_assets_are_paths_and_digests(tmp_path: Path) -> None:
    (tmp_path / "vm.xml").write_text("<domain/>")
    wire = {SIGNATURE: ASSET_SIGNATURE, "path": str(tmp_path / "vm.xml")}
    digest = hashlib.sha256(b"<domain/>").hexdigest()
    assert decode(wire, tmp_path) == Asset("file", "vm.xml", digest)
    assert decode({SIGNATURE: ASSET_SIGNATURE, "text": "<domain/>"}, tmp_path).sha256 == digest
    shown = displayed(decode(wire, tmp_path))
    assert shown == {"asset": "file", "path": "vm.xml", "sha256": digest}


def test_an_archive_changes_with_any_file_in_it(tmp_path: Path) -> None:
    folder = tmp_path / "files"
    folder.mkdir()
    (folder / "a").write_text("1")
    wire = {SIGNATURE: ARCHIVE_SIGNATURE, "path": "files"}
    before = decode(wire, tmp_path)
    (folder / "a").write_text("2")
    after = decode(wire, tmp_path)
    assert (before.path, before.kind) == ("files", "file")
    assert before.sha256 != after.sha256


def test_a_resource_as_a_value_is_its_urn(tmp_path: Path) -> None:
    wire = {SIGNATURE: RESOURCE_SIGNATURE, "urn": "urn:pulumi:dev::a::b::c", "id": ""}
    assert decode(wire, tmp_path) == Reference("urn:pulumi:dev::a::b::c")


@pytest.mark.parametrize(
    ("route", "text"),
    [
        (("spec", "containers", 0, "image"), "spec.containers[0].image"),
        (
            ("metadata", "labels", "app.kubernetes.io/name"),
            'metadata.labels["app.kubernetes.io/name"]',
        ),
        (('a "quoted" key',), '["a \\"quoted\\" key"]'),
    ],
)
def test_paths_are_written_as_pulumi_writes_them(route: tuple[str | int, ...], text: str) -> None:
    assert route_text(route) == text
    assert parse_route(text) == route


keys = st.text(st.characters(exclude_characters="\\"), min_size=1).filter(
    lambda k: k != "*" and not k.startswith(".")
)


@given(st.lists(keys | st.integers(0, 99), min_size=1).filter(lambda r: isinstance(r[0], str)))
def test_every_path_can_be_read_back(route: list[str | int]) -> None:
    assert parse_route(route_text(tuple(route))) == tuple(route)
