"""A linear support vector machine trained by noisy mini-batch steps, each label feeding one of them."""

import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, field
from typing import Any, ClassVar, Literal, Self, get_args

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import optimize

from annotation.choices.selections import asks_in_secret
from learner.estimators.choice import EstimatorChoice, Shape
from learner.estimators.descriptions import PublicWords
from learner.estimators.linear import refuse_longer_rows
from learner.estimators.logistic import PRICE_MARGIN
from learner.estimators.streaming import AnsweredBatch, StreamingLinearClassifier, project_to_ball
from learner.linear_model import LinearModel
from privacy.accounting import checks
from privacy.accounting.composition import gaussian_delta
from privacy.accounting.cost import ADJACENCIES, Adjacency
from privacy.accounting.events import MinibatchSgdEvent
from privacy.accounting.training import grid_slack, records_moved
from privacy.arrays import Array
from privacy.choices import parameter
from privacy.mechanisms.discrete import DiscreteGaussian, check_grid, release_on_grid
from privacy.mechanisms.k_norm import EuclideanNoise
from privacy.mechanisms.randomness import RandomSource
from privacy.wording import as_message
from privacy.wording import gettext_noop as _

Noise = Literal["k_norm", "gaussian"]
# Sums of up to this many steps of the grid are exact in float64.
LARGEST_SUM = 2.0**52
# Smoothing of the hinge in whose scale the words start a stream.
STREAM_SMOOTHING = 1.0


