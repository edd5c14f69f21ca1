"""Events of the gates that decide which texts may leave the trusted side."""

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar, Final

from privacy.accounting import checks, gate, threshold
from privacy.accounting.composition import gaussian_rho
from privacy.accounting.cost import ADJACENCIES, Adjacency, Cost, Unit
from privacy.accounting.event import Event, EventWords
from privacy.accounting.noise_words import NOISE_WORDS
from privacy.accounting.threshold import ThresholdNoise
from privacy.accounting.units import float_at_least, outward
from privacy.wording import as_message
from privacy.wording import gettext_noop as _

ANY_ADJACENCY: frozenset[Adjacency] = frozenset(ADJACENCIES)

UNIT_WORDS: Final[Mapping[str, str]] = {
    "contributor": as_message("contributor"),
    "record": as_message("record"),
}

# Accuracy of the delta series is 1e-9 at worst; the charge covers it.
_DELTA_MARGIN = 1e-9


def _check_unit(unit: str, texts_per_contributor: int) -> None:
    checks.one_of("unit", unit, ("record", "contributor"))
    checks.at_least("texts_per_contributor", texts_per_contributor, 1)
    if unit == "record" and texts_per_contributor != 1:
        raise ValueError(
            as_message(
                "texts_per_contributor must be 1 for unit record, got {texts_per_contributor}",
                texts_per_contributor=texts_per_contributor,
            )
        )


def _changed_texts(texts_per_contributor: int, adjacency: Adjacency) -> int:
    """Return how many texts a neighbour touches: a replacement takes from some and adds to others."""
    checks.one_of("adjacency", adjacency, ADJACENCIES)
    return texts_per_contributor * (2 if adjacency == "replace" else 1)


class GateEvent(Event):
    """One run of a gate over a pool that stands, whatever its mechanism: all that is released is paid by its cost.

    What is more than such a run is refused unless the event of the gate declares that its cost is proved for it, too.

    Attributes
    ----------
    unit : {"record", "contributor"}
        Whose presence the run hides.
    proved_over_snapshots : bool
        Whether the cost holds for any rows of a table that stays where it is (`GateOfSnapshotEvent`). It may then rest
        on nothing that only an upload has: rows that were checked, counted or compared when they came.
    proved_in_windows : bool
        Whether the cost holds for each of many runs over overlapping uploads (`GateWindowEvent`). It must bound what a
        run tells of one record of any upload, whatever the others hold and whatever came out before; its draws are made
        anew for each run; and its epsilon, delta and rho add up over runs, and by `Cost.of_group` over records.
    """

    __slots__ = ()
    unit: Unit
    proved_over_snapshots: ClassVar[bool] = False
    proved_in_windows: ClassVar[bool] = False


@dataclass(frozen=True, slots=True)
class KAnonymityGateEvent(GateEvent):
    """Each record kept by a secret coin, then texts released whose count in the sample reaches `k`.

    `epsilon` is the point at which the gate's delta is evaluated, for one text. With unit `contributor`, one record per
    (contributor, text) enters and `texts_per_contributor` is the cap that was enforced. `normalizer` names the text
    normalisation, which was fixed beforehand.
    """

    k: int
    sampling_rate: float
    epsilon: float
    unit: Unit = "record"
    texts_per_contributor: int = 1
    normalizer: str = ""
    method: gate.DeltaMethod = "exact"
    kind: ClassVar[str] = "k_anonymity_gate"
    words: ClassVar[EventWords] = EventWords(
        _("k-anonymity gate"),
        _("texts held by at least %(k)s in a secret sample of rate %(sampling_rate)s"),
    )
    valid_for: ClassVar[frozenset[Adjacency]] = ANY_ADJACENCY
    proved_over_snapshots: ClassVar[bool] = True
    proved_in_windows: ClassVar[bool] = True

    def __post_init__(self) -> None:
        """Check the ranges."""
        _check_unit(self.unit, self.texts_per_contributor)
        gate.check_gate(self.k, self.sampling_rate, self.epsilon, self.method)

    @property
    def delta_per_text(self) -> float:
        """Delta of one text under adding or removing one record."""
        delta = gate.gate_delta(self.k, self.sampling_rate, self.epsilon, self.method)
        return min(1.0, float(delta) * (1 + _DELTA_MARGIN))

    def cost(self, *, adjacency: Adjacency = "null") -> Cost:
        """Return (m eps, m delta) for a contributor of at most m texts; twice that for a replacement."""
        return Cost(self.epsilon, self.delta_per_text).times(_changed_texts(self.texts_per_contributor, adjacency))

    def summary(self) -> str:
        """Return one sentence."""
        return as_message(
            "k-anonymity gate with k = {k} on a {sampling_rate:.4g} sample, per {word_unit}",
            k=self.k,
            sampling_rate=self.sampling_rate,
            word_unit=UNIT_WORDS[self.unit],
        )


