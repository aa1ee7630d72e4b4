"""How served points resemble each other: what is the same, and how near their loads and lengths.

Amplitudes are standard deviations of ln(measured / formula), chosen by cross-validation of public
points (leaving out one curve of a source after the other); those of `habits` by leaving whole
sources out, some of whose points were then given (bench/accuracy/widths.py, as are `WIDTHS`); that
of `practice` of times per output token with the sources of docs/accuracy/arrived.md in view.
"""

from __future__ import annotations

from gpuplan.accuracy.data.widths import WIDTHS
from gpuplan.accuracy.reckon import Prior
from gpuplan.sizing.calibration.anchors import Term

QUEUED_MILLISECONDS = 3000.0  # a longer TTFT is the queue of a closed loop, not the engine


def _fading(length: float) -> tuple[tuple[str, float], ...]:
    return ("batch", length), ("input", length), ("output", length)


# Of whom measured points are known, the first four; then of anyone else. What others measured makes
# a prediction calibrated only where it was this model, GPU, engine and precision.
_REACHES: tuple[tuple[tuple[str, ...], bool], ...] = (
    (("source", "layout"), True),
    (("source", "cell"), True),
    (("source", "model", "engine"), False),
    (("source", "gpu", "engine"), True),
    (("cell",), True),
    (("gpu", "engine"), False),
    ((), False),
)


def _sources(times: float) -> tuple[Term, ...]:
    """What differs between those who measured: clients, hosts, settings. An unseen one has none of
    it, but what those have in common whose settings are as far tuned."""
    parts = (("source",), 0.12), (("source", "gpu", "engine"), 0.1), (("source", "cell"), 0.1)
    return tuple(Term(amplitude=round(a * times, 3), same=same) for same, a in parts)


_TOKEN = Prior(
    quantity="time_per_output_token",
    terms=(
        # Little, as below: those who tune nothing are few, and the next one is not like them.
        Term(amplitude=0.05, same=("practice", "engine")),
        *_sources(1.5),
        Term(amplitude=0.038, same=("engine",)),
        Term(amplitude=0.024, same=("generation", "engine")),
        Term(amplitude=0.044, same=("model",)),
        Term(amplitude=0.068, same=("model", "engine")),
        Term(amplitude=0.094, same=("cell",)),
        Term(amplitude=0.082, same=("layout",)),
        Term(amplitude=0.087, same=("model", "engine", "version")),
        Term(amplitude=0.16, same=("unrecorded",)),
        Term(amplitude=0.048, same=("model", "engine"), scales=_fading(3.0)),
        Term(amplitude=0.056, same=("cell",), scales=_fading(3.23)),
        Term(amplitude=0.08, same=("layout",), scales=_fading(2.0)),
        Term(amplitude=0.15, same=("habits",), scales=_fading(4.0)),
    ),
    noise=0.036,
    reaches=_REACHES,
    by="spread",
    held=tuple(WIDTHS["time_per_output_token"].items()),
    apart="source",
    least=0.65,
)
_FIRST = Prior(
    quantity="time_to_first_token",
    terms=(
        # Little: of an engine two or three sources tune nothing, and the next one is not like them.
        Term(amplitude=0.05, same=("practice", "engine")),
        Term(amplitude=0.05, same=("practice", "engine"), scales=(("batch", 2.0),)),
        *_sources(2.0),
        Term(amplitude=0.07, same=("engine",)),
        Term(amplitude=0.045, same=("generation", "engine")),
        Term(amplitude=0.083, same=("model",)),
        Term(amplitude=0.128, same=("model", "engine")),
        Term(amplitude=0.177, same=("cell",)),
        Term(amplitude=0.155, same=("layout",)),
        Term(amplitude=0.164, same=("model", "engine", "version")),
        Term(amplitude=0.15, same=("unrecorded",)),
        Term(amplitude=0.25, same=("model", "engine"), scales=_fading(2.0)),
        Term(amplitude=0.2, same=("cell",), scales=_fading(2.0)),
        Term(amplitude=0.2, same=("layout",), scales=_fading(2.0)),
        Term(amplitude=0.25, same=("habits",), scales=_fading(2.0)),
    ),
    noise=0.08,
    reaches=_REACHES,
    by="spread",
    held=tuple(WIDTHS["time_to_first_token"].items()),
    apart="source",
    least=0.8,
    most=QUEUED_MILLISECONDS,
)
PRIORS = {prior.quantity: prior for prior in (_TOKEN, _FIRST)}
