"""Events of the gates, and the delta and thresholds of the threshold gate (private partition selection)."""

# A text is released with its noisy count when that count reaches the threshold; a text with fewer true contributions
# than the floor never is. Counted from floor - 1, a text that falls under the floor is a text with no contribution at
# all, so a floor f moves every threshold up by f - 1 and nothing else changes. A floor on top of an unmoved threshold
# would be a second, noiseless gate and has no delta to speak of.

import math
import re
from bisect import bisect_right
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import ClassVar, Final, Literal, Self

from scipy.special import log_ndtr, ndtri

from privacy.accounting import checks, gate
from privacy.accounting.composition import gaussian_delta, gaussian_rho
from privacy.accounting.cost import ADJACENCIES, Adjacency, Cost, Unit, float_at_least, outward
from privacy.accounting.event import NOISE_WORDS, Event, EventWords
from privacy.wording import gettext_noop as _
from privacy.wording import ngettext_noop

ThresholdNoise = Literal["laplace", "discrete_laplace", "truncated_geometric", "weighted_gaussian"]


def unit_scale(epsilon: float) -> float:
    checks.positive("epsilon", epsilon)
    return float_at_least(1 / Fraction(epsilon))


def laplace_delta(scale: float, threshold: float, floor: int = 1) -> float:
    r"""Return the chance that a text with `floor` contributions reaches `threshold` under Laplace noise.

    Parameters
    ----------
    scale : float
        Noise scale, 1/epsilon, > 0.
    threshold : float
        Smallest noisy count that is released.
    floor : int
        Smallest true count that can be released, >= 1.

    Returns
    -------
    float
        :math:`\tfrac12 e^{-(T-f)/s}`, the delta of one text under adding or removing one record.
    """
    checks.positive("scale", scale)
    checks.at_least("floor", floor, 1)
    distance = (threshold - floor) / scale
    return math.exp(-distance) / 2 if distance >= 0 else 1 - math.exp(distance) / 2


def laplace_threshold(epsilon: float, delta: float, floor: int = 1) -> float:
    r"""Return the threshold :math:`f + \ln(1/(2\delta))/\varepsilon`, rounded up until `laplace_delta` agrees."""
    checks.positive("epsilon", epsilon)
    checks.delta_in_open_interval("delta", delta)
    threshold = floor + max(0.0, -math.log(2 * delta) / epsilon)
    while laplace_delta(unit_scale(epsilon), threshold, floor) > delta and delta < 0.5:
        threshold = math.nextafter(threshold, math.inf) * (1 + 2.0**-50)
    return threshold


def discrete_laplace_delta(scale: float, threshold: float, floor: int = 1) -> float:
    r"""Return the same chance for integer noise with mass proportional to :math:`e^{-|z|/s}`.

    Returns
    -------
    float
        :math:`e^{-(T-f)/s}/(1 + e^{-1/s})` for an integer threshold T > f.
    """
    checks.positive("scale", scale)
    checks.at_least("floor", floor, 1)
    steps = math.ceil(threshold) - floor
    if steps >= 1:
        return math.exp(-steps / scale) / (1 + math.exp(-1 / scale))
    return 1 - math.exp(-(1 - steps) / scale) / (1 + math.exp(-1 / scale))


def discrete_laplace_threshold(epsilon: float, delta: float, floor: int = 1) -> int:
    checks.positive("epsilon", epsilon)
    checks.delta_in_open_interval("delta", delta)
    steps = max(1, math.floor(-math.log(delta * (1 + math.exp(-epsilon))) / epsilon) - 1)
    while discrete_laplace_delta(unit_scale(epsilon), floor + steps, floor) > delta:
        steps += 1
    return floor + steps


