"""A conditional random field over spans by a few noisy gradient steps, each record clipped as a whole."""

import hashlib
import math
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass
from typing import Any, ClassVar, Final, Self, cast

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator

from annotation.choices.label_types.base import Teaching
from annotation.choices.label_types.spans import MarkSpans
from dpal.recompute.pick import GRID, picked
from dpal.recompute.span_crf import span_crf, span_start
from dpal.recompute.transcript import Transcript
from dpal.spans.features import SpanFeatures
from dpal.spans.model import FoundSpan, SpanModel
from dpal.spans.text import Span, canonical, tags
from learner.estimators.choice import GaussianChoice, Shape
from learner.estimators.descriptions import PublicWords
from learner.estimators.pick import FLATTERY, ROUNDING, SHARE
from learner.linear_model import LinearModel, Multiclass
from privacy.accounting import checks
from privacy.accounting.composition import gaussian_epsilon
from privacy.accounting.cost import ADJACENCIES, Adjacency
from privacy.accounting.counts import MeasuredFitEvent, PickedFitEvent, measured_fit_event, picked_fit_event
from privacy.accounting.steps import SpanStepsEvent, span_steps_event
from privacy.accounting.sums import GRID_DELTA, GRID_EPSILON
from privacy.choices import Sound, parameter
from privacy.mechanisms.pick import bar_of
from privacy.mechanisms.randomness import RandomSource, random_source
from privacy.mechanisms.session import Measurement, MeasuringSession
from privacy.mechanisms.span_counts import span_counts_queries
from privacy.mechanisms.span_steps import TaggedRecords, rounding_slack, span_pick_queries, span_queries
from privacy.wording import gettext_noop as _

PROGRAM: Final = "span_crf"
# Of a text that is held out, how many true and how many predicted spans count.
COUNTED_SPANS: Final = 8