@dataclass(frozen=True, slots=True)
class ThresholdGateEvent(GateEvent):
    """Texts released when their noisy number of contributions reaches a threshold.

    `noise_scale` is the Laplace scale, the Gaussian sigma, or 1 / epsilon of the truncated geometric; `threshold` is
    the smallest noisy count that comes out. Left at zero, both follow from `epsilon` and `delta`; either way they
    are stored, and the charge is computed from them. `floor` is the smallest true count that can come out. A
    Gaussian gate covers all texts of a contributor at once; the others pay per text.
    """

    epsilon: float
    delta: float
    unit: Unit = "record"
    texts_per_contributor: int = 1
    noise: ThresholdNoise = "laplace"
    floor: int = 1
    noise_scale: float = 0.0
    threshold: float = 0.0
    kind: ClassVar[str] = "threshold_gate"
    words: ClassVar[EventWords] = EventWords(
        _("noisy threshold gate"),
        _("texts whose noisy count reaches %(threshold)s"),
    )
    valid_for: ClassVar[frozenset[Adjacency]] = ANY_ADJACENCY
    proved_over_snapshots: ClassVar[bool] = True
    proved_in_windows: ClassVar[bool] = True

    def __post_init__(self) -> None:
        """Check the ranges and fill in the noise the mechanism has to use."""
        _check_unit(self.unit, self.texts_per_contributor)
        checks.positive("epsilon", self.epsilon)
        checks.delta_in_open_interval("delta", self.delta)
        checks.at_least("floor", self.floor, 1)
        checks.one_of("noise", self.noise, ("laplace", "discrete_laplace", "truncated_geometric", "weighted_gaussian"))
        checks.not_negative("noise_scale", self.noise_scale)
        checks.not_negative("threshold", self.threshold)
        if (self.noise_scale == 0) != (self.threshold == 0):
            raise ValueError(
                as_message(
                    "noise_scale and threshold go together, got {noise_scale} and {threshold}",
                    noise_scale=self.noise_scale,
                    threshold=self.threshold,
                )
            )
        if self.noise_scale == 0:
            scale, level = self._calibrated()
            object.__setattr__(self, "noise_scale", scale)
            object.__setattr__(self, "threshold", level)
        if self.noise == "truncated_geometric" and self.truncation < 0:
            raise ValueError(
                as_message(
                    "threshold must be >= floor = {floor}, got {threshold}", floor=self.floor, threshold=self.threshold
                )
            )

    def _calibrated(self) -> tuple[float, float]:
        scale = threshold.unit_scale(self.epsilon)
        if self.noise == "laplace":
            return scale, threshold.laplace_threshold(self.epsilon, self.delta, self.floor)
        if self.noise == "discrete_laplace":
            return scale, float(threshold.discrete_laplace_threshold(self.epsilon, self.delta, self.floor))
        if self.noise == "truncated_geometric":
            return scale, float(threshold.truncated_geometric_bound(self.epsilon, self.delta) + self.floor)
        return threshold.weighted_gaussian_noise(self.epsilon, self.delta, self.texts_per_contributor, self.floor)

    @property
    def truncation(self) -> int:
        """Largest value of truncated geometric noise."""
        return int(self.threshold) - self.floor

    def cost(self, *, adjacency: Adjacency = "null") -> Cost:
        """Return the charge of the stored noise and threshold, whatever was asked for when they were chosen."""
        copies = _changed_texts(self.texts_per_contributor, adjacency)
        if self.noise == "weighted_gaussian":
            delta = threshold.weighted_gaussian_delta(
                self.epsilon, self.noise_scale, self.threshold, self.texts_per_contributor, self.floor
            )
            rho = min(self.epsilon**2 / 2, gaussian_rho(1.0, self.noise_scale))
            once = Cost(self.epsilon, self._settled(delta), rho=outward(rho))
            return once.of_two_steps() if adjacency == "replace" else once
        decay = 1 / Fraction(self.noise_scale)
        loss = self.epsilon if decay <= Fraction(self.epsilon) else float_at_least(decay)
        if self.noise == "laplace":
            delta = threshold.laplace_delta(self.noise_scale, self.threshold, self.floor)
        elif self.noise == "discrete_laplace":
            delta = threshold.discrete_laplace_delta(self.noise_scale, self.threshold, self.floor)
        else:
            delta = threshold.truncated_geometric_delta(1 / self.noise_scale, self.truncation)
        return Cost(loss, self._settled(delta)).times(copies)

    def _settled(self, delta: float) -> float:
        """Return `delta` with a margin, or the declared value where that is the larger."""
        return self.delta if delta <= self.delta else min(1.0, delta * (1 + _DELTA_MARGIN))

    def summary(self) -> str:
        """Return one sentence."""
        return as_message(
            "threshold gate at {threshold:.4g} with {word_noise} of scale {noise_scale:.4g}, per {word_unit}",
            threshold=self.threshold,
            word_noise=NOISE_WORDS[self.noise],
            noise_scale=self.noise_scale,
            word_unit=UNIT_WORDS[self.unit],
        )
