"""Reads numbers from a model's configuration; what is wrong is collected, not raised."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from gpuplan.diagnostics import Diagnostic
from gpuplan.models import messages
from gpuplan.source import Origin

# Above the largest model known by an order of magnitude: a typing error, not a model.
LARGEST = {
    "num_hidden_layers": 2_000,
    "num_attention_heads": 4_096,
    "num_key_value_heads": 4_096,
    "hidden_size": 400_000,
    "head_dim": 8_192,
    "vocab_size": 10_000_000,
    "max_position_embeddings": 1_000_000_000,
    "sliding_window": 1_000_000_000,
}
LARGE = 4_000_000


class Fields:
    """A value that is missing or impossible adds to `problems`, once, and 1 stands in for it so
    that the rest can be read; nothing may be made of the numbers while there are problems."""

    def __init__(
        self,
        config: Mapping[str, Any],
        architecture: str,
        origin: Origin,
        names: Mapping[str, str] = {},
    ) -> None:
        """`names`: what the architecture calls a field that others call differently."""
        self._config = {k: config[v] for k, v in names.items() if v in config} | dict(config)
        self._names = names
        self._architecture = architecture
        self._origin = origin
        self._problems: dict[str, Diagnostic] = {}
        self._within: dict[str, Fields] = {}
        self._silent = False  # of a part that is missing: one problem is enough

    @property
    def problems(self) -> tuple[Diagnostic, ...]:
        if self._silent:
            return ()
        own = tuple(self._problems.values())
        return own + tuple(p for inner in self._within.values() for p in inner.problems)

    def within(
        self, name: str, names: Mapping[str, str] = {}, defaults: Mapping[str, Any] = {}
    ) -> Fields:
        """The fields of the part `name`, which has to be there; problems there are problems
        here."""
        if name not in self._within:
            part = self._config.get(name)
            if not isinstance(part, Mapping):
                self._missing(name) if part is None else self._impossible(name, "a mapping")
                part = None
            at = self._at(name)
            inner = Fields(dict(defaults) | dict(part or {}), self._architecture, at, names)
            inner._silent = part is None
            self._within[name] = inner
        return self._within[name]

    def value(self, name: str) -> object:
        return self._config.get(name)

    def refuse(self, name: str, problem: Callable[[Origin], Diagnostic]) -> None:
        """Report `problem` at the field `name`."""
        self._problems[name] = problem(self._at(name))

    def stated(self, name: str) -> bool:
        return self._config.get(name) is not None

    def whole(self, name: str, default: int | None = None, *, least: int = 1) -> int:
        """A whole number; `default` where the field is absent or null."""
        value = self._config.get(name)
        if value is None:
            return self._missing(name) if default is None else default
        most = LARGEST.get(name, LARGE)
        whole = isinstance(value, int) and not isinstance(value, bool)
        if not whole or not least <= value <= most:
            return self._impossible(name, f"a whole number from {least} to {most:,}")
        return int(value)

    def whole_or_null(self, name: str) -> int | None:
        """A field that has to be there, although it may be null."""
        return None if name in self._config and not self.stated(name) else self.whole(name)

    def share(self, name: str, default: float) -> float:
        """A number above 0, up to 1."""
        value = self._config.get(name)
        if value is None:
            return default
        if not isinstance(value, int | float) or isinstance(value, bool) or not 0.01 <= value <= 1:
            return float(self._impossible(name, "a number from 0.01 to 1"))
        return float(value)

    def flag(self, name: str, *, default: bool = False) -> bool:
        value = self._config.get(name)
        if value is None:
            return default
        if not isinstance(value, bool):
            self._impossible(name, "true or false")
        return value is True

    def must_be(self, name: str, *, value: int | tuple[()] | None) -> None:
        """Refuse another value than the one that can be counted; absent is that value."""
        stated = self._config.get(name)
        if stated is not None and stated != value and not (value == () and stated == []):
            self._impossible(name, str(value).lower())

    def entries(self, name: str, kind: type, wanted: str, length: int | None = None) -> list[Any]:
        """A list of `kind`, empty where the field is absent or null."""
        value = self._config.get(name)
        if value is None:
            return []
        fits = isinstance(value, list) and length in {None, len(value)}
        if not fits or any(type(item) is not kind for item in value):
            self._impossible(name, wanted)
            return []
        return list(value)

    def choices(self, name: str, among: tuple[str, ...], length: int | None = None) -> list[str]:
        """A list of some of the texts `among`, which has to be there; the first stands in for
        others."""
        if not self.stated(name):
            self._missing(name)
            return []
        listed = f"{length} of" if length else "some of"
        wanted = f"a list of {listed} {', '.join(among)}"
        texts = self.entries(name, str, wanted, length)
        if any(text not in among for text in texts):
            self._impossible(name, wanted)
        return [text if text in among else among[0] for text in texts]

    def letters(self, name: str, among: str) -> str:
        """A text of the letters `among`, which has to be there."""
        value = self._config.get(name)
        if value is None:
            self._missing(name)
            return ""
        if not isinstance(value, str) or not value or set(value) - set(among):
            self._impossible(name, f"a text of the letters {' '.join(among)}")
            return ""
        return value

    def mapping(self, name: str) -> Mapping[str, Any]:
        """A mapping, empty where the field is absent or null."""
        value = self._config.get(name)
        if value is None or isinstance(value, Mapping):
            return value or {}
        self._impossible(name, "a mapping")
        return {}

    def multiple(self, name: str, value: int, part: str, divisor: int) -> int:
        """`value / divisor`, which has to be whole."""
        if value % divisor and self.sound(name, part):
            where = self._at(name)
            self._problems[name] = messages.not_a_multiple(name, value, part, divisor, where)
        return value // divisor

    def at_most(self, name: str, value: int, of: str, total: int) -> None:
        if value > total and self.sound(name, of):
            where = self._at(name)
            self._problems[name] = messages.more_than_there_are(name, value, of, total, where)

    def sound(self, *names: str) -> bool:
        """Whether nothing was found wrong with these fields."""
        return not self._problems.keys() & set(names)

    def _at(self, name: str) -> Origin:
        return self._origin.child(self._names.get(name, name))

    def _missing(self, name: str) -> int:
        where, stated = self._at(name), self._names.get(name, name)
        self._problems[name] = messages.missing_field(stated, self._architecture, where)
        return 1

    def _impossible(self, name: str, wanted: str) -> int:
        where = self._at(name)
        value = self._config[name]
        stated = self._names.get(name, name)
        self._problems[name] = messages.impossible_value(stated, value, wanted, where)
        return 1