def truncated_geometric_delta(epsilon: float, bound: int) -> float:
    r"""Return the mass of the largest value of geometric noise truncated to [-bound, bound].

    Parameters
    ----------
    epsilon : float
        Decay of the noise per unit, > 0.
    bound : int
        Largest noise value, >= 0; a text comes out iff its noisy count exceeds it.

    Returns
    -------
    float
        :math:`q^{b}(1-q)/(1 + q - 2q^{b+1})` with :math:`q = e^{-\varepsilon}`.

    References
    ----------
    .. [1] Desfontaines, Voss, Gipson, Mandayam, "Differentially private partition selection", 2022.
    """
    checks.positive("epsilon", epsilon)
    checks.at_least("bound", bound, 0)
    # 1 + q - 2 q^(b+1) = (1 - q) + 2 q (1 - q^b), a sum of positive terms.
    rest = -math.expm1(-epsilon) + 2 * math.exp(-epsilon) * -math.expm1(-epsilon * bound)
    return math.exp(-epsilon * bound) * -math.expm1(-epsilon) / rest


def truncated_geometric_bound(epsilon: float, delta: float) -> int:
    checks.positive("epsilon", epsilon)
    checks.delta_in_open_interval("delta", delta)
    ratio = (math.expm1(epsilon) + 2 * delta) / ((math.exp(epsilon) + 1) * delta)
    bound = max(0, math.floor(math.log(ratio) / epsilon) - 1)
    while truncated_geometric_delta(1 / unit_scale(epsilon), bound) > delta:
        bound += 1
    return bound


def weighted_gaussian_delta(epsilon: float, sigma: float, threshold: float, texts: int, floor: int = 1) -> float:
    r"""Return the delta of releasing texts by a Gaussian-noised sum of contributor weights.

    Each contributor spreads weight :math:`1/\sqrt{j}` over their `j` <= `texts` texts, an L2 norm of one.

    Parameters
    ----------
    epsilon : float
        Loss at which delta is evaluated, >= 0.
    sigma : float
        Standard deviation of the noise, > 0.
    threshold : float
        Smallest noisy weight that is released.
    texts : int
        Largest number of texts of one contributor, >= 1.
    floor : int
        Smallest number of contributors of a released text, >= 1.

    Returns
    -------
    float
        The Gaussian mechanism's delta at ratio 1/sigma, plus the largest chance over `j` that one of `j` texts
        which stand or fall with this contributor is released.
    """
    checks.positive("sigma", sigma)
    checks.at_least("texts", texts, 1)
    checks.at_least("floor", floor, 1)
    worst = 0.0
    for j in range(1, texts + 1):
        hidden = j * float(log_ndtr((threshold - (floor - 1) - 1 / math.sqrt(j)) / sigma))
        worst = max(worst, -math.expm1(hidden))
    return min(1.0, gaussian_delta(1 / sigma, epsilon) + worst)


@lru_cache(maxsize=256)
def weighted_gaussian_noise(epsilon: float, delta: float, texts: int, floor: int = 1) -> tuple[float, float]:
    """Return (sigma, threshold) with `weighted_gaussian_delta` at most `delta` and a low threshold.

    The split of `delta` between noise and threshold is the best of nineteen equal steps.
    """
    checks.positive("epsilon", epsilon)
    checks.delta_in_open_interval("delta", delta)
    checks.at_least("texts", texts, 1)
    choices = [_noise_for_split(epsilon, delta, part / 20, texts, floor) for part in range(1, 20)]
    return min(choices, key=lambda choice: choice[1])


def _noise_for_split(epsilon: float, delta: float, share: float, texts: int, floor: int) -> tuple[float, float]:
    low, high = 0.0, 1.0
    while gaussian_delta(1 / high, epsilon) > share * delta:
        low, high = high, 2 * high
    while high - low > 1e-12 * high:
        middle = (low + high) / 2
        low, high = (low, middle) if gaussian_delta(1 / middle, epsilon) <= share * delta else (middle, high)
    sigma, rest = high, (1 - share) * delta
    threshold = max(
        1 / math.sqrt(j) + sigma * -float(ndtri(-math.expm1(math.log1p(-rest) / j))) for j in range(1, texts + 1)
    )
    threshold += floor - 1
    while weighted_gaussian_delta(epsilon, sigma, threshold, texts, floor) > delta:
        threshold += 1e-12 * max(1.0, abs(threshold))
    return sigma, threshold


