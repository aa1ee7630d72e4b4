"""All architectures, by the name that a config.json states."""

from __future__ import annotations

from gpuplan.models.families.dense import DENSE
from gpuplan.models.families.encoders import ENCODERS
from gpuplan.models.families.mixtures import MIXTURES

ARCHITECTURES = dict(sorted((DENSE | ENCODERS | MIXTURES).items()))
