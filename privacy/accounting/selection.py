"""Events of showing records: random choice, screens, top-c batches, streams and secret choices."""

import math
from dataclasses import dataclass
from typing import ClassVar, Literal

from privacy.accounting import checks, screens
from privacy.accounting.composition import bounded_range_rho
from privacy.accounting.cost import Adjacency, Cost, no_proof, outward
from privacy.accounting.event import Event, EventWords, counted_words
from privacy.accounting.sums import RunningSumsEvent
from privacy.accounting.training import FIXED_SLOTS, MinibatchSgdEvent, hidden_cost, require_slot
from privacy.wording import gettext_noop as _
from privacy.wording import ngettext_noop


def _screen_cost(q_hi: float, q_lo: float) -> Cost:
    selected, skipped = screens.screen_losses(q_hi, q_lo)
    return Cost(outward(max(selected, skipped)), rho=outward(bounded_range_rho(selected + skipped)))


@dataclass(frozen=True, slots=True)
class RandomChoiceEvent(Event):
    """Records chosen without looking at them; only their number, which is public, is used."""

    picks: int = 1
    kind: ClassVar[str] = "random_choice"
    words: ClassVar[EventWords] = EventWords(
        _("random choice"), ngettext_noop("%(picks)s record at random", "%(picks)s records at random"), counted="picks"
    )
    valid_for: ClassVar[frozenset[Adjacency]] = FIXED_SLOTS

    def __post_init__(self) -> None:
        checks.at_least("picks", self.picks, 0)

    def cost(self, *, adjacency: Adjacency = "null") -> Cost:
        require_slot(self, adjacency)
        return Cost(0.0)

    def summary(self) -> str:
        return f"{counted_words(self.picks, 'record')} chosen at random"


@dataclass(frozen=True, slots=True)
class BernoulliScreenEvent(Event):
    """One visible screening decision per record, each record examined once.

    `q_hi` and `q_lo` are the rationals the sampler uses, stored exactly as floats.
    """

    q_hi: float
    q_lo: float
    kind: ClassVar[str] = "bernoulli_screen"
    words: ClassVar[EventWords] = EventWords(
        _("screen of two rates"), _("one coin per record, rate %(q_hi)s or %(q_lo)s")
    )
    valid_for: ClassVar[frozenset[Adjacency]] = FIXED_SLOTS

    def __post_init__(self) -> None:
        screens.screen_losses(self.q_hi, self.q_lo)

    def cost(self, *, adjacency: Adjacency = "null") -> Cost:
        require_slot(self, adjacency)
        return _screen_cost(self.q_hi, self.q_lo)

    def summary(self) -> str:
        return f"screen with selection rates {self.q_hi:.4g} and {self.q_lo:.4g}"


@dataclass(frozen=True, slots=True)
class ExponentialScreenEvent(Event):
    """One visible decision per record with a probability that decays with the distance to the separator.

    The sampler may round the probability of a record to either neighbour on the grid of 2 ** -probability_bits; the
    charge is for the extreme probabilities rounded outward on it.
    """

    threshold: float
    norm_bound: float
    epsilon: float
    probability_bits: int = 53
    kind: ClassVar[str] = "exponential_screen"
    words: ClassVar[EventWords] = EventWords("exponential screen", "one coin per record, rarer away from the boundary")
    valid_for: ClassVar[frozenset[Adjacency]] = FIXED_SLOTS

    def __post_init__(self) -> None:
        screens.exponential_screen_rates(self.threshold, self.norm_bound, self.epsilon)
        checks.at_least("probability_bits", self.probability_bits, 8)
        if self.probability_bits > 53:
            raise ValueError(f"probability_bits must be at most 53, got {self.probability_bits}")

    @property
    def rates(self) -> tuple[float, float]:
        """Largest and smallest probability the sampler can use, both on its grid."""
        q_hi, q_lo = screens.exponential_screen_rates(self.threshold, self.norm_bound, self.epsilon)
        steps = 2**self.probability_bits
        # One grid step more than rounding needs: exp itself may be off by an ulp.
        return min(1.0, (math.ceil(q_hi * steps) + 1) / steps), max(0.0, (math.floor(q_lo * steps) - 1) / steps)

    def cost(self, *, adjacency: Adjacency = "null") -> Cost:
        require_slot(self, adjacency)
        return _screen_cost(*self.rates)

    def summary(self) -> str:
        return f"exponential screen, slab {self.threshold:.4g} of {self.norm_bound:.4g}, design loss {self.epsilon:.4g}"