ANY_ADJACENCY: frozenset[Adjacency] = frozenset(ADJACENCIES)

# Accuracy of the delta series is 1e-9 at worst; the charge covers it.
_DELTA_MARGIN = 1e-9


def _check_unit(unit: str, texts_per_contributor: int) -> None:
    checks.one_of("unit", unit, ("record", "contributor"))
    checks.at_least("texts_per_contributor", texts_per_contributor, 1)
    if unit == "record" and texts_per_contributor != 1:
        raise ValueError(f"texts_per_contributor must be 1 for unit record, got {texts_per_contributor}")


def _changed_texts(texts_per_contributor: int, adjacency: Adjacency) -> int:
    checks.one_of("adjacency", adjacency, ADJACENCIES)
    return texts_per_contributor * (2 if adjacency == "replace" else 1)


class GateEvent(Event):
    """One run of a gate over a pool that stands, whatever its mechanism: all that is released is paid by its cost.

    What is more than such a run is refused unless the event of the gate declares that its cost is proved for it, too.

    Attributes
    ----------
    unit : {"record", "contributor"}
        Whose presence the run hides.
    proved_over_snapshots : bool
        Whether the cost holds for any rows of a table that stays where it is (`GateOfSnapshotEvent`). It may then rest
        on nothing that only an upload has: rows that were checked, counted or compared when they came.
    proved_in_windows : bool
        Whether the cost holds for each of many runs over overlapping uploads (`GateWindowEvent`). It must bound what a
        run tells of one record of any upload, whatever the others hold and whatever came out before; its draws are made
        anew for each run; and its epsilon, delta and rho add up over runs, and by `Cost.of_group` over records.
    """

    __slots__ = ()
    unit: Unit
    proved_over_snapshots: ClassVar[bool] = False
    proved_in_windows: ClassVar[bool] = False


@dataclass(frozen=True, slots=True)
class KAnonymityGateEvent(GateEvent):
    """Each record kept by a secret coin, then texts released whose count in the sample reaches `k`.

    `epsilon` is the point at which the gate's delta is evaluated, for one text. With unit `contributor`, one record per
    (contributor, text) enters and `texts_per_contributor` is the cap that was enforced. `normalizer` names the text
    normalisation, which was fixed beforehand.
    """

    k: int
    sampling_rate: float
    epsilon: float
    unit: Unit = "record"
    texts_per_contributor: int = 1
    normalizer: str = ""
    method: gate.DeltaMethod = "exact"
    kind: ClassVar[str] = "k_anonymity_gate"
    words: ClassVar[EventWords] = EventWords(
        _("k-anonymity gate"), _("texts with at least %(k)s in a secret %(sampling_rate)s sample")
    )
    valid_for: ClassVar[frozenset[Adjacency]] = ANY_ADJACENCY
    proved_over_snapshots: ClassVar[bool] = True
    proved_in_windows: ClassVar[bool] = True

    def __post_init__(self) -> None:
        _check_unit(self.unit, self.texts_per_contributor)
        gate.check_gate(self.k, self.sampling_rate, self.epsilon, self.method)

    @property
    def delta_per_text(self) -> float:
        delta = gate.gate_delta(self.k, self.sampling_rate, self.epsilon, self.method)
        return min(1.0, float(delta) * (1 + _DELTA_MARGIN))

    def cost(self, *, adjacency: Adjacency = "null") -> Cost:
        """Return (m eps, m delta) for a contributor of at most m texts; twice that for a replacement."""
        return Cost(self.epsilon, self.delta_per_text).times(_changed_texts(self.texts_per_contributor, adjacency))

    def composed(self, runs: int, *, adjacency: Adjacency) -> Cost:
        """Return the cost of `runs` texts, or runs over one text, each with coins of its own, by their product."""
        replaced = _changed_texts(1, adjacency) > 1
        added = Cost(self.epsilon, self.delta_per_text).times(_changed_texts(runs, adjacency))
        together = gate.runs_epsilon(
            self.k, self.sampling_rate, self.epsilon, self.delta_per_text, runs, replaced=replaced
        )
        # Both hold at the same delta.
        return Cost(together, added.delta, rho=min(added.rho, Cost(together).rho))

    def summary(self) -> str:
        return f"k-anonymity gate with k = {self.k} on a {self.sampling_rate:.4g} sample, per {self.unit}"


