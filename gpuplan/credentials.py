"""What has the look of a secret: by its own form, by the name it is given, or by its randomness.

Source of the forms: the rules of gitleaks 8 (config/gitleaks.toml, read 2026-11-22), widened where
an issuer's tokens also have digits or other lengths. A form is enough by itself; names and
randomness are judged only where a program reads a value (`environment`).
"""

from __future__ import annotations

import math
import re
from collections import Counter
from itertools import chain, pairwise

_FORMS = {  # name → what stands in each of them, and the form
    "a Hugging Face token": (("hf_", "api_org_"), r"\b(?:hf|api_org)_[A-Za-z0-9]{30,}"),
    "an AWS access key": (
        ("A3T", "AKIA", "ASIA", "ABIA", "ACCA"),
        r"\b(?:A3T[A-Z0-9]|AKIA|ASIA|ABIA|ACCA)[A-Z0-9]{16}\b",
    ),
    "an NVIDIA API key": (("nvapi-",), r"\bnvapi-[\w-]{20,}"),
    "a GitHub token": (
        ("ghp_", "gho_", "ghu_", "ghs_", "ghr_", "github_pat_"),
        r"\b(?:gh[pousr]_[A-Za-z0-9]{36}|github_pat_\w{40,})",
    ),
    "a GitLab token": (
        ("glpat-", "glptt-", "gldt-", "glrt-", "glcbt-", "gloas-"),
        r"\bgl(?:pat|ptt|dt|rt|cbt|oas)-[\w-]{20,}",
    ),
    "an Anthropic key": (("sk-ant-",), r"\bsk-ant-[\w-]{20,}"),
    "an OpenAI key": (
        ("sk-",),
        r"\bsk-(?:(?:proj|svcacct|admin)-[\w-]{20,}|[A-Za-z0-9]{20}T3BlbkFJ\w{20})",
    ),
    "a Google API key": (("AIza",), r"\bAIza[\w-]{35}"),
    "a Slack token": (("xox",), r"\bxox[abeprs]-[\w-]{10,}"),
    "a Pulumi token": (("pul-",), r"\bpul-[a-f0-9]{40}\b"),
    "a JSON Web Token": ((".ey",), r"\bey[A-Za-z0-9]{17,}\.ey[A-Za-z0-9/_-]{17,}\.[\w-]*"),
    "a private key": (("PRIVATE KEY",), r"-----BEGIN[ A-Z0-9_-]{0,100}PRIVATE KEY"),
    "an address with a password": (("://",), r"://[^\s/:@]+:(?!\$)[^\s/@]+@"),
}
_MARKS = tuple(chain.from_iterable(marks for marks, _ in _FORMS.values()))
FORM = re.compile("|".join(form for _, form in _FORMS.values()))
_WORDS = {
    "TOKEN",
    "PASSWORD",
    "PASSWD",
    "PASSPHRASE",
    "SECRET",
    "SECRETS",
    "CREDENTIAL",
    "CREDENTIALS",
    "APIKEY",
    "PAT",
}
_KEYS = {"API", "ACCESS", "SECRET", "PRIVATE", "ENCRYPTION", "SIGNING", "ACCOUNT", "LICENSE"}
# Where the value is, what it is called, or how long it holds: not the value.
_ABOUT = {"FILE", "PATH", "DIR", "NAME", "URL", "ENDPOINT", "TYPE", "TTL", "ID", "LIMIT", "LENGTH"}
_PUBLIC_WORDS = {"REVISION", "COMMIT", "DIGEST", "SHA", "SHA256", "HASH", "CHECKSUM", "VERSION"}
_PLAIN = re.compile(r"(?i)|[\d.]+|true|false|yes|no|on|off|none|null|auto|\$\(\w+\)|[./~].*")
_RANDOM = re.compile(r"[A-Za-z0-9+/_=-]{32,}")
_CLASS = re.compile(r"(?P<lower>[a-z])|(?P<upper>[A-Z])|(?P<digit>\d)")
_HEXADECIMAL = re.compile(r"(?i)[0-9a-f]{32,}")
# Of 32 random letters and digits 97 % have more of both. WordsLikeThese reach the entropy, but
# change less often between lower case, upper case and digits, a word's capital left out.
BITS_PER_CHARACTER = 4.2
CHANGES = 0.28


def form(text: str) -> str | None:
    """What a part of `text` has the form of: `a Hugging Face token`."""
    if not any(map(text.__contains__, _MARKS)):
        return None
    for name, (marks, form) in _FORMS.items():
        if any(mark in text for mark in marks) and re.search(form, text):
            return name
    return None


def likeness(name: str, value: str) -> str | None:
    """Why the value of a variable seems to be a secret, None where nothing says so."""
    if issued := form(value):
        return f"it has the form of {issued}"
    words = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", name).upper().split("_")
    if _PLAIN.fullmatch(value) or words[-1] in _ABOUT:
        return None
    named = _WORDS & set(words) or (words[-1] == "KEY" and _KEYS & set(words[:-1]))
    if named:
        return "its name says so"
    return None if _PUBLIC_WORDS & set(words) else _random(value)


def _random(value: str) -> str | None:
    if _HEXADECIMAL.fullmatch(value):
        return "it is a long hexadecimal number"
    classes = [_CLASS.fullmatch(c) for c in value]
    kinds = [match.lastgroup if match else None for match in classes]
    capital = ("upper", "lower")
    steps = [pair for pair in pairwise(kinds) if None not in pair]
    changes = sum(a != b and (a, b) != capital for a, b in steps) / max(1, len(steps))
    mixed = _RANDOM.fullmatch(value) and {"lower", "upper", "digit"} <= set(kinds)
    random = mixed and changes >= CHANGES and _entropy(value) >= BITS_PER_CHARACTER
    return "it looks random" if random else None


def _entropy(text: str) -> float:
    """Bits per character (Shannon)."""
    parts = (count / len(text) for count in Counter(text).values())
    return -sum(part * math.log2(part) for part in parts)
