"""Event of a fit whose spans are counted on records that it did not learn from."""

import math
from dataclasses import dataclass, replace
from typing import ClassVar, Self

from privacy.accounting import checks
from privacy.accounting.cost import ADJACENCIES, Adjacency, Cost
from privacy.accounting.event import Event, EventWords, counted_words
from privacy.accounting.pick import PickedFitEvent
from privacy.accounting.steps import SpanStepsEvent
from privacy.accounting.sums import GRID_DELTA, GRID_EPSILON
from privacy.accounting.training import ANY_ADJACENCY, gaussian_cost
from privacy.accounting.units import outward
from privacy.wording import gettext_noop as _

# Of the noise, kept for rounding of the ratios.
ROUNDING = 1e-9


@dataclass(frozen=True, slots=True)
class MeasuredFitEvent(Event):
    r"""A training on spans, then Gaussian noise of `scale` on how many spans of other records it gets right or wrong.

    A public function of a record's own content says whether it is learned from or held out. Of a held-out record at
    most `spans_per_record` true and as many predicted spans count, as right, missed or spurious. `inner` is Gaussian
    without a delta of its own; `delta` is where both together are charged.
    """

    inner: Event
    spans_per_record: int
    scale: float
    delta: float = 0.0
    kind: ClassVar[str] = "measured_fit"
    words: ClassVar[EventWords] = EventWords(
        _("training with evaluation"),
        _("spans of held-out texts counted with noise, at most %(spans_per_record)s a text"),
    )
    valid_for: ClassVar[frozenset[Adjacency]] = ANY_ADJACENCY

    def __post_init__(self) -> None:
        checks.at_least("spans_per_record", self.spans_per_record, 1)
        checks.positive("scale", self.scale)
        if not 0 <= self.delta < 1:
            raise ValueError(f"delta must lie in [0, 1), got {self.delta}")
        if self._trained.delta or (isinstance(self.inner, PickedFitEvent) and self.inner.delta):
            raise ValueError(f"{self.inner.kind} has a delta of its own")
        if self.inner.gaussian_mu() is None:
            raise ValueError(f"{self.inner.kind} does not compose with Gaussian counts")

    def gaussian_mu(self, *, adjacency: Adjacency = "null") -> float:
        r"""Return how far, in standard deviations, one neighbour moves training and counts together.

        Notes
        -----
        A record that leaves or comes is in one part and moves either the training, by its own ratio, or the counts. Of
        k true and k predicted spans it moves those by at most :math:`\sqrt2k`, where all are wrong; one record
        against another by at most :math:`\sqrt3k`, from all right to all wrong. A replacement may also leave one part
        and come to the other, and then moves both by what a single record does. Adaptive Gaussian mechanisms compose
        by their squared ratios [1]_.

        References
        ----------
        .. [1] Dong, Roth, Su, "Gaussian differential privacy", 2022, Corollary 3.3.
        """
        checks.one_of("adjacency", adjacency, ADJACENCIES)
        counted = counts_sensitivity(self.spans_per_record) / self.scale
        ratios = [_ratio(self.inner, adjacency), counted]
        if adjacency == "replace":
            replaced = counts_sensitivity(self.spans_per_record, adjacency=adjacency) / self.scale
            ratios += [replaced, math.hypot(_ratio(self.inner, "null"), counted)]
        return outward(max(ratios))

    def cost(self, *, adjacency: Adjacency = "null") -> Cost:
        """Return the price of training and counts together."""
        exact = gaussian_cost(self.gaussian_mu(adjacency=adjacency), 1.0, self.delta)
        if self.delta == 0:
            return exact
        return Cost(
            exact.epsilon + self.grids * GRID_EPSILON,
            min(1.0, self.delta * (1 + self.grids * GRID_DELTA)),
            rho=exact.rho,
        )

    @property
    def grids(self) -> int:
        """Releases that are rounded to a grid each: those of the training and the counts."""
        assert isinstance(self.inner, SpanStepsEvent | PickedFitEvent)
        return self.inner.grids + 1

    def in_rho(self) -> Self:
        """Return the same noise without a point of its curve."""
        return replace(self, delta=0.0)

    def summary(self) -> str:
        parts = [
            f"at most {counted_words(self.spans_per_record, 'span')} a held-out record counted at {self.scale:.4g}"
        ]
        if isinstance(self.inner, PickedFitEvent):
            parts.insert(0, f"one of {self.inner.candidates} models picked at {self.inner.scale:.4g}")
        steps = self._trained
        parts.insert(0, f"{counted_words(steps.steps, 'gradient step')} at {steps.sigma:.4g}")
        return f"spans, with Gaussian noise: {'; '.join(parts)}"

    @property
    def _trained(self) -> SpanStepsEvent:
        trained = self.inner.inner if isinstance(self.inner, PickedFitEvent) else self.inner
        if not isinstance(trained, SpanStepsEvent):
            raise ValueError(f"{self.inner.kind} is no training on spans")
        return trained


def counts_sensitivity(spans_per_record: int, *, adjacency: Adjacency = "null") -> float:
    r"""Return the L2 sensitivity of counts of right, missed and spurious spans.

    Notes
    -----
    A record's counts :math:`(c, m, s)` lie in the polytope :math:`c, m, s \ge 0`, :math:`c + m \le k`,
    :math:`c + s \le k`, with the corners 0, (k, 0, 0), (0, k, 0), (0, 0, k) and (0, k, k). The longest of them is
    :math:`\sqrt2k` long, and no two are further apart than (k, 0, 0) and (0, k, k). Norms are convex, so corners
    suffice.
    """
    checks.one_of("adjacency", adjacency, ADJACENCIES)
    return outward(spans_per_record * math.sqrt(3 if adjacency == "replace" else 2))


def measured_fit_event(
    inner: SpanStepsEvent | PickedFitEvent, *, spans_per_record: int, delta: float = 0.0, adjacency: Adjacency = "null"
) -> MeasuredFitEvent:
    """Return a training with counts that have the least noise at which both cost no more than the training.

    Records that are held out pay for the counts, the others for the training.
    """
    trained = inner.in_rho()
    mu = _ratio(trained, adjacency)
    scale = counts_sensitivity(spans_per_record, adjacency=adjacency) / mu
    if adjacency == "replace":
        left = math.sqrt(max(mu**2 - _ratio(trained, "null") ** 2, 0.0))
        if not left:
            raise ValueError("a record that leaves the training already costs as much as one that is replaced")
        scale = max(scale, counts_sensitivity(spans_per_record) / left)
    return MeasuredFitEvent(trained, spans_per_record, scale * (1 + ROUNDING), delta)


def _ratio(event: Event, adjacency: Adjacency) -> float:
    mu = event.gaussian_mu(adjacency=adjacency)
    assert mu is not None
    return mu
