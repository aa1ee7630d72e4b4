"""Models that make videos, by their names and the classes of their pipelines in diffusers: what is
said of those whose modules are not bundled."""

from __future__ import annotations

import re

_FAMILIES = re.compile(
    r"(?:hunyuan|cog|ltx|step|stable)-?video|wan-?2|mochi|open-?sora|transformer3dmodel"
    r"|cosmos.*(?:text2world|video2world)",
    re.IGNORECASE,
)


def makes_videos(name: str) -> bool:
    """Whether a model's name, or the class of a module, is one of a family of video models."""
    return _FAMILIES.search(name) is not None