@dataclass(eq=False, repr=False)
class PrivateSpanCrf(BaseEstimator):  # type: ignore[misc]
    r"""Follow noisy gradients of the log-likelihood of a linear-chain conditional random field, each over all records.

    A record is its first 32 tokens, each with one type or none. Its gradient in emissions and transitions is clipped
    together, so its number of spans costs nothing, and types are not paid for one by one.

    Parameters
    ----------
    epsilon, delta : float
        What the release may cost, epsilon > 0, 0 < delta < 1: a point on the Gaussian mechanism's exact curve.
    types : sequence of distinct str
        Declared beforehand.
    features : SpanFeatures, optional
        Public tables of words; the price does not need them.
    steps : int
        Noisy gradients, >= 1; noise grows with the root of their number.
    clip : float
        Longest gradient of a record, > 0.
    adjacency : {"null", "add_remove", "replace"}
        The neighbours for which epsilon is meant.
    prior : ndarray of shape (K, d + K), optional
        Weights of a public or released model to start from, K the number of types and one.
    before : ndarray of shape (K, d + K), optional
        Weights of a public or released model that the fit is released in place of, as far as noisy counts of texts that
        are tagged right say that it is better.
    held_out_share : float
        Share of the texts that are not learned from, in [0, 1): their spans are counted with noise, right, missed and
        spurious. A text's own content says whether it is among them. The price does not rise.
    random_state : None, int, numpy.random.Generator or RandomSource
        None draws from the operating system. A seed makes a simulation without any guarantee.

    Attributes
    ----------
    model_ : SpanModel
    transcript_ : Transcript
        All answers that the weights were made of.
    privacy_event_ : SpanStepsEvent, PickedFitEvent or MeasuredFitEvent
    simulated_ : bool
        True if the noise came from a seed.

    References
    ----------
    .. [1] Lafferty, McCallum, Pereira, "Conditional random fields", 2001.
    .. [2] Abadi, Chu, Goodfellow, McMahan, Mironov, Talwar, Zhang, "Deep learning with differential privacy", 2016
       (with every record in each step, and noise that composes exactly).
    """

    epsilon: float
    _: KW_ONLY
    types: Sequence[str]
    features: SpanFeatures | None = None
    delta: float = 1e-6
    steps: int = 20
    clip: float = 0.5
    adjacency: Adjacency = "null"
    prior: NDArray[np.float64] | None = None
    before: NDArray[np.float64] | None = None
    held_out_share: float = 0.0
    random_state: RandomSource | np.random.Generator | int | None = None

    on_step: Callable[[int, int], None] | None = None
    multiclass: ClassVar[Multiclass] = "spans"

    @property
    def releasable(self) -> bool:
        return not getattr(self, "simulated_", True)

    def leaning(self, words: PublicWords) -> LinearModel | None:
        """Return nothing: words of spans are read by `span_version_zero`."""
        return None

    def event_for(self, n_features: int | None = None) -> SpanStepsEvent | PickedFitEvent | MeasuredFitEvent:
        """Return what learning must be charged, before any record is read; features of whole texts take no part."""
        checks.positive("epsilon", self.epsilon)
        checks.one_of("adjacency", self.adjacency, ADJACENCIES)
        if len(set(self.types)) != len(self.types) or not self.types:
            raise ValueError(f"types must be distinct, at least one, got {len(self.types)}")
        n_tags = len(self.types) + 1
        if not self.clip > 2 * rounding_slack(n_tags):
            raise ValueError(f"clip must be > {2 * rounding_slack(n_tags):.3g}, got {self.clip}")
        if not 0 <= self.held_out_share < 1:
            raise ValueError(f"held_out_share must lie in [0, 1), got {self.held_out_share}")
        if not self.held_out_share:
            return self._fit_event(self.epsilon, self.delta)
        # What the grid of the counts is charged is left to them.
        kept = 1 - max(ROUNDING, 3 * GRID_EPSILON / self.epsilon)
        fit = self._fit_event(kept * self.epsilon, self.delta * (1 - 2 * GRID_DELTA))
        return measured_fit_event(fit, spans_per_record=COUNTED_SPANS, delta=fit.delta, adjacency=self.adjacency)

    def _fit_event(self, epsilon: float, delta: float) -> SpanStepsEvent | PickedFitEvent:
        whole = self._steps_event(epsilon, delta)
        if self.before is None:
            return whole
        kept = 1 - max(ROUNDING, 3 * GRID_EPSILON / epsilon)
        ratio = kept * whole.gaussian_mu(adjacency=self.adjacency) * (1 - SHARE) ** 0.5
        inner = gaussian_epsilon(ratio, whole.delta) + whole.grids * GRID_EPSILON
        return picked_fit_event(
            self._steps_event(inner, delta * (1 - 2 * GRID_DELTA)),
            candidates=len(GRID),
            share=SHARE,
            delta=whole.delta * (1 - 2 * GRID_DELTA),
            adjacency=self.adjacency,
        )

    def _steps_event(
        self, epsilon: float, delta: float, *, n_features: int = SpanFeatures.n_features
    ) -> SpanStepsEvent:
        n_tags = len(self.types) + 1
        return span_steps_event(
            epsilon,
            delta,
            steps=self.steps,
            dimension=n_features + n_tags,
            n_tags=n_tags,
            clip=self.clip,
            adjacency=self.adjacency,
        )

    def fit(self, X: Sequence[str], y: Sequence[Sequence[Span]]) -> Self:
        """Learn from texts and their spans; those beyond the first 32 tokens count for nothing."""
        whole, rng = self.event_for(), random_source(self.random_state)
        event = whole.inner if isinstance(whole, MeasuredFitEvent) else whole
        steps = cast(SpanStepsEvent, event.inner if isinstance(event, PickedFitEvent) else event)
        if self.features is None:
            raise ValueError("features must be given")
        measured = [held_out(text, self.held_out_share) for text in X]
        taught, held = (
            [(text, own) for text, own, out in zip(X, y, measured, strict=True) if out == wanted]
            for wanted in (False, True)
        )
        records = tagged_records([text for text, _ in taught], [own for _, own in taught], self.types, self.features)
        session = MeasuringSession(span_queries(records, steps, rng=rng))
        program, public = PROGRAM, self._public(steps)
        weights = span_crf(public, session, self.on_step or (lambda done, total: None))
        answers = tuple(session.record)
        if isinstance(event, PickedFitEvent):
            program, public = "picked", self._public_pick(event, public, count=float(answers[0].answer[0]))
            session = MeasuringSession(span_pick_queries(records, event, rng=rng))
            weights = picked(public, weights, session)
            answers += tuple(session.record)
        if isinstance(whole, MeasuredFitEvent):
            program, public = "measured", {"program": program, "fit": public}
            answers += self._counts(weights.coef, held, whole, rng)
        self.coef_, self.intercept_ = weights.coef, weights.intercept
        self.model_ = SpanModel(tuple(self.types), weights.coef, self.features)
        self.transcript_ = Transcript(program, public, answers)
        self.privacy_event_, self.simulated_ = whole, rng.simulated
        return self

    def _counts(
        self,
        coef: NDArray[np.float64],
        held: Sequence[tuple[str, Sequence[Span]]],
        event: MeasuredFitEvent,
        rng: RandomSource,
    ) -> tuple[Measurement, ...]:
        types, features = tuple(self.types), self.features
        assert features is not None

        def find(weights: NDArray[np.float64], texts: Sequence[str]) -> list[list[Span]]:
            found = SpanModel(types, weights, features).predict(texts)
            return [[Span(span.start, span.end, span.type) for span in spans] for spans in found]

        texts, truths = [text for text, _ in held], [canonical(own, text=text) for text, own in held]
        if unknown := {span.type for own in truths for span in own} - set(types):
            raise ValueError(f"span types must be among {sorted(types)}, got {sorted(unknown)}")
        session = MeasuringSession(span_counts_queries(texts, truths, types, event, find=find, rng=rng))
        session.ask("span_counts", coef)
        return tuple(session.record)

    def _public(self, event: SpanStepsEvent) -> dict[str, Any]:
        return {
            "steps": event.steps,
            "dimension": event.dimension,
            "n_classes": event.n_classes,
            "sigma": event.sigma,
            "prior": None if self.prior is None else {"coef": self.prior},
        }

    def _public_pick(self, event: PickedFitEvent, fit: dict[str, Any], *, count: float) -> dict[str, Any]:
        assert self.before is not None
        before = {"coef": self.before, "intercept": np.zeros(len(self.before)), "multiclass": PROGRAM}
        # A fit tags its own texts right more often than others.
        flattery = FLATTERY * math.sqrt(max(count, 0.0))
        return {"program": PROGRAM, "fit": fit, "bar": bar_of(event), **before} | {
            "fit_multiclass": PROGRAM,
            "flattery": flattery,
        }

    def predict(self, X: Sequence[str]) -> list[tuple[FoundSpan, ...]]:
        """Return the spans of each text with their scores."""
        return self.model_.predict(X)


