"""Events of noisy counts: how many records a model gets right, spans it finds, and records by class."""

import math
from dataclasses import dataclass, replace
from typing import ClassVar, Literal, Self

from privacy.accounting import checks
from privacy.accounting.composition import bounded_range_rho
from privacy.accounting.cost import ADJACENCIES, Adjacency, Cost, outward
from privacy.accounting.event import NOISE_WORDS, Event, EventWords, counted_words
from privacy.accounting.series import SecretBlockEvent, SecretSeriesEvent
from privacy.accounting.steps import GradientStepsEvent, SpanStepsEvent
from privacy.accounting.sums import GRID_DELTA, GRID_EPSILON, SumsEvent
from privacy.accounting.training import ANY_ADJACENCY, SecretSampleEvent, gaussian_cost, records_moved
from privacy.wording import gettext_noop as _
from privacy.wording import ngettext_noop

PickNoise = Literal["gaussian", "exponential"]
MOST_CANDIDATES = 100
MOST_CELLS = 1_000_000
# Of the noise, kept for rounding of the ratios.
ROUNDING = 1e-9


@dataclass(frozen=True, slots=True)
class PickedFitEvent(Event):
    r"""A training, then one of `candidates` models picked by a noisy count of the same rows that each gets right.

    The candidates are made of public models and of what the training released. Gaussian noise of deviation `scale` is
    on the difference of each count to that of the first candidate; `inner` then is Gaussian as well, without a delta
    of its own, and `delta` is where both together are charged. Or a candidate is drawn with probability proportional
    to :math:`e^{s u}`, s the `scale` and u its count.
    """

    inner: Event
    candidates: int
    scale: float
    noise: PickNoise = "gaussian"
    delta: float = 0.0
    kind: ClassVar[str] = "picked_fit"
    words: ClassVar[EventWords] = EventWords(
        _("training with model selection"),
        _("best of %(candidates)s models by noisy counts"),
    )
    valid_for: ClassVar[frozenset[Adjacency]] = ANY_ADJACENCY

    def __post_init__(self) -> None:
        checks.at_least("candidates", self.candidates, 2)
        checks.positive("scale", self.scale)
        checks.one_of("noise", self.noise, ("gaussian", "exponential"))
        if self.candidates > MOST_CANDIDATES:
            raise ValueError(f"candidates must be at most {MOST_CANDIDATES}, got {self.candidates}")
        if not 0 <= self.delta < 1:
            raise ValueError(f"delta must lie in [0, 1), got {self.delta}")
        amplified = isinstance(self.inner, PickedFitEvent | SecretSampleEvent | SecretBlockEvent | SecretSeriesEvent)
        if amplified or self.inner.needs_parent or getattr(self.inner, "unit", "record") != "record":
            raise ValueError(f"{self.inner.kind} is no training whose fit can be picked")
        composes = isinstance(self.inner, SumsEvent | GradientStepsEvent) and self.inner.delta == 0
        if self.noise == "gaussian" and not composes:
            raise ValueError(f"{self.inner.kind} does not compose with Gaussian counts")
        if self.noise == "exponential" and self.delta:
            raise ValueError(f"delta must be 0 for {NOISE_WORDS['exponential']}, got {self.delta}")

    def gaussian_mu(self, *, adjacency: Adjacency = "null") -> float | None:
        r"""Return how far, in standard deviations, one neighbour moves the training and the counts together.

        Notes
        -----
        A row that leaves or comes moves each of the :math:`m - 1` differences by at most 1, so all of them by
        :math:`\sqrt{m-1}`; a row against another is both. The candidates follow from the training's outputs, so this is
        an adaptive composition of Gaussian mechanisms: squares of ratios add up [1]_.

        References
        ----------
        .. [1] Dong, Roth, Su, "Gaussian differential privacy", 2022, Corollary 3.3.
        """
        trained = self.inner.gaussian_mu(adjacency=adjacency)
        if self.noise != "gaussian" or trained is None:
            return None
        moved = records_moved(adjacency) * math.sqrt(self.candidates - 1)
        return outward(math.hypot(trained, moved / self.scale))

    def cost(self, *, adjacency: Adjacency = "null") -> Cost:
        r"""Return the price of training and pick together.

        Notes
        -----
        A row that leaves or comes moves all counts the same way, by 1 at most, so weights change by a factor in
        :math:`[1, e^s]` and their sum, too: the draw costs s, and its losses lie within a range of s.
        """
        mu = self.gaussian_mu(adjacency=adjacency)
        if mu is None:
            return self.inner.cost(adjacency=adjacency).plus(self.drawing_cost(adjacency=adjacency))
        exact = gaussian_cost(mu, 1.0, self.delta)
        if self.delta == 0:
            return exact
        return Cost(
            exact.epsilon + self.grids * GRID_EPSILON,
            min(1.0, self.delta * (1 + self.grids * GRID_DELTA)),
            rho=exact.rho,
        )

    def drawing_cost(self, *, adjacency: Adjacency) -> Cost:
        """Return the price of the draw alone."""
        drawn = outward(records_moved(adjacency) * self.scale)
        return Cost(drawn, rho=outward(bounded_range_rho(drawn)))

    @property
    def grids(self) -> int:
        """Releases that are rounded to a grid each: those of the training and the counts."""
        return self.inner.grids + 1 if isinstance(self.inner, SumsEvent | GradientStepsEvent) else 0

    def in_rho(self) -> Self:
        """Return the same noise without a point of its curve."""
        return replace(self, inner=self.inner.in_rho(), delta=0.0)

    def summary(self) -> str:
        noise = f"{NOISE_WORDS[self.noise]} of {self.scale:.4g}"
        return f"{self.inner.summary()}; one of {self.candidates} models picked by counts with {noise}"


