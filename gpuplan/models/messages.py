"""What is wrong with a model's configuration: one constructor a message.

GP011 an architecture that is not known · GP012 a dimension that is missing or cannot be.
"""

from __future__ import annotations

from collections.abc import Iterable

from gpuplan.diagnostics import Diagnostic, did_you_mean, error
from gpuplan.source import Origin


def unknown_architecture(name: str, known: Iterable[str], origin: Origin) -> Diagnostic:
    known = tuple(known)
    return error(
        "GP011",
        f"the parameters of '{name}' cannot be counted: the architecture is not known",
        origin,
        label="unknown architecture",
        help=did_you_mean(name, known) or f"known are {', '.join(known)}",
    )


def missing_field(name: str, architecture: str, origin: Origin) -> Diagnostic:
    return error(
        "GP012",
        f"the model's configuration does not state '{name}'",
        origin,
        label=f"needed to count the parameters of a {architecture}",
        help="take config.json from the model's repository as it is",
    )


def no_architecture(origin: Origin) -> Diagnostic:
    return error(
        "GP012",
        "the model's configuration does not state 'architectures'",
        origin,
        help="name one, for example architectures: [LlamaForCausalLM]",
    )


def impossible_value(name: str, value: object, wanted: str, origin: Origin) -> Diagnostic:
    return error(
        "GP012",
        f"the model's '{name}' cannot be {_shown(value)}",
        origin,
        label=f"{wanted} is wanted",
    )


def unknown_quantization(method: str, known: Iterable[str], origin: Origin) -> Diagnostic:
    return error(
        "GP011",
        f"weights quantized by '{method}' cannot be counted",
        origin,
        help=f"known are awq, gptq, {', '.join(known)}; name the unquantized model instead",
    )


def _shown(value: object) -> str:
    text = repr(value)
    return text if len(text) <= 40 else f"{text[:37]}..."


def not_a_multiple(name: str, value: int, part: str, divisor: int, origin: Origin) -> Diagnostic:
    return error(
        "GP012",
        f"the model's '{name}' ({value}) is not a multiple of '{part}' ({divisor})",
        origin,
    )


def more_than_there_are(name: str, value: int, of: str, total: int, origin: Origin) -> Diagnostic:
    return error("GP012", f"the model's '{name}' ({value}) is more than '{of}' ({total})", origin)