@dataclass(frozen=True, slots=True)
class ExposureCappedScreenEvent(Event):
    """Rounds of visible screening in which no record is examined more than `exposures` times."""

    q_hi: float
    q_lo: float
    exposures: int
    kind: ClassVar[str] = "exposure_capped_screen"
    words: ClassVar[EventWords] = EventWords(
        "screen with few looks",
        (
            "coins of rate %(q_hi)s or %(q_lo)s, at most %(exposures)s look per record",
            "coins of rate %(q_hi)s or %(q_lo)s, at most %(exposures)s looks per record",
        ),
        counted="exposures",
    )
    valid_for: ClassVar[frozenset[Adjacency]] = FIXED_SLOTS

    def __post_init__(self) -> None:
        screens.exposure_epsilon(self.q_hi, self.q_lo, self.exposures)

    def cost(self, *, adjacency: Adjacency = "null") -> Cost:
        """Return the loss of the worst course of a record through all its exposures."""
        require_slot(self, adjacency)
        rho = self.exposures * _screen_cost(self.q_hi, self.q_lo).rho
        epsilon = outward(screens.exposure_epsilon(self.q_hi, self.q_lo, self.exposures))
        return Cost(epsilon, rho=min(rho, epsilon**2 / 2))

    def summary(self) -> str:
        looks = counted_words(self.exposures, "look")
        return f"screen with rates {self.q_hi:.4g} and {self.q_lo:.4g}, at most {looks} at each record"


@dataclass(frozen=True, slots=True)
class TopCEvent(Event):
    """A batch drawn without replacement with weights exp(scale * score), scores in [0, 1].

    `series` says how rounds on one pool pay: `single` stands alone; the first round of a series is `opened` and pays
    `scale` once for all its records, since each is picked at most once; every `continued` round descends from the
    round before it and pays only for what a batch tells about records it leaves out.
    """

    pool_size: int
    picks: int
    scale: float
    series: Literal["single", "opened", "continued"] = "single"
    kind: ClassVar[str] = "top_c"
    words: ClassVar[EventWords] = EventWords(
        _("top-c choice"),
        ngettext_noop(
            "%(picks)s of %(pool_size)s record by a noisy score", "%(picks)s of %(pool_size)s records by a noisy score"
        ),
        counted="pool_size",
    )
    valid_for: ClassVar[frozenset[Adjacency]] = FIXED_SLOTS

    def __post_init__(self) -> None:
        screens.top_c_epsilon(self.pool_size, self.picks, self.scale)
        checks.one_of("series", self.series, ("single", "opened", "continued"))

    @property
    def needs_parent(self) -> bool:
        return self.series == "continued"

    def check_parent(self, parent: Event | None) -> None:
        """Refuse to continue anything but a series whose scale and pool cover this round."""
        Event.check_parent(self, parent)
        if not self.needs_parent:
            return
        if not isinstance(parent, TopCEvent) or parent.series == "single":
            raise ValueError("a continued top-c round must descend from an opened or continued one")
        if self.scale > parent.scale:
            raise ValueError(f"scale must be at most {parent.scale} of the round before, got {self.scale}")

    def cost(self, *, adjacency: Adjacency = "null") -> Cost:
        require_slot(self, adjacency)
        shift = screens.top_c_shift(self.pool_size, self.picks, self.scale)
        shift = outward(shift)
        epsilon = {"single": max(self.scale, shift), "opened": self.scale + shift, "continued": shift}[self.series]
        # The pathwise argument behind a series is one of pure losses; in rho every round stands alone.
        rho = screens.top_c_rho(self.pool_size, self.picks, self.scale)
        return Cost(epsilon, rho=outward(rho))

    def summary(self) -> str:
        place = {"single": "", "opened": ", the first round of a series", "continued": ", a further round of a series"}
        records = counted_words(self.pool_size, "record")
        return f"{self.picks} of {records} by noisy score at scale {self.scale:.4g}{place[self.series]}"


