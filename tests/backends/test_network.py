"""What pods may reach, and by which variables they find it, on clusters that are not the usual."""

from __future__ import annotations

from collections.abc import Iterator
from ipaddress import ip_address, ip_network
from pathlib import Path
from typing import Any

import pytest

from gpuplan.diagnostics import Diagnostic
from gpuplan.kubernetes.lower import lower
from gpuplan.kubernetes.objects import KubernetesObject, resolve
from gpuplan.pipeline import Compiled, Result, compile_files

METADATA = "169.254.169.254"
MANIFEST = """\
apiVersion: gpuplan.dev/v1
name: chat
platform:
  target: kubernetes
  gpus: [l40s]
{network}
workloads:
- name: assistant
  task: inference
  model: Qwen/Qwen3-8B
  load: {{requests_per_second: 1, input_tokens: 500, output_tokens: 100}}
"""


def compiled(folder: Path, network: str) -> Result:
    path = folder / "chat.yaml"
    lines = f"network: {network}" if network else ""
    path.write_text(MANIFEST.format(network=f"  {lines}"), encoding="utf-8")
    return compile_files([path])


def stack(folder: Path, network: str) -> Compiled:
    result = compiled(folder, network)
    assert result.stacks, [p.message for p in result.problems]
    return result.stacks[0]


def objects(result: Compiled, kind: str) -> Iterator[KubernetesObject]:
    return (o for o in lower(result.plan).objects if o.kind == kind)


def rules(result: Compiled) -> list[dict[str, Any]]:
    (policy,) = (o for o in objects(result, "NetworkPolicy") if o.name == "assistant")
    found: list[dict[str, Any]] = resolve(policy.tree, {})["spec"]["egress"]
    return found


def admits(result: Compiled, address: str, port: int, protocol: str = "TCP") -> bool:
    """What the policy lets through to an address that is no pod."""
    for rule in rules(result):
        if {"protocol": protocol, "port": port} in rule["ports"]:
            for block in (peer["ipBlock"] for peer in rule["to"] if "ipBlock" in peer):
                inside = [ip_network(n) for n in block.get("except", [])]
                here = ip_address(address)
                if here in ip_network(block["cidr"]) and not any(here in n for n in inside):
                    return True
    return False


def namespaces(result: Compiled, port: int) -> set[str]:
    """The namespaces whose pods may be asked on a port."""
    label = "kubernetes.io/metadata.name"
    return {
        peer["namespaceSelector"]["matchLabels"][label]
        for rule in rules(result)
        if {"protocol": "UDP", "port": port} in rule["ports"]
        for peer in rule["to"]
        if "namespaceSelector" in peer
    }


def environment(result: Compiled) -> dict[str, str]:
    (item,) = objects(result, "Deployment")
    container = resolve(item.tree, {})["spec"]["template"]["spec"]["containers"][0]
    return {e["name"]: e.get("value", "") for e in container["env"]}


def text(result: Compiled, path: str) -> str:
    return next(f.text for f in result.files if f.path == path)


def problems(result: Result, rule: str) -> list[Diagnostic]:
    return [p for p in result.problems if p.rule == rule]


def test_an_empty_network_changes_nothing(tmp_path: Path) -> None:
    usual, empty = stack(tmp_path, ""), stack(tmp_path, "{}")
    for path in ("network.py", "workload.py", "addons.py", "helm/10-gpu-operator/values.yaml"):
        assert text(usual, path) == text(empty, path)
    assert namespaces(usual, 53) == {"kube-system"}
    assert admits(usual, "169.254.20.10", 53, "UDP")
    assert not admits(usual, METADATA, 53, "UDP")


def test_openshifts_names_are_asked_at_the_port_of_its_pods(tmp_path: Path) -> None:
    result = stack(tmp_path, "{dns: openshift}")
    assert namespaces(result, 5353) == {"openshift-dns"}
    assert namespaces(result, 53) == set()