def picked_fit_event(
    inner: Event, *, candidates: int, share: float, delta: float = 0.0, adjacency: Adjacency = "null"
) -> PickedFitEvent:
    """Return a Gaussian training with a pick that has `share` of the squared ratio of both."""
    trained = inner.in_rho()
    mu = trained.gaussian_mu(adjacency=adjacency)
    if mu is None or not 0 < share < 1:
        raise ValueError(f"share must lie in (0, 1), got {share}")
    scale = records_moved(adjacency) * math.sqrt((candidates - 1) * (1 - share) / share) / mu
    return PickedFitEvent(trained, candidates, scale, delta=delta)


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


@dataclass(frozen=True, slots=True)
class ClassCountsEvent(Event):
    r"""Discrete Laplace noise of `scale` on each of `cells` counts, where a record counts in at most `counted` cells.

    The prediction of a record is one cell; its label against its prediction is two where they differ.
    """

    cells: int
    counted: int
    scale: float
    kind: ClassVar[str] = "class_counts"
    words: ClassVar[EventWords] = EventWords(
        _("class counts"),
        ngettext_noop("noisy counts of %(cells)s cell", "noisy counts of %(cells)s cells"),
        counted="cells",
    )
    valid_for: ClassVar[frozenset[Adjacency]] = ANY_ADJACENCY

    def __post_init__(self) -> None:
        checks.at_least("cells", self.cells, 1)
        checks.at_least("counted", self.counted, 1)
        checks.positive("scale", self.scale)
        if self.cells > MOST_CELLS or self.counted > self.cells:
            raise ValueError(
                f"counted must be at most cells and cells at most {MOST_CELLS}, got {self.counted} of {self.cells}"
            )

    def cost(self, *, adjacency: Adjacency = "null") -> Cost:
        r"""Return the pure loss.

        Notes
        -----
        A record that leaves or comes moves `counted` cells by 1 each, so the L1 sensitivity is `counted`; a record
        against another moves twice as many. The discrete Laplace law changes by a factor of at most
        :math:`e^{\Delta_1 / \mathrm{scale}}`. In rho that is half the square.
        """
        return Cost(outward(records_moved(adjacency) * self.counted / self.scale))

    def summary(self) -> str:
        return f"{counted_words(self.cells, 'count')} of records with discrete Laplace noise of {self.scale:.4g}"


def class_counts_event(epsilon: float, *, cells: int, counted: int, adjacency: Adjacency = "null") -> ClassCountsEvent:
    """Return the event of the least noise whose cost under `adjacency` is at most `epsilon`.

    Raises
    ------
    ValueError
        If a parameter is out of range.
    """
    checks.positive("epsilon", epsilon)
    # One part in 2**44 is more than the outward rounding of the cost.
    scale = records_moved(adjacency) * counted / epsilon * (1 + 2.0**-44)
    return ClassCountsEvent(cells, counted, scale)