@dataclass(frozen=True, slots=True)
class StreamEvent(Event):
    """A whole stream: each record is examined in one slot and feeds at most one batch, of a step or of running sums.

    `schedule` is `flsw` (updates at fixed times) or `flmb` (updates after a fixed number of selections, whose times
    show). With hidden selection noise is added to empty windows too and neither counts nor times leave the system.
    """

    q_hi: float
    q_lo: float
    update: Event
    selection_visible: bool
    schedule: Literal["flsw", "flmb"] = "flsw"
    kind: ClassVar[str] = "stream"
    words: ClassVar[EventWords] = EventWords(
        _("stream"), _("one coin per record, rate %(q_hi)s or %(q_lo)s, and one noisy update")
    )
    valid_for: ClassVar[frozenset[Adjacency]] = FIXED_SLOTS

    def __post_init__(self) -> None:
        screens.screen_losses(self.q_hi, self.q_lo)
        checks.one_of("schedule", self.schedule, ("flsw", "flmb"))
        if not isinstance(self.update, MinibatchSgdEvent | RunningSumsEvent):
            raise ValueError(f"{self.update.kind} is no update of a stream")
        if self.schedule == "flmb" and not self.selection_visible:
            raise no_proof(
                self.kind,
                "null",
                "fixed-length mini-batches publish their timing, so selection cannot be hidden",
            )

    def cost(self, *, adjacency: Adjacency = "null") -> Cost:
        require_slot(self, adjacency)
        if self.selection_visible:
            update = self.update.cost(adjacency=adjacency)
            epsilon = screens.stream_epsilon(self.q_hi, self.q_lo, update.epsilon, selection_visible=True)
            rho = _screen_cost(self.q_hi, self.q_lo).rho + update.rho
            return Cost(outward(epsilon), update.delta, rho=min(outward(epsilon) ** 2 / 2, outward(rho)))
        return hidden_cost(self, self.update, self.q_hi, adjacency)

    def summary(self) -> str:
        view = "visible" if self.selection_visible else "hidden"
        return f"stream with {view} selection at rates {self.q_hi:.4g} and {self.q_lo:.4g}, {self.update.summary()}"


@dataclass(frozen=True, slots=True)
class ScreenRoundEvent(Event):
    """A further round of a screen with capped exposures; the entry that opened the screen paid for all its rounds.

    It descends from that entry or from the round before it, and examines only records whose looks are not used up.
    """

    q_hi: float
    q_lo: float
    kind: ClassVar[str] = "screen_round"
    words: ClassVar[EventWords] = EventWords(
        "round of a screen", "coins of rate %(q_hi)s or %(q_lo)s, paid with the first round"
    )
    valid_for: ClassVar[frozenset[Adjacency]] = FIXED_SLOTS

    def __post_init__(self) -> None:
        screens.screen_losses(self.q_hi, self.q_lo)

    @property
    def needs_parent(self) -> bool:
        return True

    @property
    def series_kinds(self) -> tuple[str, ...]:
        return (ExposureCappedScreenEvent.kind, self.kind)

    def check_parent(self, parent: Event | None) -> None:
        Event.check_parent(self, parent)
        if not isinstance(parent, ExposureCappedScreenEvent | ScreenRoundEvent):
            raise ValueError("a screen round must descend from the screen with capped exposures that opened it")
        if self.q_hi > parent.q_hi or self.q_lo < parent.q_lo:
            raise ValueError(f"rates must lie within [{parent.q_lo}, {parent.q_hi}], got [{self.q_lo}, {self.q_hi}]")

    def cost(self, *, adjacency: Adjacency = "null") -> Cost:
        """Return zero: the worst course of a record through all rounds is already charged."""
        require_slot(self, adjacency)
        return Cost(0.0)

    def summary(self) -> str:
        return f"a further round of a paid screen with rates {self.q_hi:.4g} and {self.q_lo:.4g}"


@dataclass(frozen=True, slots=True)
class SecretChoiceEvent(Event):
    """Records chosen by secret coins of public rate at most `rate`; ids, number and times of them stay inside.

    What is computed from them pays when it is released, as a `secret_sample` of this rate.
    """

    rate: float
    kind: ClassVar[str] = "secret_choice"
    words: ClassVar[EventWords] = EventWords(
        _("secret choice"), _("Poisson sample of rate %(rate)s; charged with the model")
    )
    valid_for: ClassVar[frozenset[Adjacency]] = FIXED_SLOTS

    def __post_init__(self) -> None:
        checks.rate("rate", self.rate)

    def cost(self, *, adjacency: Adjacency = "null") -> Cost:
        require_slot(self, adjacency)
        return Cost(0.0)

    def summary(self) -> str:
        return f"records chosen by secret coins of rate at most {self.rate:.4g}, shown to nobody outside"
