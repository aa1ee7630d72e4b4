"""One replica that writes down audio: the time of a window, and memory.

A window is read once by the encoder, as a text is (`pooling/steps.py`), and written token by token
by the decoder (`serving/steps.py`), whose tokens attend to all of the encoder's positions. Of the
windows that run at once each waits for the reading of all others: a window keeps the GPU busy for
`window_seconds`, and takes that time once for each of them.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

from gpuplan.models.identity import identity
from gpuplan.models.model import Speech, Transformer
from gpuplan.plan.model import Basis
from gpuplan.sizing.calibration.anchors import Features, Field
from gpuplan.sizing.calibration.corrections import SteadyCorrection
from gpuplan.sizing.data import pooling as fusing
from gpuplan.sizing.data import speech as measured
from gpuplan.sizing.evidence.formula import Ledger, Quantity, constant
from gpuplan.sizing.evidence.intervals import Factors
from gpuplan.sizing.evidence.sheet import Scope, Sheet, floats, sheet
from gpuplan.sizing.hardware.devices import Device
from gpuplan.sizing.hardware.efficiency import KERNEL
from gpuplan.sizing.memory.engines import engine_memory
from gpuplan.sizing.memory.margin import SERVED, interval
from gpuplan.sizing.memory.pooling import INTERVAL, INTERVAL_SOURCE
from gpuplan.sizing.physics.pooling.steps import step as reading
from gpuplan.sizing.physics.serving.scopes import decode_scope, formats, serving_scope, shape
from gpuplan.sizing.physics.serving.service import Division
from gpuplan.sizing.physics.serving.steps import step

QUANTITY = "speech_rate"
ALONE = Division()
ONE = constant(1.0, "1", "a replica is one GPU, or a part of it")
PLAIN = {"moe": False, "parallel": False, "windowed": False}
WINDOW = sheet("""
    windows: 1 = ceil(audio / window_audio)  # of a request, on average
    written_tokens: 1 = output_mean + prompt_tokens  # of a window
    cross_seconds: s = mac_flop * positions * cross_parameters
        / (matmul_peak * compute_share * matmul_compute)
        # keys and values of the positions for every layer of the decoder, once
    asking_seconds: s = max(cross_parameters * bf16_bytes / (bandwidth * matmul_read),
        mac_flop * sequences * cross_parameters / (matmul_peak * compute_share * matmul_compute))
        # queries of a step's tokens and what they read of the positions
    reading_seconds: s = encode_seconds + cross_seconds  # a window, once
    writing_seconds: s = written_tokens * (decode_seconds + asking_seconds) / sequences
        # a window's part of the steps that it shares with others
    window_least: s = encode_least + written_tokens * decode_least / sequences
        # no window is faster than its reads at peak bandwidth, nor its products at peak
    window_seconds: s = max(window_least, (reading_seconds + writing_seconds) / speech_correction)
        # that a window keeps the GPU busy, as the measured rates near it correct it
    window_latency: s = sequences * window_seconds  # with so many at once
""")
MEMORY = (
    sheet("""
    weights_bytes: B = ceil(speech_parameters * matmul_bytes_each)  # in the precision
    activations_bytes: B = ceil(bf16_bytes * positions * (4 * mlp_width + 8 * hidden_size)
        + (bf16_bytes + 2 * fp32_bytes) * max_num_seqs * vocabulary)
        # work space of the encoder; logits in bf16, fp32 and as probabilities
    kv_cache_bytes: B = ceil(bf16_bytes * max_num_seqs * cached_elements
        * (positions + longest_text))  # keys and values of the positions, and of the text
    own_bytes: B = context_bytes  # context, graphs and allocator of the engine
