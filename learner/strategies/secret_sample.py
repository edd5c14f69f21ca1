"""Label a secret sample: nobody outside learns which records, how many, or when; only the model is released."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from learner.linear_model import LinearModel
from learner.strategies.base import BEYOND_A_STREAM, QueryStrategy, Series, SharedLimit, StrategyChoice
from learner.strategies.blocks import block_rates, blocks_epsilon
from learner.strategies.cells import CELLS
from learner.strategies.divisions import RATES, Division, of_one_price
from learner.strategies.scoring import boundary_distances, score_blocks
from privacy.accounting.events import Event, SecretChoiceEvent, SecretSampleEvent
from privacy.accounting.events_counts import cell_counts_event
from privacy.accounting.events_series import even_training
from privacy.choices import Sound
from privacy.mechanisms.randomness import RandomSource
from privacy.mechanisms.screening import coin_probability, flip_coins
from privacy.parameters import parameter
from privacy.wording import gettext_noop as _

# A screened block asks about one in so many of its records far from the boundary.
OUTSIDE_SLAB = 5


class SecretSample(QueryStrategy):
    r"""Choose every record by a secret coin of public rate q, whatever the others' coins say.

    The choice itself is free because it stays inside. A model trained on it at :math:`\varepsilon_m` is released at
    :math:`\ln(1 + q (e^{\varepsilon_m} - 1))`.

    Parameters
    ----------
    rate : float
        Probability q, 0 < q < 1, taken as the nearest multiple of 2**-53. It must not depend on how many
        records earlier secret samples have left, which is secret too.

    Raises
    ------
    ValueError
        If the rate is out of range.

    Notes
    -----
    Several releases may use disjoint samples: let each round draw from what earlier ones left and charge
    each release `release_event` at the rate of its own round.

    References
    ----------
    .. [1] Balle, Barthe, Gaboardi, "Privacy amplification by subsampling", 2018, Theorem 8 (Poisson sampling).
    """

    name = "secret_sample"
    needs_model = False
    oracles = frozenset({"trusted"})
    post_processing_only = False
    fills_batch = False
    hidden = True

    def __init__(self, rate: float = 0.1) -> None:
        self.low = self.high = coin_probability(rate)

    @property
    def rate(self) -> float:
        """Largest probability with which a record takes part, as it is charged."""
        return float(self.high)

    def query(
        self,
        X: NDArray[np.float32],
        candidates: NDArray[np.int64],
        model: LinearModel | None,
        n: int,
        rng: RandomSource,
    ) -> NDArray[np.int64]:
        """Choose as `QueryStrategy.query` says, in random order; `n` does not matter."""
        rows = self.check_query(X, candidates, model, n)
        # So that whatever is labelled first is a random part of the sample.
        return np.asarray(rng.permutation(rows[self.decide(X, rows, model, rng)]), dtype=np.int64)

    def decide(
        self, X: NDArray[np.float32], rows: NDArray[np.int64], model: LinearModel | None, rng: RandomSource
    ) -> NDArray[np.bool_]:
        """Flip the coin of every row, shape (rows,)."""
        if self.needs_model and model is None:
            raise ValueError(f"selection {self.name} needs a released model")
        return flip_coins(self.probabilities(X, rows, model), high=self.high, low=self.low, rng=rng)

    def probabilities(
        self, X: NDArray[np.float32], rows: NDArray[np.int64], model: LinearModel | None
    ) -> NDArray[np.float64]:
        """Return the probability of each row, at most `rate`."""
        return np.full(rows.shape, self.rate)

    def event_for(self, *, pool_size: int, picks: int, series: Series) -> Event:
        """Return the event of the choice, which is free because nothing of it is shown."""
        return SecretChoiceEvent(self.rate)

    def release_event(self, training: Event) -> SecretSampleEvent:
        """Return what releasing the outcome of `training` on the chosen records must be charged."""
        return SecretSampleEvent(training, self.rate)


class ScreenedSecretSample(SecretSample):
    """Prefer records near the last released model's boundary, still in secret; charged at the larger rate.

    Parameters
    ----------
    rate : float
        Probability within the slab, 0 < rate < 1.
    outside_rate : float
        Probability elsewhere, 0 < outside_rate <= rate.
    slab : float
        Half width of the slab around the boundary, >= 0.

    Raises
    ------
    ValueError
        If a parameter is out of range.
    """

    name = "screened_secret_sample"
    needs_model = True

    def __init__(self, rate: float = 0.1, *, outside_rate: float = 0.02, slab: float = 0.1) -> None:
        super().__init__(rate)
        self.low = coin_probability(outside_rate)
        if self.low > self.high:
            raise ValueError(f"outside_rate must be <= rate, got {outside_rate} and {rate}")
        if not 0 <= slab < np.inf:
            raise ValueError(f"slab must be >= 0 and finite, got {slab}")
        self.slab = float(slab)

    def probabilities(
        self, X: NDArray[np.float32], rows: NDArray[np.int64], model: LinearModel | None
    ) -> NDArray[np.float64]:
        """Return one of the two rates for each row."""
        if model is None or not rows.size:
            return np.full(rows.shape, self.rate)
        blocks = score_blocks(X, model, candidates=rows)
        near = np.concatenate([boundary_distances(values, model.coef) <= self.slab for values in blocks])
        return np.where(near, self.rate, float(self.low))

    def thin(
        self, X: NDArray[np.float32], rows: NDArray[np.int64], model: LinearModel, rng: RandomSource
    ) -> NDArray[np.int64]:
        """Keep all rows within the slab and outside_rate / rate of the others.

        Of rows that a coin of exactly `rate` has chosen, this leaves what the two rates would have chosen; thinning
        never raises a probability, so the charge at `rate` covers it, whatever its own coins are rounded to.
        """
        if not rows.size:
            return rows
        near = self.probabilities(X, rows, model) == self.rate
        kept: NDArray[np.int64] = rows[near | (rng.random(rows.shape) < float(self.low / self.high))]
        return kept


@dataclass(frozen=True)
class SecretBlocks(StrategyChoice):
    """Secret samples of a pool, block after block, as projects choose them."""

    name: ClassVar[str] = "secret_sample"
    hides_selection: ClassVar[bool] = True
    label: ClassVar[str] = _("secret sample: only models are published")
    in_rounds: ClassVar[bool] = False
    by_chance: ClassVar[bool] = True
    sound: ClassVar[Sound] = Sound(
        oracles=("trusted",),
        arrivals=("pool",),
        why_not={
            "crowd": _("A crowd sees what is asked, so nothing about the choice is secret from it."),
            "stream": BEYOND_A_STREAM,
        },
    )

    selection_rate: float = parameter(
        0.1,
        above=0,
        below=1,
        label=_("Secret sample: rate of the first block"),
        help=_("The second block is as large, each further one doubles. A smaller rate makes each model cheaper."),
        rule=_("Must lie between 0 and 1, got {got}."),
        charged=True,
    )
    block_hours: int = parameter(
        168,
        at_least=1,
        at_most=10_000,
        unit="hours",
        label=_("Secret sample: hours to label a block"),
        help=_("Its model is trained then, whatever is answered, so that the time says nothing about the sample."),
    )
    screened_blocks: bool = parameter(
        False,
        label=_("Prefer what is near from the second block on"),
        help=_("Elsewhere one in five of a block is asked. It costs the same and pays for anomalies."),
    )
    screen_reach: float = parameter(
        0.1,
        at_least=0,
        at_most=10,
        label=_("What is near"),
        help=_("Distance from the boundary; features have a length of at most 1."),
        rule=_("Must lie between 0 and 10, got {got}."),
    )

    cluster_epsilon: float | None = parameter(
        None,
        above=0,
        at_most=10,
        label=_("Spread the first block over clusters: epsilon"),
        help=_(
            "Charged once for noisy counts of records in each of 64 public cells; records with few like them are then "
            "asked more often. For pools that repeat themselves; 0.05 is enough for ten thousand records. "
            "Empty asks all alike and costs nothing."
        ),
        charged=True,
    )
    cluster_spread: float = parameter(
        4.0,
        above=1,
        at_most=100,
        label=_("Spread over clusters: how many times fewer questions"),
        help=_("The first block asks so many times fewer records than its rate says, and costs what its rate says."),
        rule=_("Must be above 1 and at most 100, got {got}."),
    )

    def strategy(self) -> SecretSample:
        """Return the sample of the first block, where nothing is counted for it."""
        return SecretSample(self.selection_rate)

    def screened(self, rate: float) -> ScreenedSecretSample:
        """Return the sample of a later block at its public rate, where what is near is preferred."""
        return ScreenedSecretSample(rate, outside_rate=rate / OUTSIDE_SLAB, slab=self.screen_reach)

    @property
    def first_rate(self) -> float:
        """Public rate of the first block."""
        return self.selection_rate

    def divisions(self, shared: SharedLimit) -> Iterable[Division]:
        """Vary the rate of the first block: its size pays for choosing, and training takes what the coins leave."""
        for rate in RATES:
            rates = block_rates(rate)[: shared.releases]
            training = of_one_price(shared.epsilon, lambda each, rates=rates: blocks_epsilon(each, rates))  # type: ignore[misc]
            if training is not None:
                yield Division(changes={"selection_rate": rate}, training=training, rate=rate)

    def opening(self, settings: Mapping[str, Any]) -> Event | None:
        """Return what counting the cells costs, None where they are not."""
        return None if self.cluster_epsilon is None else cell_counts_event(self.cluster_epsilon, CELLS)

    def planned(self, settings: Mapping[str, Any]) -> Mapping[str, float]:
        """Spend all of the limit on one release of each block that is planned, and keep nothing for a second attempt.

        Under a limit that other projects share nothing is proved for a series, and blocks are charged one by one.
        """
        rates = block_rates(self.selection_rate)
        opening = self.opening(settings)
        counts = 0.0 if opening is None else opening.cost(adjacency="null").epsilon
        epsilon, delta = even_training(
            settings["pool_epsilon"] - counts,
            settings["pool_delta"],
            rates,
            releases=settings.get("maximum_releases") or len(rates),
            as_series=not settings.get("shared_limit"),
        )
        return {"training_epsilon": epsilon, "training_delta": delta}
