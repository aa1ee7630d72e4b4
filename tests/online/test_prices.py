"""Price lists that are asked for: what providers answer, and what they do not."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from decimal import Decimal
from types import SimpleNamespace
from typing import Any
from urllib.parse import unquote

import pytest

from gpuplan.errors import Rejected
from gpuplan.online.prices import aws, azure, skypilot
from tests.catalog.test_catalog_update import SKYPILOT, product, retail
from tests.support import registry
from tests.support.registry import Answers

pytestmark = [pytest.mark.enable_socket, pytest.mark.allow_hosts(["127.0.0.1"])]
RETAIL = "/api/retail/prices"


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[Answers]:
    for name in ("http_proxy", "https_proxy", "no_proxy", "all_proxy"):
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.upper(), raising=False)
    with registry.serving() as answers:
        yield answers


def test_azure_is_asked_page_by_page(server: Answers) -> None:
    base = f"http://{server.host}"
    second = {"Items": [retail(armRegionName="westus")], "NextPageLink": None}
    first = {"Items": [retail()], "NextPageLink": f"{base}/second"}
    server.instead = {
        RETAIL: (200, {}, json.dumps(first)),
        "/second": (200, {}, json.dumps(second)),
    }
    found = list(azure(["Standard_ND96isr_H100_v5"], base))
    assert [q.region for q in found] == ["eastus", "westus"]
    assert "armSkuName eq 'Standard_ND96isr_H100_v5'" in unquote(server.asked[0])


def test_a_next_page_elsewhere_is_not_followed(server: Answers) -> None:
    page = {"Items": [], "NextPageLink": "http://elsewhere.example/x"}
    server.instead = {RETAIL: (200, {}, json.dumps(page))}
    with pytest.raises(Rejected) as refused:
        list(azure(["a"], f"http://{server.host}"))
    assert "elsewhere.example" in refused.value.diagnostics[0].message


@pytest.mark.parametrize(("status", "body"), [(404, ""), (429, ""), (200, "<html>")])
def test_what_azure_does_not_answer_is_one_message(server: Answers, status: int, body: str) -> None:
    server.instead = {RETAIL: (status, {}, body)}
    with pytest.raises(Rejected) as refused:
        list(azure(["a"], f"http://{server.host}"))
    assert len(refused.value.diagnostics) == 1


def test_skypilots_table_of_a_provider_is_read(server: Answers) -> None:
    server.instead = {"/aws/vms.csv": (200, {}, SKYPILOT)}
    found = list(skypilot("aws", f"http://{server.host}"))
    assert {q.usd_per_hour for q in found} == {Decimal("60.5"), Decimal("20.1"), Decimal("21.2")}
    server.instead = {"/nobody/vms.csv": (404, {}, "")}
    with pytest.raises(Rejected):
        list(skypilot("nobody", f"http://{server.host}"))


class Paginator:
    def paginate(self, **asked: Any) -> Iterator[Any]:
        assert asked["ServiceCode"] == "AmazonEC2"
        yield {"PriceList": [product(instanceType=asked["Filters"][0]["Value"])]}


def test_aws_is_asked_by_its_sdk(monkeypatch: pytest.MonkeyPatch) -> None:
    client = SimpleNamespace(get_paginator=lambda _: Paginator())
    sdk = SimpleNamespace(client=lambda _, region_name: client)
    monkeypatch.setitem(sys.modules, "boto3", sdk)
    found = list(aws(["p5.48xlarge", "g6.xlarge"]))
    assert [q.instance for q in found] == ["g6.xlarge", "p5.48xlarge"]


def test_without_sdk_or_credentials_aws_is_one_message(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "boto3", None)
    with pytest.raises(Rejected) as refused:
        list(aws(["p5.48xlarge"]))
    assert "boto3 is not installed" in refused.value.diagnostics[0].message

    def client(_: str, region_name: str) -> Any:
        raise RuntimeError(f"Unable to locate credentials for {region_name}")

    monkeypatch.setitem(sys.modules, "boto3", SimpleNamespace(client=client))
    with pytest.raises(Rejected) as refused:
        list(aws(["p5.48xlarge"]))
    assert "Unable to locate credentials" in refused.value.diagnostics[0].message
