"""A classifier from one noisy release of sums, at one price whatever the number of classes."""

from dataclasses import KW_ONLY, asdict, dataclass
from typing import Any, ClassVar, Literal, get_args

import numpy as np
from numpy.typing import NDArray

from dpal.recompute.sums import NoisySums, all_sums, best_model
from dpal.recompute.transcript import Session, Weights
from learner.estimators.choice import OF_TRUSTED_POOLS, Shape, SumsChoice
from learner.estimators.descriptions import PublicWords
from learner.estimators.linear import PricedClassifier, prior_weights
from learner.linear_model import LinearModel, Multiclass
from privacy.accounting import checks
from privacy.accounting.cost import ADJACENCIES, Adjacency
from privacy.accounting.sums import SumsEvent, charged_delta, sums_event, sums_mu
from privacy.choices import Sound
from privacy.mechanisms.randomness import RandomSource
from privacy.mechanisms.session import Queries
from privacy.mechanisms.sums import sum_queries
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
    program = "sums"

    def leaning(self, words: PublicWords) -> LinearModel | None:
        return words.model() if words.say_something else None

    def with_further_classes(self, class_sums: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return released class sums of the first of the classes with zeros for those behind them."""
        return np.pad(class_sums, ((0, len(self._declared_classes()) - len(class_sums)), (0, 0)))

    def _queries(
        self,
        rows: NDArray[np.floating],
        labels: NDArray[Any],
        classes: NDArray[Any],
        event: SumsEvent,
        rng: RandomSource,
    ) -> Queries:
        members = self._members(labels, classes)
        blocks = (
            (self._with_constant(rows[start : start + BLOCK_ROWS]), members[start : start + BLOCK_ROWS])
            for start in range(0, len(rows), BLOCK_ROWS)
        )
        return sum_queries(blocks, event, rng=rng)

    def _public(self, event: SumsEvent) -> dict[str, Any]:
        return {
            "dimension": event.dimension,
            "moment_sigma": event.moment_sigma,
            "class_sigma": event.class_sigma,
            "constant": float(self.intercept_scaling),
            "row_norm": float(self.norm_bound),
            "model": self.model,
            "prior": prior_weights(self.prior),
            "earlier": None if self.earlier is None else asdict(self.earlier),
            "own_weight": float(self.own_weight),
        }

    def _learn(self, public: dict[str, Any], session: Session) -> Weights:
        self.sums_ = all_sums(public, session)
        self.model_, weights = self._make_model(public, self.sums_, session.ask("seed"))
        return weights

    @staticmethod
    def _make_model(public: dict[str, Any], sums: NoisySums, seed: NDArray[np.float64]) -> tuple[str, Weights]:
        return best_model(public, sums, seed)

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
    label: ClassVar[str] = _("least squares, discriminants or class means from noisy sums")
    words: ClassVar[str] = _("least squares, discriminants or class means from noisy sums")
    sound: ClassVar[Sound] = OF_TRUSTED_POOLS
    picks: ClassVar[bool] = True

    def estimator(self, shape: Shape) -> PrivateSums:
        return PrivateSums(
            self.training_epsilon,
            delta=self.training_delta,
            moment_share=self.moment_share,
            classes=shape.classes,
            norm_bound=shape.norm_bound,
            prior=shape.prior,
        )
