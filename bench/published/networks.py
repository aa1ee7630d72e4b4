"""Profiles of timm's networks → gpuplan/models/images/vision_networks.tsv.

    python -m bench.published.networks RESULTS_FOLDER

RESULTS_FOLDER is `results/` of huggingface/pytorch-image-models. Of its benchmark files the sizes
alone are read: parameters, multiply-accumulates, activations. Attention's part is counted from the
dimensions of plain vision transformers; of other networks it is the difference between profiles
with and without fused attention, which its counter does not see (the files of PyTorch 2.1).
"""

from __future__ import annotations

import csv
import re
import sys
from pathlib import Path

OUTPUT = Path(__file__).parents[2] / "gpuplan/models/images/vision_networks.tsv"
HEAD = (
    "# repository: huggingface/pytorch-image-models@aa4b5850c154 results/ (2026-08-08), made by "
    "bench/published/networks.py"
)
COLUMNS = (
    "name pixels parameters_m gmacs activations_m attention_gmacs attention_activations_m "
    "width patch"
)
# timm/models/vision_transformer.py and eva.py at that commit: width, blocks, heads.
SIZES = {
    "tiny": (192, 12, 3),
    "small": (384, 12, 6),
    "medium": (512, 12, 8),
    "mediumd": (512, 20, 8),
    "betwixt": (640, 12, 10),
    "base": (768, 12, 12),
    "so150m": (896, 18, 14),
    "large": (1024, 24, 16),
    "so400m": (1152, 27, 16),
    "huge": (1280, 32, 16),
    "giant": (1408, 40, 16),
    "giantopt": (1536, 40, 16),
    "gigantic": (1664, 48, 16),
    "enormous": (1792, 56, 16),
}
# timm/models/swin_transformer.py: width of the first stage, blocks of each, heads of the first.
WINDOWED = {
    "tiny": (96, (2, 2, 6, 2), 3),
    "small": (96, (2, 2, 18, 2), 3),
    "base": (128, (2, 2, 18, 2), 4),
    "large": (192, (2, 2, 18, 2), 6),
}
WINDOW = re.compile(r"swin(?:v2)?_(tiny|small|base|large)_(?:patch4_)?window(?:\d+to)?(\d+)_")
PLAIN = re.compile(
    r"(?:vit|deit3?|beit(?:v2|3)?|eva(?:02)?|flexivit)(?:_relpos|_srelpos)?_([a-z0-9]+)_"
)
Profile = tuple[float, float, float]  # parameters in millions, GMACs, activations in millions


def profiles(folder: Path) -> tuple[dict[tuple[str, int], Profile], dict[tuple[str, int], Profile]]:
    """By name and image size: everything counted, and without fused attention."""
    whole: dict[tuple[str, int], Profile] = {}
    fused: dict[tuple[str, int], Profile] = {}
    for path in sorted(folder.glob("benchmark-infer-*.csv")):
        with path.open(newline="", encoding="utf-8") as file:
            for row in csv.DictReader(file):
                counted = profile(row)
                if counted:
                    place = (row["model"].split(".")[0], int(row["infer_img_size"]))
                    (fused if "pt210" in path.name else whole)[place] = counted
    return whole, fused


def profile(row: dict[str, str]) -> Profile | None:
    texts = [row.get(c) for c in ("param_count", "infer_gmacs", "infer_macts")]
    if not all(texts):
        return None
    parameters, macs, activations = (float(t or 0) for t in texts)
    return parameters, macs, activations


def dimensions(name: str) -> tuple[int, int, int, int] | None:
    """Width, blocks, heads and patch of a plain vision transformer."""
    size, patch = PLAIN.match(name), re.search(r"patch(\d+)", name)
    if size is None or patch is None or size[1] not in SIZES:
        return None
    width, blocks, heads = SIZES[size[1]]
    if "_plus" in name and size[1] == "base":
        width, heads = 896, 14
    twice = re.search(r"_(\d+)x(\d)_", name)
    blocks = int(twice[1]) * int(twice[2]) if twice else blocks
    return width, blocks, heads, int(patch[1])


def windows(name: str, pixels: int) -> tuple[float, float] | None:
    """GMACs and activations in millions of a Swin's attention in windows."""
    match = WINDOW.match(name)
    if match is None:
        return None
    width, blocks, heads = WINDOWED[match[1]]
    macs = scores = 0
    for stage, count in enumerate(blocks):
        side = pixels // 4 // 2**stage
        pairs = count * side**2 * min(int(match[2]), side) ** 2
        macs += 2 * pairs * width * 2**stage
        scores += pairs * heads * 2**stage
    return macs / 1e9, scores / 1e6


def line(place: tuple[str, int], whole: Profile, fused: Profile | None) -> str:
    name, pixels = place
    parameters, macs, activations = whole
    plain, attention, width, patch = dimensions(name), windows(name, pixels), 0, 0
    if plain:
        width, blocks, heads, patch = plain
        tokens = (pixels // patch) ** 2
        attention = 2 * blocks * tokens**2 * width / 1e9, blocks * heads * tokens**2 / 1e6
    elif fused and fused[2] < whole[2] * 0.997 and not attention:
        attention = macs - fused[1], activations - fused[2]
    numbers = (parameters, macs, activations, *(attention or (0.0, 0.0)), width, patch)
    return "\t".join([name, str(pixels), *(f"{n:.6g}" for n in numbers)])


def main() -> None:
    whole, fused = profiles(Path(sys.argv[1]))
    lines = [line(place, whole[place], fused.get(place)) for place in sorted(whole)]
    OUTPUT.write_text("\n".join([HEAD, "# " + COLUMNS, *lines]) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
