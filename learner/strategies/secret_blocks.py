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
            "crowd": _("A crowd sees the questions, so their choice cannot be secret."),
            "stream": BEYOND_A_STREAM,
        },
    )

    selection_rate: float = parameter(
        0.1,
        above=0,
        below=1,
        label=_("Secret sample: rate of the first block"),
        help=_("A smaller rate makes the first model cheaper."),
        charged=True,
    )
    block_growth: float = parameter(
        7.0,
        at_least=1,
        at_most=1000,
        label=_("Secret sample: growth of the blocks"),
        help=_("Factor from block to block: 0.1 and 7 give blocks of 10 and 70 %."),
        charged=True,
    )
    block_hours: int = parameter(
        168,
        at_least=1,
        at_most=10_000,
        unit="hours",
        label=_("Secret sample: hours to label a block"),
        help=_("The model is then trained whatever is answered, so its time reveals nothing."),
    )

    def why(self, settings: Mapping[str, Any]) -> str:
        return _("This record was chosen in secret. Please tell no one.")

    def strategy(self) -> SecretSample:
        return SecretSample(self.selection_rate)

    @property
    def block_rates(self) -> tuple[float, ...]:
        return block_rates(self.selection_rate, self.block_growth)

    def planned(self, settings: Mapping[str, Any]) -> Mapping[str, float]:
        """Spend all of the limit on one release of each planned block; under a shared limit blocks are charged one by
        one.
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