def _refuse_published_bound(event: KAnonymityGateEvent) -> None:
    if event.method != "exact":
        raise ValueError(f"runs are composed by the exact curve of the gate, got {event.method}")


@dataclass(frozen=True, slots=True)
class ComposedCappedGateEvent(KAnonymityGateEvent):
    """The k-anonymity gate for contributors of several texts, where every kept text of theirs has a coin of its own."""

    kind: ClassVar[str] = "composed_capped_gate"
    words: ClassVar[EventWords] = EventWords(
        _("k-anonymity gate"),
        ngettext_noop(
            "texts with at least %(k)s in a secret %(sampling_rate)s sample, one a person",
            "texts with at least %(k)s in a secret %(sampling_rate)s sample, at most "
            "%(texts_per_contributor)s a person",
        ),
        counted="texts_per_contributor",
    )

    def __post_init__(self) -> None:
        KAnonymityGateEvent.__post_init__(self)
        _refuse_published_bound(self)
        if self.unit != "contributor":
            raise ValueError(f"a cap protects one contributor, got unit {self.unit}")

    def cost(self, *, adjacency: Adjacency = "null") -> Cost:
        """Return the m-fold product of one text's cost, at a delta m times its own.

        Notes
        -----
        Which texts are kept follows from ranks that are independent of the coins. Given the ranks a contributor's texts
        come out independently of each other, so m of them are dominated by m draws of the pair of one text.
        """
        return self.composed(self.texts_per_contributor, adjacency=adjacency)