def test_clouds_names_are_asked_at_the_metadata_server_which_gives_nothing_else(
    tmp_path: Path,
) -> None:
    result = stack(tmp_path, "{dns: cloud-dns}")
    assert admits(result, METADATA, 53, "UDP")
    assert admits(result, "169.254.20.10", 53, "UDP")
    assert not admits(result, METADATA, 80)
    assert not admits(result, METADATA, 443)


def test_what_is_written_of_names_replaces_what_is_known(tmp_path: Path) -> None:
    spec = "{namespace: dns-system, addresses: [10.0.0.10/32], ports: [53, 1053]}"
    result = stack(tmp_path, f"{{dns: {spec}}}")
    assert namespaces(result, 1053) == namespaces(result, 53) == {"dns-system"}
    assert admits(result, "10.0.0.10", 1053)
    assert not admits(result, "169.254.20.10", 53, "UDP")


def test_a_proxy_is_the_only_way_out_and_programs_find_it(tmp_path: Path) -> None:
    proxy = "{https: 'http://proxy.example.org:3128', exceptions: [.example.org]"
    result = stack(tmp_path, f"{{proxy: {proxy}, address: 10.1.2.3/32}}}}")
    assert admits(result, "10.1.2.3", 3128)
    assert not admits(result, "10.1.2.4", 3128)
    assert not admits(result, "18.244.20.10", 443)
    values = environment(result)
    assert values["HTTPS_PROXY"] == values["https_proxy"] == "http://proxy.example.org:3128"
    assert values["NO_PROXY"] == values["no_proxy"]
    assert {"localhost", ".svc", ".cluster.local", ".example.org"} <= set(
        values["NO_PROXY"].split(",")
    )
    assert "HTTP_PROXY" not in values
    assert "HF_HUB_OFFLINE" not in values


def test_a_proxy_that_nobody_places_is_reached_wherever_it_is_but_for_metadata(
    tmp_path: Path,
) -> None:
    result = stack(tmp_path, "{proxy: {http: 'http://proxy.example.org:3128'}, internet: true}")
    assert admits(result, "10.1.2.3", 3128)
    assert not admits(result, METADATA, 3128)
    assert admits(result, "18.244.20.10", 443)


def test_a_hub_and_storage_of_ones_own_are_named_and_their_ports_open(tmp_path: Path) -> None:
    hub, storage = "https://hub.example.org:8443/huggingface", "http://s3.example.org:9000"
    result = stack(tmp_path, f"{{hub: '{hub}', object_storage: '{storage}'}}")
    values = environment(result)
    assert values["HF_ENDPOINT"] == hub
    assert values["AWS_ENDPOINT_URL_S3"] == storage
    assert admits(result, "10.9.9.9", 8443)
    assert admits(result, "10.9.9.9", 9000)
    assert not admits(result, METADATA, 9000)


def test_a_server_that_no_rule_opens_is_said(tmp_path: Path) -> None:
    closed = compiled(tmp_path, "{internet: false, hub: 'https://hub.example.org'}")
    said = [p.message for p in problems(closed, "GP017")]
    assert "no rule lets pods reach https://hub.example.org: port 443 is open to nobody" in said
    egress = "[{to: 10.20.0.0/16, ports: [443], reason: the hub}]"
    way = f"{{internet: false, hub: 'https://hub.example.org', egress: {egress}}}"
    opened = compiled(tmp_path, way)
    assert not [p for p in problems(opened, "GP017") if "hub" in p.message]
    assert admits(opened.stacks[0], "10.20.1.1", 443)
    assert not admits(opened.stacks[0], "18.244.20.10", 443)
    assert "the hub" in text(opened.stacks[0], "network.py")


def test_without_any_way_out_the_engine_is_told_and_so_is_the_reader(tmp_path: Path) -> None:
    result = compiled(tmp_path, "{internet: false}")
    assert environment(result.stacks[0])["HF_HUB_OFFLINE"] == "1"
    (said,) = (p for p in problems(result, "GP017") if "no server can be reached" in p.message)
    assert "its weights" in said.message


