"""A secret in a manifest is refused, and stands in nothing that is printed or written."""

from __future__ import annotations

import copy
import json
import random
import string
from pathlib import Path
from typing import Any

import pytest

from gpuplan.cli.main import main
from gpuplan.credentials import likeness
from gpuplan.render import yaml

CHANCE = random.Random(7)


def drawn(count: int, letters: str = string.ascii_letters + string.digits) -> str:
    return "".join(CHANCE.choice(letters) for _ in range(count))


TOKENS = {
    "hugging face": "hf_" + drawn(34),
    "aws": "AKIA" + drawn(16, string.ascii_uppercase + "234567"),
    "nvidia": "nvapi-" + drawn(64),
    "github": "ghp_" + drawn(36),
    "gitlab": "glpat-" + drawn(20),
    "anthropic": "sk-ant-api03-" + drawn(40),
    "openai": "sk-proj-" + drawn(48),
    "google": "AIza" + drawn(35),
    "slack": "xoxb-" + drawn(24),
    "pulumi": "pul-" + drawn(40, "0123456789abcdef"),
    "jwt": f"eyJ{drawn(20)}.eyJ{drawn(30)}.{drawn(20)}",
    "address": f"postgres://gpu:{drawn(12)}@db.example.org/plans",
}
MANIFEST: dict[str, Any] = {
    "apiVersion": "gpuplan.dev/v1",
    "name": "shop",
    "platform": {"target": "kubernetes", "gpus": ["h100-sxm-80gb"]},
    "workloads": [
        {
            "name": "chat",
            "task": "inference",
            "description": "Answers",
            "model": "meta-llama/Llama-3.1-8B-Instruct",
            "environment": {"LOG_LEVEL": "info"},
            "secrets": {"KEY": {"config": "key"}},
            "load": {"requests_per_second": 4, "input_tokens": 500, "output_tokens": 200},
            "tenancy": {"team": "platform"},
        }
    ],
}


def strings(tree: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    if isinstance(tree, dict):
        return [p for k, v in tree.items() for p in strings(v, (*path, k))]
    if isinstance(tree, list):
        return [p for k, v in enumerate(tree) for p in strings(v, (*path, k))]
    return [path]


def with_value(path: tuple[Any, ...], value: Any) -> dict[str, Any]:
    document = copy.deepcopy(MANIFEST)
    place: Any = document
    for part in path[:-1]:
        place = place[part]
    place[path[-1]] = value
    return document


def compiled(
    document: dict[str, Any], folder: Path, capsys: pytest.CaptureFixture[str]
) -> tuple[int, str]:
    """The exit code, and all that was printed or written."""
    path = folder / "m.yaml"
    path.write_text(yaml.dumps(document), encoding="utf-8")
    code = main(["compile", str(path), "-o", str(folder / "stacks")])
    printed = capsys.readouterr()
    files = (p for p in (folder / "stacks").rglob("*") if p.is_file())
    return code, "".join([printed.out, printed.err, *(p.read_text("utf-8") for p in files)])


@pytest.mark.parametrize("path", strings(MANIFEST), ids=lambda p: ".".join(map(str, p)))
def test_a_token_is_refused_wherever_it_stands(
    path: tuple[Any, ...], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for token in TOKENS.values():
        code, words = compiled(with_value(path, token), tmp_path, capsys)
        assert code == 2
        assert "GP019" in words
        assert token not in words
        assert not (tmp_path / "stacks").exists()


ENVIRONMENT = ("workloads", 0, "environment")


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("DB_PASSWORD", "correct horse battery"),
        ("AWS_SECRET_ACCESS_KEY", drawn(40)),
        ("wandbApiKey", "b5c2"),
        ("HF_TOKEN", "secret!"),
        ("SETTING", drawn(40)),
        ("SETTING", drawn(64, "0123456789abcdef")),
    ],
)
def test_a_secret_by_its_name_or_its_randomness(
    name: str, value: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    document = with_value(ENVIRONMENT, {name: value})
    code, words = compiled(document, tmp_path, capsys)
    assert code == 2
    assert f"{name} holds a secret" in words
    assert value not in words
    assert "public_variables" in words
    document["workloads"][0]["public_variables"] = [name]
    code, words = compiled(document, tmp_path, capsys)
    assert code == 0
    assert value in words


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("MAX_TOKENS", "4096"),
        ("TOKENIZERS_PARALLELISM", "false"),
        ("VLLM_API_KEY_FILE", "/run/secrets/key"),
        ("HF_TOKEN", "$(OTHER)"),
        ("SECRET_NAME", "huggingface"),
        ("GIT_COMMIT", "0123456789abcdef0123456789abcdef01234567"),
        ("NVIDIA_VISIBLE_DEVICES", "GPU-5f9c6a0e-3b1d-4f6e-9a52-0123456789ab"),
        ("MODEL", "meta-llama/Llama-3.3-70B-Instruct-Quantized-FP8-KV-Cache"),
        ("PRESET", "MetaLlama31InstructQuantizedFp8KvCache"),
        ("HTTPS_PROXY", "http://proxy.example.org:3128"),
        ("VLLM_LOGGING_LEVEL", "DEBUG"),
    ],
)
def test_what_only_sounds_like_a_secret_is_let_through(name: str, value: str) -> None:
    assert likeness(name, value) is None


def test_a_key_on_the_command_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for words in (["--api-key", "hunter2"], ["--api-key=hunter2"]):
        document = with_value(("workloads", 0, "command"), ["vllm", "serve", *words])
        code, said = compiled(document, tmp_path, capsys)
        assert (code, "API_KEY holds a secret" in said, "hunter2" in said) == (2, True, False)


def test_a_broken_line_is_shown_without_its_token(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path, token = tmp_path / "m.yaml", TOKENS["hugging face"]
    path.write_text(f"name: shop\nHF_TOKEN: {token}: x\n", encoding="utf-8")
    assert main(["compile", str(path)]) == 2
    assert token not in capsys.readouterr().err


def test_an_inventory_is_read_as_strictly(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    token = TOKENS["github"]
    inventory = {"apiVersion": "gpuplan.dev/inventory/v1", "name": token, "hosts": []}
    (tmp_path / "rack.yaml").write_text(json.dumps(inventory), encoding="utf-8")
    document = with_value(("platform", "inventory"), "rack.yaml")
    code, words = compiled(document, tmp_path, capsys)
    assert (code, "name holds a secret" in words, token in words) == (2, True, False)


def test_a_public_variable_must_be_one(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    document = with_value(("workloads", 0, "public_variables"), ["LOG_LEVELS"])
    code, words = compiled(document, tmp_path, capsys)
    assert (code, "did you mean 'LOG_LEVEL'" in words) == (2, True)


def test_a_document_that_is_nothing_but_a_token(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path, token = tmp_path / "m.yaml", TOKENS["hugging face"]
    path.write_text(f"{token}\n", encoding="utf-8")
    assert main(["compile", str(path)]) == 2
    said = capsys.readouterr().err
    assert "the document holds a secret" in said
    assert token not in said
