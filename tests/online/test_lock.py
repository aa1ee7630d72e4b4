"""`gpuplan lock`: what registries and the Hub answer comes into a stack, and every way in which
they do not answer is one message."""

from __future__ import annotations

import json
import re
import socket
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from gpuplan.cli.main import main
from gpuplan.errors import Rejected
from gpuplan.online.charts import chart_digest
from gpuplan.online.hub import commit
from gpuplan.online.registry import image_digest, reference
from gpuplan.output import write_stack
from gpuplan.pipeline import Standing, compile_files, emit
from gpuplan.plan.read import read_pins, read_plan
from gpuplan.render import yaml
from tests.support import registry
from tests.support.registry import Answers

pytestmark = [pytest.mark.enable_socket, pytest.mark.allow_hosts(["127.0.0.1"])]
CONFIG = {
    "architectures": ["Qwen3ForCausalLM"],
    "model_type": "qwen3",
    "hidden_size": 1024,
    "intermediate_size": 3072,
    "num_hidden_layers": 28,
    "num_attention_heads": 16,
    "num_key_value_heads": 8,
    "head_dim": 128,
    "vocab_size": 151936,
    "max_position_embeddings": 40960,
    "tie_word_embeddings": True,
    "torch_dtype": "bfloat16",
}


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[Answers]:
    for name in ("http_proxy", "https_proxy", "no_proxy", "all_proxy", "HF_ENDPOINT"):
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.upper(), raising=False)
    with registry.serving() as answers:
        yield answers


def manifest(folder: Path, server: Answers) -> Path:
    """One workload, whose image and model the stand-in has."""
    workload = {
        "name": "assistant",
        "task": "inference",
        "model": {"name": "team/small", "config": CONFIG},
        "engine": {"name": "vllm", "image": f"{server.host}/team/vllm:1.0"},
        "load": {"requests_per_second": 1, "input_tokens": 500, "output_tokens": 100},
    }
    tree = {
        "apiVersion": "gpuplan.dev/v1",
        "name": "chat",
        "platform": {"target": "kubernetes", "gpus": ["l40s"]},
        "workloads": [workload],
    }
    path = folder / "chat.yaml"
    path.write_text(json.dumps(tree), encoding="utf-8")
    return path


def stack(folder: Path, server: Answers) -> Path:
    """Its stack, whose chart the stand-in has too."""
    (compiled,) = compile_files([manifest(folder, server)]).stacks
    (operator,) = compiled.plan.components
    repository = f"http://{server.host}/charts"
    plan = replace(compiled.plan, components=(replace(operator, repository=repository),))
    assert write_stack(folder / "chat", emit(plan).files) == ()
    return folder / "chat"


def lock(path: Path, *more: str) -> int:
    return main(["lock", str(path), *more])


def test_without_the_option_nothing_is_asked(
    tmp_path: Path, server: Answers, capsys: pytest.CaptureFixture[str]
) -> None:
    assert lock(stack(tmp_path, server)) == 0
    assert capsys.readouterr().out.count("unknown") == 3
    assert lock(tmp_path / "chat", "--exit-code") == 1
    assert server.asked == []


def test_what_is_found_comes_into_lock_plan_and_program(tmp_path: Path, server: Answers) -> None:
    path = stack(tmp_path, server)
    assert lock(path, "--online", "--hub", f"http://{server.host}") == 0
    assert lock(path, "--exit-code") == 0
    tree = yaml.loads((path / "gpuplan.lock").read_text(encoding="utf-8"))
    image = f"{server.host}/team/vllm:1.0"
    assert tree["images"] == [{"image": image, "digest": registry.DIGEST}]
    assert tree["models"] == [{"model": "team/small", "revision": registry.COMMIT}]
    assert [c["digest"] for c in tree["charts"]] == [f"sha256:{registry.CHART}"]
    program = (path / "workload.py").read_text(encoding="utf-8")
    assert f"{image}@{registry.DIGEST}" in re.sub(r'["\s]', "", program)
    assert f"--revision={registry.COMMIT}" in program
    assert main(["check", str(path), "--fail-on", "error"]) == 0


def test_a_later_compilation_keeps_what_was_found(tmp_path: Path, server: Answers) -> None:
    path, source = stack(tmp_path, server), manifest(tmp_path, server)
    lock(path, "--online", "--hub", f"http://{server.host}")
    command = ["compile", str(source), "-o", str(tmp_path)]
    assert main(command) == 0
    (workload,) = read_plan(path).workloads
    assert workload.model
    assert (workload.engine.digest, workload.model.revision) == (registry.DIGEST, registry.COMMIT)
    assert main([*command, "--check"]) == 0
    text = source.read_text(encoding="utf-8").replace("vllm:1.0", "vllm:2.0")
    source.write_text(text, encoding="utf-8")
    assert main(command) == 0
    (workload,) = read_plan(path).workloads
    assert workload.engine.digest is None, "another image is not what was asked for"