def test_the_manifests_own_variables_replace_those_of_the_network(tmp_path: Path) -> None:
    path = tmp_path / "own.yaml"
    written = MANIFEST.format(network="  network: {hub: 'https://hub.example.org'}")
    written += "  environment: {HF_ENDPOINT: 'https://other.example.org'}\n"
    path.write_text(written, encoding="utf-8")
    (result,) = compile_files([path]).stacks
    assert environment(result)["HF_ENDPOINT"] == "https://other.example.org"


def test_images_and_charts_come_from_their_mirrors(tmp_path: Path) -> None:
    charts = "{'https://helm.ngc.nvidia.com/nvidia': 'https://charts.example.org/nvidia'}"
    images = "{docker.io: registry.example.org:5000/hub, nvcr.io: registry.example.org:5000/ngc}"
    network = f"{{images: {images}, charts: {charts}, pull_secrets: [registry]}}"
    result = stack(tmp_path, network)
    (item,) = objects(result, "Deployment")
    container = resolve(item.tree, {})["spec"]["template"]["spec"]["containers"][0]
    assert container["image"] == "registry.example.org:5000/hub/vllm/vllm-openai:v0.27.1"
    (account,) = objects(result, "ServiceAccount")
    assert account.tree["imagePullSecrets"] == [{"name": "registry"}]
    assert 'repo="https://charts.example.org/nvidia"' in text(result, "addons.py")
    readme = text(result, "README.md")
    for namespace in ("chat", "gpu-operator"):
        assert f"docker-registry registry --namespace={namespace} " in readme


def test_an_image_without_a_mirror_beside_others_is_said(tmp_path: Path) -> None:
    result = compiled(tmp_path, "{images: {quay.io: registry.example.org/quay}}")
    (said,) = (p for p in problems(result, "GP017") if "mirror" in p.message)
    assert "vllm/vllm-openai:v0.27.1 has no mirror" in said.message
    mirrored = compiled(tmp_path, "{images: {docker.io: registry.example.org/hub}}")
    assert not [p for p in problems(mirrored, "GP017") if "mirror" in p.message]


@pytest.mark.parametrize(
    ("network", "said"),
    [
        ("{proxy: {exceptions: [a]}}", "the proxy has no address"),
        ("{proxy: {http: 'http://me:pass@proxy:3128'}}", "'http'"),
        ("{dns: {addresses: [10.0.0.1]}}", "10.0.0.1/32"),
        ("{dns: {addresses: [10.0.0.1/8]}}", "no network of addresses"),
        ("{egress: [{ports: [0]}]}", "'ports'"),
        ("{egress: [{to: 10.0.0.0/8}]}", "'ports'"),
        ("{dns: coredns}", "'coredns' is not a value of 'dns'"),
        ("{images: {docker.io: 'https://registry.example.org'}}", "'docker.io'"),
    ],
)
def test_what_cannot_be_meant_is_refused(tmp_path: Path, network: str, said: str) -> None:
    result = compiled(tmp_path, network)
    assert not result.stacks
    assert said in " ".join(f"{p.message} {p.label} {p.help}" for p in result.problems)
    assert "pass@" not in str(result.problems)


def test_guests_have_no_such_network(tmp_path: Path) -> None:
    root = Path(__file__).parents[2]
    text = (root / "examples/notebooks.yaml").read_text(encoding="utf-8")
    hosts = str(root / "examples/inventories/hypervisors.yaml")
    text = text.replace("inventories/hypervisors.yaml", hosts)
    text = text.replace("  gpus:", "  network: {dns: openshift}\n  gpus:")
    (tmp_path / "m.yaml").write_text(text, encoding="utf-8")
    result = compile_files([tmp_path / "m.yaml"])
    assert result.stacks
    assert any("platform.network has no effect" in p.message for p in result.problems)
