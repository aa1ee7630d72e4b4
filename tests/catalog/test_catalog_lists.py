"""`gpuplan catalog` asked for what it has not, or in other words than its own."""

from __future__ import annotations

import json

import pytest

from gpuplan.catalog.load import load_catalog
from gpuplan.cli.main import main


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["list", "gpus", "zzz"], "no gpus with 'zzz' in their names"),
        (["list", "models", "zzz", "--json"], "no models with 'zzz' in their names"),
        (["list", "nodes", "--provider", "aws"], "the list of nodes has no --provider"),
        (["list", "gpus", "--gpu", "h100", "--max-age", "9d"], "gpus has no --gpu, --max-age"),
        (
            ["list", "prices", "h100", "--max-age", "5d", "--as-of", "2031-02-03"],
            "no prices for 'h100' of the 5 days to 2031-02-03",
        ),
        (["list", "prices", "--gpu", "zzz"], "no prices for 'zzz'"),
        (["show", "h200"], "h200-nvl-141gb, h200-sxm-141gb"),
    ],
)
def test_what_is_not_there_is_an_error_that_names_it(
    arguments: list[str], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["catalog", *arguments]) == 2
    printed = capsys.readouterr()
    assert said in " ".join((printed.out + printed.err).split())


def test_names_are_found_in_any_case(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["catalog", "list", "gpus", "H200-SXM"]) == 0
    assert "h200-sxm-141gb" in capsys.readouterr().out


def test_a_day_that_is_none_is_said_to_be_none(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["catalog", "list", "gpus", "--as-of", "2026-13-01"])
    assert "'2026-13-01' is not a date" in capsys.readouterr().err


def test_a_gpu_of_a_board_with_several_has_its_own_power() -> None:
    found = load_catalog().gpu("a16")
    assert found is not None
    assert found.watts is not None
    assert found.watts.value == 250 / 4


def test_what_releases_do_in_kernels_is_listed_with_its_sources(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert main(["catalog", "list", "kernels", "graphed", "--json"]) == 0
    rows = json.loads(capsys.readouterr().out)
    told = {
        "of": "vllm",
        "fact": "graphed steps",
        "since": "0.10",
        "where": "tokens 512, tokens each 2",
    }
    assert any(told.items() <= row.items() for row in rows)
    assert main(["catalog", "list", "kernels", "GRAPHED"]) == 0
    text = " ".join(capsys.readouterr().out.split())
    assert "vllm graphed steps 0.10 tokens 512, tokens each 2" in text
    assert all(" ".join(r["source"].split()) in text for r in rows)