def test_a_lock_that_cannot_be_read_is_said_and_the_rest_compiles(
    tmp_path: Path, server: Answers, capsys: pytest.CaptureFixture[str]
) -> None:
    path, source = stack(tmp_path, server), manifest(tmp_path, server)
    lock(path, "--online", "--hub", f"http://{server.host}")
    (path / "gpuplan.lock").write_text("images: [\n", encoding="utf-8")
    capsys.readouterr()
    assert main(["compile", str(source), "-o", str(tmp_path), "--force"]) == 0
    said = " ".join(capsys.readouterr().err.split())
    assert "what `gpuplan lock --online` found for" in said
    assert read_plan(path).workloads[0].engine.digest is None


def test_a_manifests_own_revision_is_not_replaced(tmp_path: Path, server: Answers) -> None:
    source = manifest(tmp_path, server)
    own = "f" * 40
    text = source.read_text(encoding="utf-8")
    source.write_text(text.replace('"team/small"', f'"team/small", "revision": "{own}"'))
    known = {("model", "team/small"): registry.COMMIT}
    (compiled,) = compile_files([source], standing=lambda _: Standing(known=known)).stacks
    (workload,) = compiled.plan.workloads
    assert workload.model
    assert workload.model.revision == own


def test_what_fails_keeps_what_was_found(
    tmp_path: Path, server: Answers, capsys: pytest.CaptureFixture[str]
) -> None:
    path = stack(tmp_path, server)
    server.instead["/api/models/team/small"] = 429, {"Retry-After": "17"}, ""
    assert lock(path, "--online", "--hub", f"http://{server.host}") == 2
    told = " ".join(capsys.readouterr().err.split())
    assert told.count("error[") == 1
    assert "try again in 17 s" in told
    assert read_pins(path) == {
        ("image", f"{server.host}/team/vllm:1.0"): registry.DIGEST,
        ("chart", f"http://{server.host}/charts gpu-operator v26.3.3"): f"sha256:{registry.CHART}",
    }


def test_a_stack_that_was_edited_is_not_written(
    tmp_path: Path, server: Answers, capsys: pytest.CaptureFixture[str]
) -> None:
    path = stack(tmp_path, server)
    edited = path / "workload.py"
    edited.write_text(edited.read_text(encoding="utf-8") + "# mine\n", encoding="utf-8")
    assert lock(path, "--online", "--hub", f"http://{server.host}") == 2
    assert "GP013" in capsys.readouterr().err
    assert edited.read_text(encoding="utf-8").endswith("# mine\n")


def refused(rule: str, error: Rejected) -> str:
    (problem,) = error.diagnostics
    assert problem.rule == rule, problem.message
    assert problem.help
    return problem.message


IMAGE = "/v2/team/vllm/manifests/1.0"
ELSEWHERE = {"Location": "http://127.0.0.2/other"}


@pytest.mark.parametrize(
    ("path", "answer", "rule", "said"),
    [
        (IMAGE, (401, {}, ""), "GP081", "does not show image"),
        (IMAGE, (403, {}, ""), "GP081", "to everybody (403)"),
        ("/token", (401, {}, ""), "GP081", "to everybody (401)"),
        (IMAGE, (404, {}, ""), "GP082", "has no image"),
        (IMAGE, (429, {}, ""), "GP083", "limits how often it is asked"),
        (IMAGE, (307, ELSEWHERE, ""), "GP084", "sends to 127.0.0.2"),
        ("/token", (302, ELSEWHERE, ""), "GP084", "sends to 127.0.0.2"),
        (IMAGE, (500, {}, ""), "GP085", "its status is 500"),
        (IMAGE, (200, {}, "<html>"), "GP085", "it is no JSON"),
        (IMAGE, (200, {}, "[1]"), "GP085", "it is no manifest"),
        ("/token", (200, {}, '{"token": "a\\nb"}'), "GP085", "it holds no token"),
        (
            IMAGE,
            (401, {"WWW-Authenticate": 'Bearer realm="http://example.org/token"'}, ""),
            "GP081",
            "does not show image",
        ),
        (IMAGE, (401, {"WWW-Authenticate": "Basic realm=x"}, ""), "GP081", "does not show image"),
    ],
)
def test_every_failure_of_a_registry_is_one_message(
    server: Answers, path: str, answer: tuple[int, dict[str, str], str], rule: str, said: str
) -> None:
    server.instead[path] = answer
    with pytest.raises(Rejected) as caught:
        image_digest(f"{server.host}/team/vllm:1.0")
    assert said in refused(rule, caught.value)


def test_a_registry_that_contradicts_its_bytes_is_not_believed(server: Answers) -> None:
    server.stated = "sha256:" + "0" * 64
    with pytest.raises(Rejected) as caught:
        image_digest(f"{server.host}/team/vllm:1.0")
    assert "it says sha256:000" in refused("GP085", caught.value)