""")
    + SERVED
)


@dataclass(frozen=True)
class Transcriber:
    """`asked` has `audio` and `output_mean`."""

    model: Speech
    device: Device
    engine: str
    precision: str
    asked: Scope
    utilization: Quantity
    confidence: float
    anchors: Field | None
    place: Features | None = None

    def near(self, anchors: Field, place: Features) -> Transcriber:
        """The same, corrected by other points, as one that stands elsewhere among them."""
        return replace(self, anchors=anchors, place=place)

    @cached_property
    def corrected(self) -> SteadyCorrection:
        place = self.place or features(self.model, self.device.gpu.identifier, self.engine)
        part = self.device.partition is not None
        return SteadyCorrection("speech", place, self.anchors, measured.UNMEASURED, part)

    @property
    def interval(self) -> tuple[Factors, Basis]:
        """Of the corrected time: its ends as factors."""
        return self.corrected.interval

    def _half(self, half: Transformer) -> Scope:
        layout = formats(half, self.precision, "auto")
        scope = serving_scope(half, self.device, self.engine, layout, ALONE)
        return scope | {"tensor_parallel_size": ONE}

    @cached_property
    def reading(self) -> Scope:
        """Numbers of the encoder on one window. Raises `NotMeasured`."""
        scope = self._half(self.model.encoder)
        scope |= {f"attention_{n}": scope[f"prefill_{n}"] for n in KERNEL[:5]}
        if (fused := fusing.FUSING.get(self.engine)) is not None:
            scope["elementwise_factor"] = constant(0.0, "1", fused)
        positions = float(self.model.encoder.context_length)
        seen = Quantity(positions, "1", self.model.source)
        return scope | {
            "tokens": seen,
            "longer_input": seen,
            "seen_share": constant(1.0, "1", "of an encoder: a position sees all others"),
            "rate_correction": constant(1.0, "1", "a whole window is corrected, not its parts"),
        }

    @cached_property
    def writing(self) -> Scope:
        """Numbers of the decoder, of a window, and of memory. Raises `NotMeasured`."""
        model, source = self.model, self.model.source
        decoder, width = model.decoder, model.decoder.hidden_size
        numbers = {
            "positions": model.encoder.context_length,
            "cross_parameters": 2 * width**2 * decoder.layers,
            "cached_elements": 2 * width * decoder.layers,
            "longest_text": decoder.context_length,
            "speech_parameters": model.parameters,
        }
        scope = self._half(decoder)
        scope |= {n: Quantity(float(value), "1", source) for n, value in numbers.items()}
        scope |= engine_memory(self.engine)
        scope |= interval(INTERVAL[1], self.confidence, INTERVAL_SOURCE)
        return scope | {
            "window_audio": Quantity(float(model.window_seconds), "s", source),
            "prompt_tokens": constant(
                measured.PROMPT_TOKENS, "1", "start, language, task and timestamps"
            ),
            "memory_bytes": self.device.memory_bytes,
            "gpu_memory_utilization": self.utilization,
            **self.asked,
        }

    @cached_property
    def _shape(self) -> Sheet:
        return shape(latent=False, moe=False, partition=self.device.partition is not None)

    @cached_property
    def _base(self) -> dict[str, float]:
        """What no number of windows changes."""
        read = reading()(self._shape(floats(self.reading)))
        base = self._shape(floats(self.writing))
        base["context"] = base["positions"] + (base["output_mean"] + base["prompt_tokens"]) / 2
        base |= {
            "encode_seconds": read["formula_seconds"],
            "encode_least": read["roofline_seconds"],
        }
        return base | self.corrected.input

    def at(self, sequences: float) -> dict[str, float]:
        """Times with so many windows at once, and memory of as many places."""
        scope = decode_scope({**self._base, "sequences": sequences})
        done = step("decode", **PLAIN)(scope)
        done |= {"decode_seconds": done["seconds"], "decode_least": done["roofline_seconds"]}
        return MEMORY(WINDOW(done | {"max_num_seqs": max(1.0, sequences)}))

    def record(self, ledger: Ledger) -> Scope:
        """What no number of windows changes, as evidence."""
        read = self._shape.record(ledger, dict(self.reading), "encode.")
        read = reading().record(ledger, read, "encode.")
        scope = self._shape.record(ledger, dict(self.writing), "decoder.")
        scope = _CONTEXT.record(ledger, scope)
        scope |= {
            "encode_seconds": read["formula_seconds"],
            "encode_least": read["roofline_seconds"],
        }
        return scope | self.corrected.record(ledger)

    def record_times(self, ledger: Ledger, scope: Scope, prefix: str = "") -> Scope:
        """Times with `sequences` windows at once."""
        done = step("decode", **PLAIN).record(ledger, decode_scope(scope), f"{prefix}decode.")
        times = {"decode_seconds": done["seconds"], "decode_least": done["roofline_seconds"]}
        return WINDOW.record(ledger, scope | times, prefix)


_CONTEXT = sheet("""
    context: 1 = positions + (output_mean + prompt_tokens) / 2
        # what a token attends to, half way through a window
""")


def features(model: Speech, gpu: str, engine: str) -> Features:
    return {"model": identity(model), "gpu": gpu, "engine": engine, "run": f"{gpu} {engine}"}
