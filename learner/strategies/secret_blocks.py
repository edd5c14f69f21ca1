"""Ask about secret samples of a pool, block after block, each of which gives one model."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from learner.strategies.base import BEYOND_A_STREAM, StrategyChoice
from learner.strategies.blocks import block_rates
from learner.strategies.secret_sample import SecretSample
from privacy.accounting.series import even_training
from privacy.choices import Sound, parameter
from privacy.wording import gettext_noop as _


@dataclass(frozen=True)
class SecretBlocks(StrategyChoice):
    """Secret samples of a pool, block after block, as projects choose them."""

    name: ClassVar[str] = "secret_sample"
    label: ClassVar[str] = _("secret sample: only models are published")
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
        help=_("A smaller rate makes the first model cheaper."),
        rule=_("Must lie between 0 and 1, got {got}."),
        charged=True,
    )
    block_growth: float = parameter(
        7.0,
        at_least=1,
        at_most=1000,
        label=_("Secret sample: growth of the blocks"),
        help=_(
            "Each block is so many times as large as the one before, as long as all fit into the pool: 0.1 and 7 give "
            "two blocks of 10 and 70 %, 0.1 and 2 give three of 10, 20 and 40 %."
        ),
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

    def why(self, settings: Mapping[str, Any]) -> str:
        return _(
            "A secret coin chose this record, and nobody outside learns that it is asked about, so please keep that to "
            "yourself, too"
        )

    def strategy(self) -> SecretSample:
        return SecretSample(self.selection_rate)

    @property
    def block_rates(self) -> tuple[float, ...]:
        return block_rates(self.selection_rate, self.block_growth)

    def planned(self, settings: Mapping[str, Any]) -> Mapping[str, float]:
        """Spend all of the limit on one release of each block that is planned, and keep nothing for a second attempt.

        Under a limit that other projects share nothing is proved for a series, and blocks are charged one by one.
        """
        rates = self.block_rates
        epsilon, delta = even_training(
            settings["pool_epsilon"],
            settings["pool_delta"],
            rates,
            releases=settings.get("maximum_releases") or len(rates),
            as_series=not settings.get("shared_limit"),
        )
        return {"training_epsilon": epsilon, "training_delta": delta}