def test_a_registry_gets_no_credentials_but_its_own_token(server: Answers) -> None:
    assert image_digest(f"{server.host}/team/vllm:1.0") == registry.DIGEST
    given = [sent.get("Authorization") for sent in server.sent]
    assert given == [None, None, f"Bearer {registry.TOKEN}"]
    assert "scope=repository%3Ateam%2Fvllm%3Apull" in server.asked[1]


@pytest.mark.parametrize(
    ("answer", "rule", "said"),
    [
        ((401, {}, ""), "GP081", "does not show model team/small"),
        ((404, {}, ""), "GP082", "has no model team/small"),
        ((429, {}, ""), "GP083", "limits how often"),
        ((302, ELSEWHERE, ""), "GP084", "sends to 127.0.0.2"),
        ((200, {}, '{"sha": "main"}'), "GP085", "it names no commit"),
        ((200, {}, "[]"), "GP085", "it names no commit"),
    ],
)
def test_every_failure_of_the_hub_is_one_message(
    server: Answers, answer: tuple[int, dict[str, str], str], rule: str, said: str
) -> None:
    server.instead["/api/models/team/small"] = answer
    with pytest.raises(Rejected) as caught:
        commit("team/small", f"http://{server.host}")
    assert said in refused(rule, caught.value)


def test_a_model_that_was_renamed_on_its_own_host_is_followed(server: Answers) -> None:
    server.instead["/api/models/team/small"] = 307, {"Location": "/api/models/team/new"}, ""
    assert commit("team/small", f"http://{server.host}") == registry.COMMIT


def test_a_host_that_nobody_reaches_is_said_with_the_way_there(
    server: Answers, monkeypatch: pytest.MonkeyPatch
) -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        closed = free.getsockname()[1]
    with pytest.raises(Rejected) as caught:
        image_digest(f"127.0.0.1:{closed}/team/vllm:1.0")
    assert "cannot be reached: Connection refused" in refused("GP080", caught.value)
    (problem,) = caught.value.diagnostics
    assert problem.help.startswith("no proxy is set for it")
    monkeypatch.setenv("http_proxy", f"http://somebody:secret@127.0.0.1:{closed}")
    with pytest.raises(Rejected) as caught:
        commit("team/small", "http://hub.invalid")
    (problem,) = caught.value.diagnostics
    assert problem.help.startswith(f"the way goes through the proxy 127.0.0.1:{closed}")
    assert "secret" not in problem.help


def test_proxies_of_the_environment_are_used_and_left_out(
    server: Answers, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("http_proxy", f"http://{server.host}")
    assert commit("team/small", "http://hub.invalid") == registry.COMMIT
    assert server.proxied == ["hub.invalid"]
    monkeypatch.setenv("no_proxy", "127.0.0.1")
    assert commit("team/small", f"http://{server.host}") == registry.COMMIT
    assert server.proxied == ["hub.invalid"]


def test_a_chart_is_found_among_the_others_of_its_index(server: Answers) -> None:
    url = f"http://{server.host}/charts"
    assert chart_digest(url, "gpu-operator", "v26.3.3") == f"sha256:{registry.CHART}"
    with pytest.raises(Rejected) as caught:
        chart_digest(url, "gpu-operator", "v1.0.0")
    assert "has no chart gpu-operator v1.0.0" in refused("GP082", caught.value)
    server.instead["/charts/index.yaml"] = 200, {}, json.dumps({"entries": {"gpu-operator": []}})
    with pytest.raises(Rejected) as caught:
        chart_digest(url, "gpu-operator", "v26.3.3")
    refused("GP082", caught.value)
    server.instead["/charts/index.yaml"] = 200, {}, "entries: {gpu-operator: ["
    with pytest.raises(Rejected) as caught:
        chart_digest(url, "gpu-operator", "v26.3.3")
    assert "it is no YAML" in refused("GP085", caught.value)


@pytest.mark.parametrize(
    ("image", "host", "repository", "tag"),
    [
        ("vllm/vllm-openai:v0.27.1", "registry-1.docker.io", "vllm/vllm-openai", "v0.27.1"),
        ("python", "registry-1.docker.io", "library/python", "latest"),
        ("quay.io/jupyter/base:1", "quay.io", "jupyter/base", "1"),
        ("localhost/one:2", "localhost", "one", "2"),
        ("registry.example.org:5000/a/b/c:3", "registry.example.org:5000", "a/b/c", "3"),
    ],
)
def test_an_image_names_its_registry(image: str, host: str, repository: str, tag: str) -> None:
    found = reference(image)
    assert (found.host, found.repository, found.tag) == (host, repository, tag)
    assert found.url.startswith("http://" if host == "localhost" else "https://")