def held_out(text: str, share: float) -> bool:
    """Say whether a text is held out: the same for each release, and for texts that differ in case or space alone."""
    plain = " ".join(text.casefold().split()).encode("utf-8", "surrogatepass")
    return int.from_bytes(hashlib.sha256(plain).digest()[:8]) < share * 2**64


def tagged_records(
    texts: Sequence[str], spans: Sequence[Sequence[Span]], types: Sequence[str], features: SpanFeatures
) -> TaggedRecords:
    """Return the features and tags of texts; `ValueError`, which quotes no text, if spans are refused."""
    rows = [features.rows(text) for text in texts]
    tagged = [tag for text, own in zip(texts, spans, strict=True) for tag in tags(text, own, types)]
    together = np.concatenate(rows) if rows else np.zeros((0, features.n_features), dtype=np.int16)
    return TaggedRecords(together, np.array([len(own) for own in rows], dtype=np.int64), np.array(tagged, np.int64))


@dataclass(frozen=True)
class SpanCrf(GaussianChoice):
    """Conditional random field over spans, as projects choose it; every fit is picked against the model before it."""

    name: ClassVar[str] = "span_crf"
    label: ClassVar[str] = _("conditional random field over spans, noisy gradient descent (ε, δ)")
    words: ClassVar[str] = _("conditional random field over spans, noisy gradient descent (ε, δ)")
    learns: ClassVar[Collection[Teaching]] = (Teaching.SPANS,)
    sound: ClassVar[Sound] = MarkSpans.sound

    held_out_share: float = parameter(
        0.0,
        at_least=0,
        at_most=0.5,
        charged=True,
        label=_("Share held out for evaluation"),
        help=_("Texts counted with noise instead of learned from; epsilon does not rise. 0 for none."),
    )

    def estimator(self, shape: Shape) -> PrivateSpanCrf:
        n_tags = len(shape.classes) + 1
        prior = None if shape.prior is None else shape.prior.coef
        return PrivateSpanCrf(
            self.training_epsilon,
            types=[str(each) for each in shape.classes],
            delta=self.training_delta,
            prior=prior,
            before=span_start(n_tags, SpanFeatures.n_features) if prior is None else prior,
            held_out_share=self.held_out_share,
        )

    def rules(self, settings: Mapping[str, Any]) -> Mapping[str, str]:
        broken = dict(super().rules(settings))
        if settings.get("features", "static_encoder") not in ("static_encoder", "planned"):
            broken["features"] = _("Spans need the sentence encoder of the site.")
        return broken