@dataclass(frozen=True, slots=True)
class ThresholdGateEvent(GateEvent):
    """Texts released when their noisy number of contributions reaches a threshold.

    `noise_scale` is the Laplace scale, the Gaussian sigma, or 1 / epsilon of the truncated geometric; `threshold` is
    the smallest noisy count that comes out. Left at zero, both follow from `epsilon` and `delta`; either way they
    are stored, and the charge is computed from them. `floor` is the smallest true count that can come out. A
    Gaussian gate covers all texts of a contributor at once; the others pay per text.
    """

    epsilon: float
    delta: float
    unit: Unit = "record"
    texts_per_contributor: int = 1
    noise: ThresholdNoise = "laplace"
    floor: int = 1
    noise_scale: float = 0.0
    threshold: float = 0.0
    kind: ClassVar[str] = "threshold_gate"
    words: ClassVar[EventWords] = EventWords(
        _("noisy threshold gate"), _("texts whose noisy count reaches %(threshold)s")
    )
    valid_for: ClassVar[frozenset[Adjacency]] = ANY_ADJACENCY
    proved_over_snapshots: ClassVar[bool] = True
    proved_in_windows: ClassVar[bool] = True

    def __post_init__(self) -> None:
        _check_unit(self.unit, self.texts_per_contributor)
        checks.positive("epsilon", self.epsilon)
        checks.delta_in_open_interval("delta", self.delta)
        checks.at_least("floor", self.floor, 1)
        checks.one_of("noise", self.noise, ("laplace", "discrete_laplace", "truncated_geometric", "weighted_gaussian"))
        checks.not_negative("noise_scale", self.noise_scale)
        checks.not_negative("threshold", self.threshold)
        if (self.noise_scale == 0) != (self.threshold == 0):
            raise ValueError(f"noise_scale and threshold go together, got {self.noise_scale} and {self.threshold}")
        if self.noise_scale == 0:
            scale, level = self._calibrated()
            object.__setattr__(self, "noise_scale", scale)
            object.__setattr__(self, "threshold", level)
        if self.noise == "truncated_geometric" and self.truncation < 0:
            raise ValueError(f"threshold must be >= floor = {self.floor}, got {self.threshold}")

    def _calibrated(self) -> tuple[float, float]:
        scale = unit_scale(self.epsilon)
        if self.noise == "laplace":
            return scale, laplace_threshold(self.epsilon, self.delta, self.floor)
        if self.noise == "discrete_laplace":
            return scale, float(discrete_laplace_threshold(self.epsilon, self.delta, self.floor))
        if self.noise == "truncated_geometric":
            return scale, float(truncated_geometric_bound(self.epsilon, self.delta) + self.floor)
        return weighted_gaussian_noise(self.epsilon, self.delta, self.texts_per_contributor, self.floor)

    @property
    def truncation(self) -> int:
        """Largest value of truncated geometric noise."""
        return int(self.threshold) - self.floor

    def cost(self, *, adjacency: Adjacency = "null") -> Cost:
        """Return the charge of the stored noise and threshold, whatever was asked for when they were chosen."""
        copies = _changed_texts(self.texts_per_contributor, adjacency)
        if self.noise == "weighted_gaussian":
            delta = weighted_gaussian_delta(
                self.epsilon, self.noise_scale, self.threshold, self.texts_per_contributor, self.floor
            )
            rho = min(self.epsilon**2 / 2, gaussian_rho(1.0, self.noise_scale))
            once = Cost(self.epsilon, self._settled(delta), rho=outward(rho))
            return once.of_two_steps() if adjacency == "replace" else once
        decay = 1 / Fraction(self.noise_scale)
        loss = self.epsilon if decay <= Fraction(self.epsilon) else float_at_least(decay)
        if self.noise == "laplace":
            delta = laplace_delta(self.noise_scale, self.threshold, self.floor)
        elif self.noise == "discrete_laplace":
            delta = discrete_laplace_delta(self.noise_scale, self.threshold, self.floor)
        else:
            delta = truncated_geometric_delta(1 / self.noise_scale, self.truncation)
        return Cost(loss, self._settled(delta)).times(copies)

    def _settled(self, delta: float) -> float:
        return self.delta if delta <= self.delta else min(1.0, delta * (1 + _DELTA_MARGIN))

    def summary(self) -> str:
        noise = f"{NOISE_WORDS[self.noise]} of scale {self.noise_scale:.4g}"
        return f"threshold gate at {self.threshold:.4g} with {noise}, per {self.unit}"


SNAPSHOT = re.compile(r"[0-9a-f]{64}")


@dataclass(frozen=True, slots=True)
class GateOfSnapshotEvent(Event):
    """One run of a gate over the files of one snapshot, charged as the same run over an upload.

    `inner` is the run. `snapshot` is the id under which the table was registered; it is keyed with a secret of the
    registration, so it has the same law whatever the rows are. Another snapshot is another pool: a record that stands
    in both pays for both.
    """

    inner: Event
    snapshot: str
    kind: ClassVar[str] = "gate_of_snapshot"
    words: ClassVar[EventWords] = EventWords(
        _("gate over a registered table"), _("registered table, snapshot %(snapshot)s")
    )
    valid_for: ClassVar[frozenset[Adjacency]] = ANY_ADJACENCY

    def __post_init__(self) -> None:
        if not isinstance(self.inner, GateEvent):
            raise ValueError(f"{self.inner.kind} is no run of a gate")
        if not self.inner.proved_over_snapshots:
            raise ValueError(f"{self.inner.kind} has no proof over a registered table")
        if not SNAPSHOT.fullmatch(self.snapshot):
            raise ValueError("a snapshot is named by 64 hexadecimal digits")

    @property
    def unit(self) -> Unit:
        assert isinstance(self.inner, GateEvent)
        return self.inner.unit

    def cost(self, *, adjacency: Adjacency = "null") -> Cost:
        return self.inner.cost(adjacency=adjacency)

    def summary(self) -> str:
        return f"a registered table: {self.inner.summary()}"


