"""All architectures, by the name that a config.json states."""

from __future__ import annotations

from gpuplan.models.dense import DENSE
from gpuplan.models.encoders import ENCODERS
from gpuplan.models.mixtures import MIXTURES

ARCHITECTURES = dict(sorted((DENSE | ENCODERS | MIXTURES).items()))
