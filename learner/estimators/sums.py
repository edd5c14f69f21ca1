"""A classifier from one noisy release of sums, at one price whatever the number of classes."""

from dataclasses import KW_ONLY, dataclass
from typing import Any, ClassVar, Literal, Self, get_args

import numpy as np
from numpy.typing import ArrayLike, NDArray

from learner.estimators.choice import OF_TRUSTED_POOLS, Shape, SumsChoice
from learner.estimators.descriptions import PublicWords
from learner.estimators.linear import PricedClassifier
from learner.estimators.sum_models import MODELS, PRIOR, Scores, calibrated, chosen_model, summarise
from learner.linear_model import LinearModel, Multiclass
from privacy.accounting import checks
from privacy.accounting.cost import ADJACENCIES, Adjacency
from privacy.accounting.sums import SumsEvent, charged_delta, sums_event, sums_mu
from privacy.choices import Sound
from privacy.mechanisms.randomness import RandomSource, SimulationRandom
from privacy.mechanisms.sums import NoisySums, release_sums
from privacy.wording import gettext_noop as _

ModelName = Literal["auto", "prototypes", "discriminants", "least_squares"]
BLOCK_ROWS = 65_536


@dataclass(eq=False, repr=False)
class PrivateSums(PricedClassifier[SumsEvent]):
    r"""Release noisy :math:`\sum_i x_i x_i^\top` and the sum of each class's rows, and make the best model of them.

    One record moves all sums together by no more than its norm allows, however many classes there are, so nothing is
    divided among classes. Which model is made (class means, discriminants, least squares), how far it is shrunk and
    how its scores become probabilities is decided from the noisy sums alone and costs nothing.

    Parameters
    ----------
    epsilon, delta : float
        What the release may cost, epsilon > 0, 0 < delta < 1: a point on the Gaussian mechanism's exact curve.
    classes : sequence of at least two distinct labels
        Declared beforehand. Only a simulation may leave it out.
    model : {"auto", "prototypes", "discriminants", "least_squares"}
        "auto" takes the one that noisy sums say is right most often.
    moment_share : float
        Share of the squared sensitivity-to-noise ratio that goes to the second moments, in [0, 1). With 0 they are not
        released, and only class means can be had; a large share pays with few classes and many rows.
    norm_bound : float
        Bound on the L2 norm of a row, > 0; longer rows are refused.
    intercept_scaling : float
        Constant column, > 0, whose sums count the classes. It adds to the norm bound in quadrature.
    adjacency : {"null", "add_remove", "replace"}
        The neighbours for which epsilon is meant.
    earlier : NoisySums, optional
        Released sums of earlier, disjoint blocks of records: the model uses all of them, and no record is read again.
    own_weight : float
        Public weight, > 0, of the rows of `fit` beside `earlier`.
    prior : LinearModel, optional
        A public or released model whose directions class means are drawn to, as strongly as the evidence of the sums
        supports; it changes neither noise nor price.
    random_state : None, int, numpy.random.Generator or RandomSource
        None draws from the operating system. A seed makes a simulation without any guarantee.

    Attributes
    ----------
    coef_ : ndarray of shape (1, n_features) or (n_classes, n_features)
        Weights of the chosen model; with more than two classes probabilities are the softmax of its scores.
    intercept_ : ndarray of shape (1,) or (n_classes,)
    classes_ : ndarray of shape (n_classes,)
    sums_ : NoisySums
        All sums the model was made from, earlier ones included: to be handed to the next block.
    model_ : str
        Name of the model that was made.
    privacy_event_ : Event
        What the fit must be charged, equal to ``event_for(n_features_in_)``.
    simulated_ : bool
        True if the noise came from a seed.

    References
    ----------
    .. [1] Mehta, Krichene, Thakurta, Kurakin, Cutkosky, "Differentially private image classification from features",
       2022 (least squares from noisy sums).
    .. [2] Dwork, Talwar, Thakurta, Zhang, "Analyze Gauss", 2014.
    """

    epsilon: float = 1.0
    _: KW_ONLY
    delta: float = 1e-6
    classes: Any = None
    model: ModelName = "auto"
    moment_share: float = 0.05
    norm_bound: float = 1.0
    intercept_scaling: float = 0.3
    adjacency: Adjacency = "null"
    earlier: NoisySums | None = None
    own_weight: float = 1.0
    prior: LinearModel | None = None
    random_state: RandomSource | np.random.Generator | int | None = None

    fit_intercept = True
    multiclass: ClassVar[Multiclass] = "softmax"

    def leaning(self, words: PublicWords) -> LinearModel | None:
        """Return version 0, of names alone where an encoder reads them; None where nothing is said to the features."""
        return words.model() if words.say_something else None

    def fit(self, X: ArrayLike, y: ArrayLike) -> Self:
        """Release the sums of rows `X`, shape (n_samples, n_features), with labels `y`, and make a model.

        Raises
        ------
        ValueError
            If a parameter, a row or a label is not as declared.
        """
        rng, rows, labels, classes, event = self._begin_fit(X, y)
        members = self._members(labels, classes)
        blocks = (
            (self._with_constant(rows[start : start + BLOCK_ROWS]), members[start : start + BLOCK_ROWS])
            for start in range(0, len(rows), BLOCK_ROWS)
        )
        released = release_sums(blocks, event, rng=rng)
        self.sums_ = released if self.earlier is None else released.times(self.own_weight).plus(self.earlier)
        self.classes_ = classes
        self.privacy_event_ = event
        self.simulated_ = rng.simulated
        self._make_model(rng)
        return self

    def model_of(self, sums: NoisySums, *, rng: RandomSource) -> Self:
        """Make the model of sums that were released and paid for already; `rng` splits their noise."""
        self.sums_ = sums
        self.classes_ = self._declared_classes()
        self.simulated_ = rng.simulated
        self._make_model(rng)
        return self

    def with_further_classes(self, class_sums: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return released class sums of the first of the classes with zeros for those behind them."""
        return np.pad(class_sums, ((0, len(self._declared_classes()) - len(class_sums)), (0, 0)))

    def _make_model(self, rng: RandomSource) -> None:
        generator = self._generator(rng)
        constant = float(self.intercept_scaling)
        shape = {"constant": constant, "row_norm": float(self.norm_bound)}
        prior = self._prior_means(self.sums_.class_sums.shape[1] - 1, len(self.classes_))
        self.model_: str = self.model
        if self.model == "auto":
            self.model_ = chosen_model(self.sums_, prior=prior, generator=generator, **shape)
        if self.model_ == PRIOR and self.prior is not None:
            self.coef_, self.intercept_ = self.prior.coef, self.prior.intercept
            return
        summary = summarise(self.sums_, **shape)
        scores = calibrated(MODELS[self.model_](summary, prior), summary, prior, generator)
        if len(self.classes_) == 2:
            scores = Scores(np.diff(scores.coef, axis=0), np.diff(scores.intercept))
        self.coef_, self.intercept_ = scores.coef, scores.intercept

    @staticmethod
    def _generator(rng: RandomSource) -> np.random.Generator:
        # Splitting noise and drawing rows are post-processing; a seed for them that nobody knows is enough.
        return rng.generator if isinstance(rng, SimulationRandom) else np.random.default_rng(rng.bits(128))

    def _prior_means(self, n_features: int, n_classes: int) -> NDArray[np.float64] | None:
        if self.prior is None:
            return None
        coef = self.prior.coef
        if coef.shape != (1 if n_classes == 2 else n_classes, n_features):
            raise ValueError(f"prior must have weights for {n_classes} classes and {n_features} columns")
        return np.vstack([-coef, coef]) / 2 if n_classes == 2 else coef

    def _check_parameters(self) -> None:
        self._check_positive("epsilon", "norm_bound", "intercept_scaling", "own_weight")
        checks.delta_in_open_interval("delta", self.delta)
        if not 0 <= self.moment_share < 1:
            raise ValueError(f"moment_share must lie in [0, 1), got {self.moment_share}")
        checks.one_of("model", self.model, get_args(ModelName))
        checks.one_of("adjacency", self.adjacency, ADJACENCIES)

    def _event(self, n_features: int, n_classes: int) -> SumsEvent:
        self._check_parameters()
        return sums_event(
            sums_mu(self.epsilon, self.delta),
            dimension=n_features + 1,
            n_classes=n_classes,
            norm_bound=self._row_norm,
            moment_share=self.moment_share,
            delta=charged_delta(self.delta),
            adjacency=self.adjacency,
        )


@dataclass(frozen=True)
class Sums(SumsChoice):
    """The best model that one noisy release of sums gives."""

    name: ClassVar[str] = "sums"
    label: ClassVar[str] = _("least squares, discriminants or class means from noisy sums, one price for any classes")
    words: ClassVar[str] = _("linear model made from one noisy release of sums")
    sound: ClassVar[Sound] = OF_TRUSTED_POOLS

    def estimator(self, shape: Shape) -> PrivateSums:
        """Return the estimator, unfitted."""
        return PrivateSums(
            self.training_epsilon,
            delta=self.training_delta,
            moment_share=self.moment_share,
            classes=shape.classes,
            norm_bound=shape.norm_bound,
            prior=shape.prior,
        )