@dataclass(eq=False, repr=False)
class MiniBatchPrivateSVM(StreamingLinearClassifier):
    r"""Take steps :math:`w \leftarrow \Pi_R[w - \eta(\lambda w - \frac1B(\sum_i g_i + z))]` on batches of labels.

    For two classes :math:`g = y x` where the hinge is active, :math:`y\langle w, x\rangle < 1`, else 0. For more, the
    strongest rival of the true class is pushed down and the true class up where they are less than 1
    apart, so that one record moves two class vectors and all classes share its price. The sum of a batch is
    released with noise; everything after it, projection and averaging included, is post-processing. As
    each label enters one update, all updates together cost what one costs.

    Parameters
    ----------
    epsilon : float
        Privacy loss of all updates together, > 0.
    delta : float
        Mass outside it, in [0, 1); above 0 with Gaussian noise only, which needs it.
    noise : {"k_norm", "gaussian"}
        Gamma-norm noise, or Gaussian, which is shorter from about 50 dimensions on.
    classes : sequence of at least two distinct labels
        Declared beforehand, here or in the first `partial_fit`; only a simulation may leave it out.
    batch_size : int
        Labels in a step of `fit`, >= 1. The noise of a step does not shrink with the batch, its share of the
        step does: at least 50.
    step_size : float
        The constant :math:`\eta` > 0.
    radius : float
        Radius R > 0 of the ball of weights, joint for all classes. In a unit ball every hinge stays
        active and the classifier is a noisy mean; 20 to 80 is a good range.
    regularization : float
        :math:`\lambda` >= 0.
    epochs : int
        Passes of `fit` over the rows, >= 1; each is charged again.
    norm_bound, fit_intercept, intercept_scaling
        As in `PrivateLogisticRegression`.
    adjacency : {"null", "replace"}
        The neighbours for which epsilon is meant. Their number is public.
    average : bool
        Predict with the average of all iterates instead of the last.
    grid : float
        Spacing, a power of two, to which every gradient is rounded before it is summed; sums are then exact.
    random_state : None, int, numpy.random.Generator or RandomSource
        None draws from the operating system. A seed makes a simulation without any guarantee.

    Attributes
    ----------
    coef_, intercept_, classes_, weights_, updates_, privacy_event_, simulated_
        See `StreamingLinearClassifier`.

    References
    ----------
    .. [1] Ghassemi, Sarwate, Wright, "Differentially private online active learning with applications to
       anomaly detection", 2016, equation 10 (in a unit ball, with batches of 5).
    .. [2] Song, Chaudhuri, Sarwate, "Stochastic gradient descent with differentially private updates", 2013.
    .. [3] Crammer, Singer, "On the algorithmic implementation of multiclass kernel-based vector machines", 2001.
    """

    privacy_event_: MinibatchSgdEvent = field(init=False)
    epsilon: float = 1.0
    _: KW_ONLY
    delta: float = 0.0
    noise: Noise = "k_norm"
    classes: Any = None
    batch_size: int = 50
    step_size: float = 4.0
    radius: float = 40.0
    regularization: float = 0.0
    epochs: int = 1
    norm_bound: float = 1.0
    fit_intercept: bool = True
    intercept_scaling: float = 1.0
    adjacency: Adjacency = "null"
    average: bool = True
    grid: float = 2.0**-30
    random_state: RandomSource | np.random.Generator | int | None = None

    def fit(self, X: ArrayLike, y: ArrayLike) -> Self:
        """Start anew and take one step for each batch of rows, in random order.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows of norm at most `norm_bound`, float64 or float32; their number is public.
        y : array-like of shape (n_samples,)
            Labels among the classes.

        Raises
        ------
        ValueError
            If a parameter, a row or a label is not as declared.
        """
        return self.fit_slots(X, y, slots=np.arange(np.asarray(y).size), n_slots=np.asarray(y).size)

    def fit_slots(self, X: ArrayLike, y: ArrayLike, *, slots: NDArray[np.int64], n_slots: int) -> Self:
        """Start anew and take one step for each batch of slots, in random order, whether or not a slot has a label.

        Parameters
        ----------
        X, y : array-like
            Rows and labels, as in `fit`.
        slots : ndarray of int64, shape (n_samples,)
            The distinct slot of each row, in [0, n_slots).
        n_slots : int
            Public number of slots, >= 0. Which of them have a label may be private: an empty slot adds nothing and
            moves no other row to another batch.

        Raises
        ------
        ValueError
            If a parameter, a row, a label or a slot is not as declared.
        """
        rows, places = self._examples(X, y, classes=None, begin=True)
        if len(slots) != len(rows) or len(set(slots.tolist())) != len(slots):
            raise ValueError(f"slots must be distinct, one for each of {len(rows)} rows, got {len(slots)}")
        if len(slots) and not (slots.min() >= 0 and slots.max() < n_slots):
            raise ValueError(f"slots must lie in [0, {n_slots})")
        row_of = np.full(n_slots, -1, dtype=np.intp)
        row_of[slots] = np.arange(len(slots))
        planned = self.epochs * -(-n_slots // self.batch_size)
        for _epoch in range(self.epochs):
            order = np.asarray(self._source.permutation(n_slots), dtype=np.intp)
            for start in range(0, n_slots, self.batch_size):
                batch = order[start : start + self.batch_size]
                members = row_of[batch][row_of[batch] >= 0]
                self._step(rows[members], places[members], len(batch))
                self._tell(self.updates_, planned)
        self._publish()
        return self

    def partial_fit(self, X: ArrayLike, y: ArrayLike, classes: Any = None, *, denominator: int | None = None) -> Self:
        """Take one step on a batch whose labels have fed at most `epochs` - 1 steps before.

        Parameters
        ----------
        X, y : array-like
            The batch, possibly empty.
        classes : sequence, optional
            Declared classes, where the constructor has none; needed in the first call only.
        denominator : int, optional
            A fixed public B >= 1 for hidden selection: then even an empty batch takes a noisy step, and neither
            its number of labels nor the step tells whether there were any. Without it B is the number of
            labels, which is visible, and an empty batch changes nothing.

        Raises
        ------
        ValueError
            If a parameter, a row or a label is not as declared.
        """
        if denominator is not None and denominator < 1:
            raise ValueError(f"denominator must be >= 1, got {denominator}")
        rows, places = self._examples(X, y, classes=classes, begin=False)
        if len(rows) or denominator is not None:
            self._step(rows, places, denominator or len(rows))
            self._publish()
        return self

    def learn_batches(self, batches: Sequence[AnsweredBatch], *, new: int) -> Self:
        """Take one step on each batch, divided by the public number of its questions."""
        for batch in batches[len(batches) - new :]:
            self.partial_fit(batch.rows, batch.classes, denominator=batch.asked)
        return self

    def first_model(self, words: PublicWords) -> LinearModel | None:
        """Return version 0 in the scale of a hinge, None where examples are too few."""
        return words.huber(STREAM_SMOOTHING)

    def _step(self, rows: NDArray[np.floating], places: NDArray[np.intp], denominator: int) -> None:
        if len(rows) * self.privacy_event_.norm_bound > LARGEST_SUM * self.grid:
            raise ValueError(f"a batch of {len(rows)} rows does not fit on the grid {self.grid}")
        noisy = self._noisy(hinge_gradient_sum(self._extended(rows), places, self.weights_, grid=self.grid))
        moved = self.weights_ + self.step_size * (noisy / denominator - self.regularization * self.weights_)
        self._count(project_to_ball(moved, self.radius))

    def _noisy(self, total: Array) -> Array:
        """Release the sum of a batch, a vector of multiples of the grid."""
        event = self.privacy_event_
        if event.noise == "gaussian":
            released = release_on_grid(
                total.ravel(), noise=DiscreteGaussian, scale=event.noise_scale, grid=self.grid, rng=self._source
            )
        else:
            released = EuclideanNoise(event.noise_scale).release(total.ravel(), grid=self.grid, rng=self._source)
        return released.reshape(total.shape)

    def _examples(
        self, X: ArrayLike, y: ArrayLike, *, classes: Any, begin: bool
    ) -> tuple[NDArray[np.floating], NDArray[np.intp]]:
        rows, places = super()._examples(X, y, classes=classes, begin=begin)
        refuse_longer_rows(rows, self.norm_bound)
        return rows, places

    def _event(self, n_features: int, n_classes: int) -> MinibatchSgdEvent:
        self._check_parameters()
        dimension = self._n_vectors(n_classes) * self._width(n_features)
        moved = self._row_norm if n_classes == 2 else math.sqrt(2) * self._row_norm
        sensitivity = records_moved(self.adjacency) * moved + grid_slack(self.grid, dimension)
        epsilon = self.epsilon / self.epochs * PRICE_MARGIN
        delta = self.delta / self.epochs
        return MinibatchSgdEvent(
            noise_scale=sensitivity / (epsilon * PRICE_MARGIN if delta == 0 else gaussian_ratio(epsilon, delta)),
            dimension=dimension,
            norm_bound=moved,
            noise=self.noise,
            grid=float(self.grid),
            updates_per_record=self.epochs,
            delta=delta,
        )

    def _check_parameters(self) -> None:
        self._check_positive("epsilon", "step_size", "radius", "norm_bound", "intercept_scaling")
        checks.one_of("noise", self.noise, get_args(Noise))
        if not 0 <= self.delta < 1 or (self.delta > 0) != (self.noise == "gaussian"):
            raise ValueError(f"delta must lie in (0, 1) with Gaussian noise and be 0 without, got {self.delta}")
        if not (self.regularization >= 0 and math.isfinite(self.regularization)):
            raise ValueError(f"regularization must be >= 0 and finite, got {self.regularization}")
        for name in ("batch_size", "epochs"):
            if getattr(self, name) < 1:
                raise ValueError(f"{name} must be >= 1, got {getattr(self, name)}")
        if self.adjacency not in ADJACENCIES or self.adjacency == "add_remove":
            raise ValueError(f"adjacency must be null or replace, got {self.adjacency!r}")
        check_grid(self.grid)


class MiniBatchSVMBaseline(MiniBatchPrivateSVM):
    """Take the steps of `MiniBatchPrivateSVM` without noise: for comparison, never for release."""

    releasable: ClassVar[bool] = False

    def _noisy(self, total: Array) -> Array:
        return total


def hinge_gradient_sum(rows: Array, places: NDArray[np.intp], weights: Array, *, grid: float) -> Array:
    """Return the exact sum of the records' rounded gradients, turned so that steps go along it.

    Parameters
    ----------
    rows : ndarray of shape (n, d)
        Constant column included.
    places : ndarray of shape (n,)
        Class of every row: 0 or 1 for one weight vector, else the number of its vector.
    weights : ndarray of shape (1, d) or (n_classes, d)
        Released weights.
    grid : float
        Power of two to whose multiples gradients are rounded.

    Returns
    -------
    ndarray of the shape of `weights`
        Multiples of `grid`, summed as integers.
    """
    steps = np.rint(rows / grid).astype(np.int64)
    total = np.zeros(weights.shape, dtype=np.int64)
    # Products row by row and not as one matrix product, whose rounding of a row could change with the size of the
    # batch, so that one record's presence could switch another's hinge.
    scores = np.stack([(rows * vector).sum(axis=1) for vector in weights], axis=1)
    if len(weights) == 1:
        signs = np.where(places == 1, 1, -1)
        active = signs * scores[:, 0] < 1
        total[0] = (signs[active, None] * steps[active]).sum(axis=0)
    else:
        mine = np.arange(len(rows)), places
        own = scores[mine]
        scores[mine] = -np.inf
        rivals = scores.argmax(axis=1)
        active = own - scores[np.arange(len(rows)), rivals] < 1
        np.add.at(total, places[active], steps[active])
        np.subtract.at(total, rivals[active], steps[active])
    return total.astype(np.float64) * grid


def gaussian_ratio(epsilon: float, delta: float) -> float:
    """Return the largest ratio of sensitivity to sigma at which Gaussian noise is (epsilon, delta)-private."""
    upper = 1.0
    while gaussian_delta(upper, epsilon) < delta:
        upper *= 2
    found = optimize.brentq(lambda ratio: gaussian_delta(ratio, epsilon) - delta, upper * 2.0**-60, upper, xtol=1e-300)
    # Far more than what the root and the price computed back from it can be off by.
    return float(found) * (1 - 1e-9)


@dataclass(frozen=True)
class MinibatchSvm(EstimatorChoice):
    """Noisy steps on batches; of a stream one step for each batch as it comes."""

    name: ClassVar[str] = "minibatch_svm"
    label: ClassVar[str] = _("SVM by noisy steps on batches")
    words: ClassVar[str] = _("support vector machine trained by noisy steps on batches")
    # Of streams it did worse in the benchmarks than sums.
    tried_of: ClassVar[Collection[str]] = ("pool",)

    step_size: float | None = parameter(
        None, above=0, label=_("Step size"), help=_("How far one noisy batch moves the weights.")
    )
    weight_radius: float | None = parameter(
        None,
        above=0,
        label=_("Radius of the weights"),
        help=_("20 to 80 for batches; in a unit ball hardly anything is learned."),
    )
    average_iterates: bool = parameter(
        True,
        arrivals=("stream",),
        label=_("Release the average of all updates"),
        help=_("Averaging takes noise out of the weights and costs nothing."),
    )

    def estimator(self, shape: Shape) -> MiniBatchPrivateSVM:
        """Return the estimator of a pool's training, unfitted."""
        wanted: dict[str, Any] = {"step_size": self.step_size, "radius": self.weight_radius}
        # Its steps start from zero whatever was released before.
        return MiniBatchPrivateSVM(
            self.training_epsilon,
            classes=shape.classes,
            norm_bound=shape.norm_bound,
            intercept_scaling=shape.intercept_scaling,
            average=self.average_iterates,
            adjacency=shape.adjacency,
            **{name: value for name, value in wanted.items() if value is not None},
        )

    def rules(self, settings: Mapping[str, Any]) -> Mapping[str, str]:
        """Refuse a list of secret length, and steps of a stream whose length nobody says."""
        broken: dict[str, str] = {}
        if asks_in_secret(settings):
            broken["estimator"] = _(
                "Batches are cut from a list of public length, and how many a secret sample holds is secret; train by "
                "objective or output perturbation."
            )
        if settings.get("arrival") == "stream":
            unsaid = [name for name in ("step_size", "weight_radius") if getattr(self, name) is None]
            broken |= {name: as_message("Must be above 0, got {got}.", got=None) for name in unsaid}
        return broken