# A week of hours; a run reads all of them.
MOST_UPLOADS_TOGETHER: Final = 168


@dataclass(frozen=True, slots=True)
class GateWindowEvent(Event):
    r"""One run of a gate over the newest `window` uploads; the first entry of a series pays for all uploads to come.

    Uploads are epochs, counted from 1 in the order of their first runs. The run of epoch e reads the uploads of epochs
    :math:`e - W + 1` to e. `inner` is what one run costs one record. `epochs` says how many epochs were entered before
    this run, and `repeats` names the epochs of all runs before it that were not the first of their epoch: any of them
    may have released. The first entry opens the series, each later one descends from the one before.

    A record stands in one upload, and no upload depends on the records of another but by what a gate let out.
    """

    inner: Event
    window: int
    epoch: int
    epochs: int = 0
    repeats: tuple[int, ...] = ()
    kind: ClassVar[str] = "gate_window"
    words: ClassVar[EventWords] = EventWords(
        _("gate over several uploads"),
        ngettext_noop(
            "%(window)s upload at a time; the first run pays for all",
            "at most %(window)s uploads together; the first run pays for all",
        ),
        counted="window",
    )
    valid_for: ClassVar[frozenset[Adjacency]] = ANY_ADJACENCY

    def __post_init__(self) -> None:
        if not isinstance(self.inner, GateEvent):
            raise ValueError(f"{self.inner.kind} is no run of a gate")
        if not self.inner.proved_in_windows:
            raise ValueError(f"{self.inner.kind} has no proof over uploads that are counted together")
        if self.inner.unit != "record":
            raise ValueError("a person may be in every upload, so a series of uploads protects one record")
        checks.at_least("window", self.window, 1)
        if self.window > MOST_UPLOADS_TOGETHER:
            raise ValueError(f"window must be at most {MOST_UPLOADS_TOGETHER}, got {self.window}")
        checks.at_least("epochs", self.epochs, 0)
        if not 1 <= self.epoch <= self.epochs + 1:
            raise ValueError(f"epoch must lie in [1, {self.epochs + 1}], got {self.epoch}")
        if list(self.repeats) != sorted(self.repeats) or not all(1 <= epoch <= self.epochs for epoch in self.repeats):
            raise ValueError("repeats must be epochs that were entered, in their order")

    @classmethod
    def next_of(cls, before: "GateWindowEvent | None", inner: Event, *, window: int, epoch: int | None = None) -> Self:
        """Return the run after the entry `before`, or the one that opens a series; without `epoch`, of a new one."""
        epochs, repeats = (0, ()) if before is None else before.counted
        return cls(inner, window, epochs + 1 if epoch is None else epoch, epochs, repeats)

    @property
    def counted(self) -> tuple[int, tuple[int, ...]]:
        """Epochs that were entered, and those of repeated runs, once this run is made."""
        if self.epoch > self.epochs:
            return self.epoch, self.repeats
        return self.epochs, tuple(sorted((*self.repeats, self.epoch)))

    @property
    def first(self) -> int:
        return max(1, self.epoch - self.window + 1)

    @property
    def needs_parent(self) -> bool:
        return self.epochs > 0

    def check_parent(self, parent: Event | None) -> None:
        """Refuse to continue anything but this series, as far as it has come."""
        Event.check_parent(self, parent)
        if not self.needs_parent:
            return
        if (
            not isinstance(parent, GateWindowEvent)
            or parent.kind != self.kind
            or (parent.inner, parent.window) != (self.inner, self.window)
        ):
            raise ValueError("a further run must descend from one of the same gate over as many uploads")
        if parent.counted != (self.epochs, self.repeats):
            raise ValueError("a further run must count every run of the series before")

    def cost(self, *, adjacency: Adjacency = "null") -> Cost:
        r"""Return what this run adds to the series: W runs with the first entry, nothing with an ordinary one.

        Notes
        -----
        Let neighbours differ in a record of the upload of epoch j. Only runs of the epochs j to j + W - 1 read it.
        Given what was released before, every other run has the same law for both, and so has the choice of what is
        uploaded and run next. So the ratio of all outputs is the product of the ratios of those runs alone, each of
        which is within `inner`: the record pays for as many runs as those epochs had, by adaptive composition. These
        are at most W first runs and r repeats, r being the repeats within any W consecutive epochs at the most.

        The entry that opens the series pays W runs; one that makes r larger pays one more, before the run reads
        anything. So at every moment the account holds at least what the runs so far cost any one record, which is all
        that a filter needs: for each pair of neighbours it bounds the runs that can tell them apart. An epsilon, a
        delta and a rho of a run add up alike. Which record it is does not matter, nor how many epochs follow: records
        of different uploads are different ones (parallel composition).

        For a person of at most m records of all uploads, a run that reads n of them costs the group of n; every record
        is read at most C = W + r times, so these n add up to at most m C, and the epsilon, delta and rho of groups are
        convex in n and nothing at 0: all runs cost at most C times the group of m. `Cost.of_group` of these entries
        is no less.
        """
        return self.inner.cost(adjacency=adjacency).times(self.runs_paid)

    @property
    def runs_paid(self) -> int:
        return self._paid(*self.counted) - self._paid(self.epochs, self.repeats)

    def _paid(self, epochs: int, repeats: tuple[int, ...]) -> int:
        if not epochs:
            return 0
        within = (bisect_right(repeats, first + self.window - 1) - place for place, first in enumerate(repeats))
        return self.window + max(within, default=0)

    def summary(self) -> str:
        if self.first == self.epoch:
            return f"upload {self.epoch} alone: {self.inner.summary()}"
        return f"uploads {self.first} to {self.epoch} together: {self.inner.summary()}"


