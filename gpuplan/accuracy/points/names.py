"""What people call models, as words that the spellings of one name share.

`meta-llama/Meta-Llama-3.1-70B-Instruct-FP8`, `llama31_70b` and `Llama3.1-70B` are all
`llama 3.1 70b`: families, versions and sizes are words of their own, whatever separates them.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

Words = tuple[str, ...]

_SIZE = r"\d+x\d+(?:\.\d+)?b|[ae]?\d+(?:\.\d+)?[bm](?![a-z0-9])|\d+e(?![a-z0-9])"
_FORMAT = r"(?:nv|mx|b)?fp?\d+|int\d|w\d+a\d+|nf4|[48]bit|\d+k(?![a-z0-9])"
_DROPPED = re.compile(rf"\d{{4}}(?:\d{{2}}){{0,2}}|{_FORMAT}")  # dates, formats, context
_WORD = re.compile(rf"{_FORMAT}|{_SIZE}|[a-z]+|\d+(?:\.\d+)?")
# Between digits, `_` and `p` stand for a point: llama3_1, qwen2p5. Not before a size: llama2_70b.
_POINT = re.compile(r"(?<=\d)[_p](?=\d(?![\db]))|(?<=-1)_(?=8b)")
_ONE = re.compile(r"(gpt|code|tiny|chat|star|intern|open)[-_ ]?(j|neox|oss|llama|glm|coder|lm)")
_TWO = re.compile(r"(deepseek|kimi|minimax)(v|r|k|m)(?=\d)")
_VERSIONS = {"31": "3.1", "32": "3.2", "33": "3.3", "25": "2.5", "15": "1.5", "35": "3.5"}
_RELEASE = re.compile(r"[-_ ]v0\.\d")

# How it was tuned, quantized or packed, and who uploaded it: the same network.
_TUNING = "base chat dpo dropless exp hf instruct it lora preview pt reasoning rl sft tokendrop"
_TUNING += " terminus thinking turbo 99 99.9"
_PACKING = "awq block bnb dynamic gguf gptq modelopt per quantized static tensor"
_UPLOADERS = "amd meta mlperf nvidia openbuddy unsloth"
_NOISE = frozenset(f"{_TUNING} {_PACKING} {_UPLOADERS}".split())
# Another training of a network whose name is the rest.
_TRAINED = frozenset({"code", "coder", "math", "nemotron"})
# Families whose first generation is often named without its number.
_FIRST = frozenset({"llama", "qwen"})


def words(name: str) -> Words:
    """The words of a name that say which network it is, without those of an organisation."""
    text = re.sub(r"\(.*?\)", "", name.casefold().rpartition("/")[2])
    text = _TWO.sub(r"\1-\2", _ONE.sub(r"\1\2", _POINT.sub(".", text)))
    spelled = [_VERSIONS.get(word, word) for word in _WORD.findall(text)]
    return tuple(w for w in spelled if w not in _NOISE and not _DROPPED.fullmatch(w))


def sizes(words: Words) -> bool:
    """Whether these words are numbers of parameters, and nothing else."""
    return all(re.fullmatch(_SIZE, word) for word in words)


def readings(name: str) -> Iterator[Words]:
    """What the name may mean, the most literal first."""
    whole = words(name)
    yield whole
    if len(whole) == 2 and whole[0] in _FIRST:
        yield (whole[0], "1", whole[1])
    short = words(_RELEASE.sub("", name.casefold()))
    yield short
    yield tuple(w for w in short if w not in _TRAINED)
    yield from _tails(short)


def _tails(words: Words) -> Iterator[Words]:
    """What follows the words of whoever distilled or tuned it: r 1 distill llama 70b."""
    for start in range(1, len(words) - 1):
        tail = words[start:]
        yield tail
        if len(tail) == 2 and tail[0] in _FIRST and "distill" in words:
            yield (tail[0], "3.1" if tail[0] == "llama" else "2.5", tail[1])
