"""A classifier from running sums: with every batch of a stream a new version, made of all batches so far."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import KW_ONLY, asdict, dataclass, field
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from annotation.choices.label_types.base import Teaching
from dpal.recompute.running_sums import RunningTotal
from dpal.recompute.sums import best_model, released_sums
from dpal.recompute.transcript import Session, Transcript, Weights, packed, unpacked
from learner.estimators.choice import Shape, SumsChoice
from learner.estimators.descriptions import PublicWords
from learner.estimators.linear import prior_weights, refuse_longer_rows
from learner.estimators.streaming import AnsweredBatch, StreamingLinearClassifier, public_start
from learner.linear_model import LinearModel
from privacy.accounting import checks
from privacy.accounting.cost import Adjacency
from privacy.accounting.sums import MOST_UPDATES, PARTS, RunningSumsEvent, charged_delta, running_sums_event, sums_mu
from privacy.arrays import Array
from privacy.choices import Sound, parameter
from privacy.mechanisms.randomness import RandomSource, random_source
from privacy.mechanisms.running_sums import running_queries
from privacy.mechanisms.session import Measurement, MeasuringSession, Queries, public_seed
from privacy.mechanisms.sums import FloatRows, Members
from privacy.wording import gettext_noop as _

# A public constant beside each row, as `PrivateSums` has it.
CONSTANT = 0.3


@dataclass(eq=False, repr=False)
class RunningSums(StreamingLinearClassifier):
    r"""Release the sums of all batches so far with every batch, and make the best model of them.

    Each batch enters all later releases of its epoch under falling public coefficients, so the price of a record grows
    with the logarithm of `updates`, and so does the noise of a total, which would otherwise grow with their number.

    Parameters
    ----------
    epsilon, delta : float
        What all releases together may cost, epsilon > 0, 0 < delta < 1, however many epochs there are.
    classes : sequence of at least two distinct labels
        Declared beforehand.
    updates : int
        Batches of an epoch, 1 to 1,024. A record is in one epoch; the next one adds noise of its own.
    batch_size : int
        Rows of a batch of `fit`, >= 1.
    moment_share, norm_bound, intercept_scaling, adjacency, random_state
        As in `PrivateSums`.

    Attributes
    ----------
    coef_, intercept_, classes_, updates_, privacy_event_, simulated_
        See `StreamingLinearClassifier`.

    References
    ----------
    .. [1] Henzinger, Upadhyay, Upadhyay, "Almost tight error bounds on differentially private continual counting",
       2023.
    .. [2] Denisov, McMahan, Rush, Smith, Thakurta, "Improved differential privacy for SGD via optimal private linear
       operators on adaptive streams", 2022 (batches that depend on earlier releases).
    .. [3] Dvijotham, McMahan, Pillutla, Steinke, Thakurta, "Efficient and near-optimal noise generation for streaming
       differential privacy", 2024 (few decaying buffers).
    """

    reads_again: ClassVar[bool] = True
    fit_intercept = True
    program = "running_sums"

    privacy_event_: RunningSumsEvent = field(init=False)
    _total: RunningTotal = field(init=False)
    _prior: LinearModel | None = field(init=False)
    _model: Weights | None = field(init=False)
    _start: RunningTotal | None = field(init=False)
    _record: list[Measurement] = field(init=False)
    _seed: Measurement = field(init=False)
    epsilon: float = 1.0
    _: KW_ONLY
    delta: float = 1e-6
    classes: Any = None
    updates: int = 64
    batch_size: int = 50
    moment_share: float = 0.05
    norm_bound: float = 1.0
    intercept_scaling: float = CONSTANT
    adjacency: Adjacency = "null"
    random_state: RandomSource | np.random.Generator | int | None = None

    def fit(self, X: ArrayLike, y: ArrayLike) -> Self:
        """Start anew and release after every `batch_size` rows, in their order; their number is public."""
        rows, labels = self._validated(X, y)
        simulated = random_source(self.random_state).simulated
        learned = self.classes is None and simulated
        self._begin(rows.shape[1], self._learned_classes(labels) if learned else self._declared_classes())
        starts = range(0, len(rows), self.batch_size)
        batches = [(rows[start : start + self.batch_size], labels[start : start + self.batch_size]) for start in starts]
        for number in range(len(batches)):
            self.update([batches[each] for each in range(self.first_read(number), number + 1)])
        return self

    def first_read(self, number: int) -> int:
        """Return the first batch, all counted from 0, of the epoch that has batch `number`: sums add all of it up."""
        return number - number % self.updates

    def first_model(self, words: PublicWords) -> LinearModel | None:
        """Return version 0, of names alone where there are more than two: of two classes their names say too little."""
        named = words.knows_names and len(words.classes) > 2
        return words.model() if named or words.enough_examples else None

    def learn_batches(self, batches: Sequence[AnsweredBatch], *, new: int) -> Self:
        """Release the sums of an epoch with each new batch; the first of all batches begins an epoch."""
        read = [(batch.rows, batch.classes) for batch in batches]
        for place in range(len(read) - new, len(read)):
            self.update(read[self.first_read(place) : place + 1])
        return self

    def update(self, batches: Sequence[tuple[ArrayLike, ArrayLike]]) -> Self:
        """Release the sums of an epoch so far, once its newest batch is full, and make the model of all of it.

        Parameters
        ----------
        batches : sequence of (rows, labels)
            All batches of the epoch, oldest first, possibly empty, as they were when each was released.

        Raises
        ------
        ValueError
            If it is not the turn of as many batches, or a row or a label is not as declared.
        """
        if len(batches) != self._total.place + 1:
            raise ValueError(f"the epoch waits for {self._total.place + 1} batches, got {len(batches)}")
        session = MeasuringSession(self._release_queries(batches))
        self._total = self._add_release(self._parameters(), session)
        self._record += session.record
        self.updates_ += 1
        self._model = None
        return self

    def begin_version(self) -> Self:
        """Record from here on: what the version before was made of is in its transcript."""
        self._start, self._record = self._total, []
        return self

    @property
    def transcript_(self) -> Transcript:  # type: ignore[override]  # nobody sets it
        """All answers since the version before, and the total it was made of."""
        self._weights()
        return Transcript(self.program, self._parameters(), (*self._record, self._seed))

    def start_from(self, coef: ArrayLike, intercept: ArrayLike) -> Self:
        """Lean on weights that public examples alone have led to."""
        n_features = np.shape(coef)[-1] if np.ndim(coef) else 1
        self.start(n_features)
        shape = self._n_vectors(len(self.classes_)), n_features
        weights, offsets = public_start(coef, intercept, shape=shape)
        self._prior = LinearModel(weights, offsets, tuple(map(str, self.classes_)), "softmax")
        return self

    def state(self) -> dict[str, Any]:
        return {
            "total": packed(asdict(self._total)),
            "transcript": self.transcript_.to_json(),
            "coef": self.coef_.tolist(),
            "intercept": self.intercept_.tolist(),
            "prior": None if self._prior is None else self._prior.to_json(),
            "updates": self.updates_,
            "n_features": self.n_features_in_,
            "classes": self.classes_.tolist(),
            "simulated": self.simulated_,
        }

    def resume(self, state: Mapping[str, Any]) -> Self:
        self._begin(int(state["n_features"]), np.array(state["classes"]))
        transcript = Transcript.from_json(state["transcript"])
        *record, seed = (Measurement(*answer) for answer in transcript.answers)
        start = transcript.parameters["start"]
        self._total, self._record, self._seed = RunningTotal(**unpacked(state["total"])), record, seed
        self._start = None if start is None else RunningTotal(**start)
        self._prior = None if state["prior"] is None else LinearModel.from_json(state["prior"])
        self._model = Weights(np.array(state["coef"]), np.array(state["intercept"]))
        self.updates_ = int(state["updates"])
        self.simulated_ = bool(state["simulated"]) or self._source.simulated
        return self

    def _begin(self, n_features: int, classes: NDArray[Any]) -> None:
        super()._begin(n_features, classes)
        self._prior, self._model = None, None
        self._start, self._record, self._seed = None, [], public_seed(self._source)
        self._total = RunningTotal.empty(self._parameters())

    @property
    def coef_(self) -> Array:  # type: ignore[override]  # nobody sets it
        return self._weights().coef

    @property
    def intercept_(self) -> Array:  # type: ignore[override]  # nobody sets it
        return self._weights().intercept

    def _weights(self) -> Weights:
        if not hasattr(self, "_total"):
            raise AttributeError("a model is there once sums were begun")
        if self._model is None:
            self._model = self._made()
        return self._model

    def _made(self) -> Weights:
        if not self.updates_:
            if self._prior is not None:
                return Weights(self._prior.coef, self._prior.intercept)
            vectors = self._n_vectors(len(self.classes_))
            return Weights(np.zeros((vectors, self.n_features_in_)), np.zeros(vectors))
        self._seed = public_seed(self._source)
        public = self._parameters()
        return best_model(public, self._total.sums(public), self._seed.answer)[1]

    def _add_release(self, public: dict[str, Any], session: Session) -> RunningTotal:
        """Return the total with what a session answers of another release."""
        return self._total.after(released_sums(public, session), public)

    def _release_queries(self, batches: Sequence[tuple[ArrayLike, ArrayLike]]) -> Queries:
        """Return the measured queries that a release may ask of rows and labels."""
        read = [self._batch(*batch) for batch in batches]
        return running_queries(read, self.privacy_event_, rng=self._source)

    def _parameters(self) -> dict[str, Any]:
        return {
            **public_parts(self.privacy_event_),
            "constant": float(self.intercept_scaling),
            "row_norm": float(self.norm_bound),
            "model": "auto",
            "prior": prior_weights(self._prior),
            "start": None if self._start is None else asdict(self._start),
            "answered": sum(answer.query == "class_sums" for answer in self._record),
        }

    def _batch(self, X: ArrayLike, y: ArrayLike) -> tuple[FloatRows, Members]:
        rows, labels = np.asarray(X), np.asarray(y)
        if rows.ndim != 2 or rows.shape[1] != self.n_features_in_ or labels.shape != rows.shape[:1]:
            raise ValueError(f"rows must have {self.n_features_in_} columns and one label each, got {rows.shape}")
        refuse_longer_rows(rows, self.norm_bound)
        members = self._members(labels, self.classes_)
        return self._with_constant(rows), members

    def _event(self, n_features: int, n_classes: int) -> RunningSumsEvent:
        self._check_positive("epsilon", "norm_bound", "intercept_scaling")
        checks.delta_in_open_interval("delta", self.delta)
        return running_sums_event(
            sums_mu(self.epsilon, self.delta),
            updates=self.updates,
            dimension=n_features + 1,
            n_classes=n_classes,
            norm_bound=self._row_norm,
            moment_share=self.moment_share,
            delta=charged_delta(self.delta),
            adjacency=self.adjacency,
        )


def public_parts(event: RunningSumsEvent) -> dict[str, Any]:
    return {
        "dimension": event.sums.dimension,
        "n_classes": event.sums.n_classes,
        "moment_sigma": event.sums.moment_sigma,
        "class_sigma": event.sums.class_sigma,
        "updates": event.updates,
        "weights": [part / PARTS for part in event.weights],
        "decays": [part / PARTS for part in event.decays],
        "coefficients": [part / PARTS for part in event.coefficients],
    }


@dataclass(frozen=True)
class OfRunningSums(SumsChoice):
    """Running sums of a stream, as projects choose them."""

    name: ClassVar[str] = "running_sums"
    label: ClassVar[str] = _("linear model from noisy running sums, charged once (ε, δ)")
    words: ClassVar[str] = _("linear model from noisy running sums, charged once (ε, δ)")
    learns: ClassVar[Collection[Teaching]] = (Teaching.CLASSES, Teaching.CONFIRMATIONS)
    stays: ClassVar[bool] = True
    why_no_pick: ClassVar[str] = _("A release can be worse than version 0: the two are not compared before it.")
    sound: ClassVar[Sound] = Sound(
        oracles=("trusted",),
        arrivals=("stream",),
        why_not={"pool": _("Running sums are for streams; a pool releases whole sums.")},
    )

    updates_per_epoch: int = parameter(
        64,
        at_least=1,
        at_most=MOST_UPDATES,
        label=_("Batches per running sum"),
        help=_("Noise grows with its logarithm, then starts again."),
    )

    def estimator(self, shape: Shape) -> RunningSums:
        return RunningSums(
            self.training_epsilon,
            delta=self.training_delta,
            classes=shape.classes,
            updates=self.updates_per_epoch,
            moment_share=self.moment_share,
            norm_bound=shape.norm_bound,
            adjacency=shape.adjacency,
        )