@dataclass(frozen=True, slots=True)
class ComposedGateWindowEvent(GateWindowEvent):
    """A k-anonymity gate over the newest uploads whose window is charged by the product of its runs."""

    kind: ClassVar[str] = "composed_gate_window"
    words: ClassVar[EventWords] = EventWords(
        _("gate over several uploads"), GateWindowEvent.words.how, counted="window"
    )

    def __post_init__(self) -> None:
        GateWindowEvent.__post_init__(self)
        if not isinstance(self.inner, KAnonymityGateEvent):
            raise ValueError(f"{self.inner.kind} has no curve whose runs are composed")
        _refuse_published_bound(self.inner)

    def cost(self, *, adjacency: Adjacency = "null") -> Cost:
        """Return the W-fold product of one run with the first entry, one run with a repeat that needs it.

        Notes
        -----
        Gate and W are fixed with the first entry. Neighbours differ in a record that W first runs read. Each of these
        is a random function of one draw of the gate's dominating pair, chosen by what came before. So all W draws could
        be made and shown when the series opens: one release, whose curve is that of the product, and the runs are work
        on it. A repeat is not among the W, since whether it happens is known only later; it pays a run of its own.

        For a person of m records in all uploads, the first runs are one interactive mechanism with this cost for each
        record, hence with `Cost.of_group` of it for m; a repeat costs the group of those it reads, as in
        `GateWindowEvent`, and interactive mechanisms add up.
        """
        if self.needs_parent:
            return GateWindowEvent.cost(self, adjacency=adjacency)
        assert isinstance(self.inner, KAnonymityGateEvent)
        return self.inner.composed(self.window, adjacency=adjacency)


WINDOW_KINDS: Final = (GateWindowEvent.kind, ComposedGateWindowEvent.kind)


def next_window_run(
    before: GateWindowEvent | None, inner: Event, *, window: int, epoch: int | None = None
) -> GateWindowEvent:
    """Return the next run of a series, charged by its product where the gate has a curve for it."""
    exact = isinstance(inner, KAnonymityGateEvent) and inner.method == "exact"
    kind = ComposedGateWindowEvent if exact else GateWindowEvent
    return kind.next_of(before, inner, window=window, epoch=epoch)
