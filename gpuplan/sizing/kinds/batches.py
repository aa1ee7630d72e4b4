"""What a batch reads and writes: the volumes of its requests and of their results."""

from __future__ import annotations

from gpuplan.plan.model import Volume
from gpuplan.sizing.ask.demand import (
    LIMITED,
    BatchDemand,
    Demand,
    ImageBatchDemand,
    PoolingBatchDemand,
    SpeechBatchDemand,
    TrainingDemand,
    VisionBatchDemand,
)
from gpuplan.sizing.candidates.assemble import storage
from gpuplan.sizing.candidates.needs import TOKEN_TEXT
from gpuplan.sizing.candidates.resources import volume
from gpuplan.sizing.candidates.settle import Settled
from gpuplan.sizing.evidence.formula import Quantity, constant
from gpuplan.sizing.evidence.sheet import Scope, sheet
from gpuplan.sizing.hardware.offers import Site

LINE = constant(1024, "B", "a line's own fields with their JSON (ids, settings, usage), about")
AUDIO = constant(32000, "B/s", "16-bit samples at 16 kHz, not compressed: what Whisper hears")
NUMBER = constant(22, "B", "a number of a vector as JSON writes it, about")
PIXEL = constant(4, "B", "a pixel of 3 bytes as Base64, not compressed")

_TEXTS = sheet("""
    request_file_bytes: B = all_requests * (input_mean * token_text + line_bytes)
        # a line for each request, all replicas
    result_file_bytes: B = all_requests * (output_mean * token_text + line_bytes)
        # a line for each answer, all replicas
""")
_READ = """
    request_file_bytes: B = all_requests * (request_tokens * token_text + line_bytes)
        # a line for each request, all replicas
    result_file_bytes: B = all_requests * (texts * {numbers} * number_text + line_bytes)
        # {what}, all replicas
"""
_POOLED = {
    "embed": sheet(_READ.format(numbers="hidden_size", what="a vector for each text")),
    "score": sheet(_READ.format(numbers="1", what="a score for each text")),
}
_SPOKEN = sheet("""
    request_file_bytes: B = all_requests * (audio * audio_bytes_per_s + line_bytes)
        # the audio of each request, all replicas
    result_file_bytes: B = all_requests * (windows * output_mean * token_text + line_bytes)
        # a text for each request, all replicas
""")
_LOOKED = """
    request_file_bytes: B = all_requests * images * file_bytes  # the images, all replicas
    result_file_bytes: B = all_requests * (images * {numbers} * number_text + line_bytes)
        # {what} for each image, all replicas
"""
_SEEN = {
    True: sheet(_LOOKED.format(numbers="vector_numbers", what="a vector")),
    False: sheet(_LOOKED.format(numbers="2", what="a class and its score")),
}
_IMAGES = sheet("""
    request_file_bytes: B = all_requests * line_bytes  # a line for each prompt, all replicas
    result_file_bytes: B = all_requests * (pixels_mean * pixel_bytes + line_bytes)
        # an image for each request, all replicas
""")


def batch_volumes(
    settled: Settled[Demand], site: Site, scope: Scope, replicas: int
) -> tuple[Volume, ...]:
    """Those of a batch; none of a service."""
    demand = settled.demand
    if not isinstance(demand, LIMITED) or isinstance(demand, TrainingDemand):
        return ()
    if isinstance(demand, BatchDemand):
        formulas, inputs = _TEXTS, {"token_text": TOKEN_TEXT}
    elif isinstance(demand, SpeechBatchDemand):
        formulas = _SPOKEN
        inputs = {"token_text": TOKEN_TEXT, "audio_bytes_per_s": AUDIO}
    elif isinstance(demand, PoolingBatchDemand):
        formulas, inputs = _POOLED[demand.pooling], {"token_text": TOKEN_TEXT}
        inputs["number_text"] = NUMBER
    elif isinstance(demand, VisionBatchDemand):
        formulas, inputs = _SEEN[demand.model.vectors > 0], {"number_text": NUMBER}
        width = Quantity(float(demand.model.vectors), "1", demand.model.source)
        inputs["vector_numbers"] = width
    else:
        assert isinstance(demand, ImageBatchDemand)
        formulas, inputs = _IMAGES, {"pixel_bytes": PIXEL, "pixels_mean": demand.pixels_mean}
    files = formulas.record(settled.ledger, scope | inputs | {"line_bytes": LINE})
    shared = replicas > 1
    requests = storage(settled, "request_storage_bytes", files["request_file_bytes"])
    results = storage(settled, "result_storage_bytes", files["result_file_bytes"])
    return (
        volume(site, "requests", requests, shared=shared),
        volume(site, "results", results, shared=shared),
    )
