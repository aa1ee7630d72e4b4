"""What points explain of each other: the weights of their kernels.

Gaussian-process regression with known amplitudes (Rasmussen and Williams 2006, algorithm 2.1). A
point far from its neighbours gets more noise, three times over, as if errors had Student's tails.
One matrix is inverted for all points: what some of them say without the others, and with more
noise, follows from its parts (Rasmussen and Williams 2006, appendix A.3). Needs numpy.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from gpuplan.sizing.calibration.anchors import Features, Term
from gpuplan.sizing.calibration.gaussian import NOBODYS

if TYPE_CHECKING:
    from gpuplan.accuracy.points.points import Point
    from gpuplan.accuracy.reckon import Prior, Reckoned

ROUNDS = 3
TAIL = 4.0  # degrees of freedom


@dataclass(frozen=True)
class Explained:
    """Points with the usual noise: `errors`, ln(measured / formula), and the `inverse` of their
    covariances, (points, points); `noise` is a standard deviation."""

    errors: Any
    inverse: Any
    noise: float

    @classmethod
    def of(cls, pairs: Sequence[tuple[Point, Reckoned]], prior: Prior) -> Explained:
        import numpy as np

        errors = np.array([reckoned.error(point.value) for point, reckoned in pairs])
        kernel = covariances(prior.terms, [reckoned.features for _, reckoned in pairs])
        inverse = np.linalg.inv(kernel + prior.noise**2 * np.eye(len(pairs)))
        return cls(errors, (inverse + inverse.T) / 2, prior.noise)

    def among(self, places: Sequence[int]) -> Explained:
        """The same of some points, as if there were no others."""
        import numpy as np

        kept = np.asarray(places)
        gone = np.setdiff1d(np.arange(len(self.errors)), kept)
        inner, across = self.inverse[np.ix_(gone, gone)], self.inverse[np.ix_(gone, kept)]
        inverse = self.inverse[np.ix_(kept, kept)] - across.T @ np.linalg.solve(inner, across)
        return Explained(self.errors[kept], inverse, self.noise)

    def weights(self) -> tuple[Any, Any]:
        """The weight of each point, and its noise in variances of the usual one."""
        import numpy as np

        usual = self.inverse @ self.errors
        weights, spread = usual, np.ones(len(self.errors))
        for _ in range(ROUNDS):
            rest = self.noise * spread * weights  # of an error, what the others do not explain
            spread = np.maximum(1, (TAIL + rest**2) / (TAIL + 1))
            far = np.flatnonzero(spread > 1)
            wider = np.diag(1 / (self.noise**2 * (spread[far] - 1)))
            columns = self.inverse[:, far]
            weights = usual - columns @ np.linalg.solve(wider + columns[far], usual[far])
        return weights, spread


def together(features: Features, same: Sequence[str]) -> str:
    return "|".join([str(features[name]) for name in same])


def covariances(terms: Sequence[Term], features: Sequence[Any]) -> Any:
    """The kernel's matrix, (points, points)."""
    import numpy as np

    total = np.zeros((len(features), len(features)))
    for term in terms:
        names = [together(f, term.same) for f in features]
        number = {name: n for n, name in enumerate(sorted(set(names)))}
        codes = np.array([number[n] for n in names])
        known = np.array([all(f[name] != NOBODYS for name in term.same) for f in features])
        part = np.where(codes[:, None] == codes[None, :], term.amplitude**2, 0.0)
        part *= np.outer(known, known)
        for name, length in term.scales:
            place = np.array([float(f[name]) for f in features]) / length
            part *= np.exp(-((place[:, None] - place[None, :]) ** 2) / 2)
        total += part
    return total
