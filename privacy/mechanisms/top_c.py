"""Choose c of m records with exponential weights, without replacement, in one streaming pass."""

import decimal
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from privacy.mechanisms.randomness import RandomSource

BLOCK_ROWS = 131_072
# Covers, many times over, what float64 exponentials and logarithms lose per unit of magnitude.
FLOAT_MARGIN = 2.0**-44


def select_top_c(
    scores: NDArray[np.floating] | Iterable[NDArray[np.floating]], *, picks: int, scale: float, rng: RandomSource
) -> NDArray[np.int64]:
    r"""Draw `picks` records one after another, each with probability proportional to :math:`e^{a u}`.

    Every record i runs an exponential race: with :math:`E_i = -\ln(1 - V_i)` for a uniform
    real :math:`V_i`, the `picks` smallest keys :math:`\ln E_i - a u_i` are exactly such a draw
    (the same law as Gumbel noise on the scores).

    What is exact: the selected set, given the scores. :math:`V_i` is known by its first 64
    bits; float64 settles a comparison only when its error bound allows it, and the contested
    records get further bits and decimal logarithms until they separate. What is not: the time
    taken, which depends on the scores, and the order of the picks, which is not returned.

    Parameters
    ----------
    scores : ndarray of floats, shape (n_records,), or iterable of such blocks
        Scores u in [0, 1], each a function of its record and of released values only.
    picks : int
        Number c of records to select, between 1 and the number of records.
    scale : float
        Weight exponent a, > 0. One record's score moves its own weight by at most e**a.
    rng : RandomSource
        Source of the noise.

    Returns
    -------
    ndarray of int64, shape (picks,)
        Row numbers in increasing order.

    Raises
    ------
    ValueError
        If a parameter is out of range, a score is not a number in [0, 1], or there are fewer
        records than `picks`.

    References
    ----------
    .. [1] Durfee, Rogers, "Practical differentially private top-k selection with
       pay-what-you-get composition", 2019, Lemma 4.2.
    .. [2] Efraimidis, Spirakis, "Weighted random sampling with a reservoir", 2006.
    """
    if picks < 1:
        raise ValueError(f"picks must be >= 1, got {picks}")
    if not (scale > 0 and np.isfinite(scale)):
        raise ValueError(f"scale must be > 0 and finite, got {scale}")
    leaders = _Contenders.none()
    n_records = 0
    limit = np.inf  # no record whose key is surely above it can be among the first `picks`
    for block in _blocks(scores):
        words = rng.words(len(block))
        rows = np.flatnonzero(words <= _largest_word(limit + scale))
        arrivals = _Contenders.of(n_records + rows, words[rows], block[rows].astype(np.float64), scale)
        n_records += len(block)
        leaders = leaders.joined(arrivals)
        if len(leaders.rows) >= picks:
            limit = np.partition(leaders.high, picks - 1)[picks - 1]
            leaders = leaders.where(leaders.low <= limit)
    if picks > n_records:
        raise ValueError(f"picks must not exceed the {n_records} records, got {picks}")
    return _settle(leaders, picks, scale, rng)


@dataclass(frozen=True, slots=True)
class _Contenders:
    """Records still in the race, with an interval around each key."""

    rows: NDArray[np.int64]
    words: NDArray[np.uint64]
    scores: NDArray[np.float64]
    low: NDArray[np.float64]
    high: NDArray[np.float64]

    @classmethod
    def none(cls) -> "_Contenders":
        empty = np.empty(0)
        return cls(empty.astype(np.int64), empty.astype(np.uint64), empty, empty, empty)

    @classmethod
    def of(
        cls, rows: NDArray[np.int64], words: NDArray[np.uint64], scores: NDArray[np.float64], scale: float
    ) -> "_Contenders":
        uniform = words.astype(np.float64)
        ends = np.stack([uniform * (1 - 2.0**-52), np.minimum((uniform + 1) * (1 + 2.0**-52), 2.0**64)]) * 2.0**-64
        with np.errstate(divide="ignore"):
            low, high = np.log(-np.log1p(-ends))
        pull = scale * scores
        return cls(
            rows,
            words,
            scores,
            low - pull - FLOAT_MARGIN * (1 + np.abs(low) + pull),
            high - pull + FLOAT_MARGIN * (1 + np.abs(high) + pull),
        )

    def where(self, kept: NDArray[np.bool_]) -> "_Contenders":
        return _Contenders(self.rows[kept], self.words[kept], self.scores[kept], self.low[kept], self.high[kept])

    def joined(self, other: "_Contenders") -> "_Contenders":
        return _Contenders(
            np.concatenate([self.rows, other.rows]),
            np.concatenate([self.words, other.words]),
            np.concatenate([self.scores, other.scores]),
            np.concatenate([self.low, other.low]),
            np.concatenate([self.high, other.high]),
        )


def _blocks(scores: NDArray[np.floating] | Iterable[NDArray[np.floating]]) -> Iterator[NDArray[np.floating]]:
    for part in [scores] if isinstance(scores, np.ndarray) else scores:
        if part.ndim != 1:
            raise ValueError(f"scores must have one dimension, got shape {part.shape}")
        for start in range(0, len(part), BLOCK_ROWS):
            block = part[start : start + BLOCK_ROWS]
            # A comparison with nan is false, so this refuses it as well.
            if not (block.min() >= 0 and block.max() <= 1):
                raise ValueError("scores must be numbers in [0, 1]")
            yield block


def _largest_word(log_time: float) -> np.uint64:
    """Return a word that no contender with ln E <= `log_time` exceeds."""
    with np.errstate(over="ignore"):
        bound = -np.expm1(-np.exp(log_time + FLOAT_MARGIN * (1 + abs(log_time)))) if np.isfinite(log_time) else 1.0
    scaled = float(bound) * (1 + 2.0**-40) * 2.0**64 + 1
    return np.uint64(2**64 - 1) if scaled >= 2.0**64 else np.uint64(int(scaled))


def _settle(leaders: _Contenders, picks: int, scale: float, rng: RandomSource) -> NDArray[np.int64]:
    if len(leaders.rows) == picks:
        return np.sort(leaders.rows)
    # Whoever ends below the (c+1)-th smallest lower end has fewer than c rivals who could pass.
    inside = leaders.high < np.partition(leaders.low, picks)[picks]
    outside = leaders.low > np.partition(leaders.high, picks - 1)[picks - 1]
    contested = leaders.where(~inside & ~outside)
    seats = picks - int(inside.sum())
    won = _settle_exactly(contested, seats, scale, rng) if seats else contested.rows[:0]
    return np.sort(np.concatenate([leaders.rows[inside], won]))


def _settle_exactly(contested: _Contenders, seats: int, scale: float, rng: RandomSource) -> NDArray[np.int64]:
    """Extend every contested uniform until the first `seats` keys are separated from the rest."""
    digits = [int(word) for word in contested.words]
    bits = 64
    while True:
        digits = [(value << 64) | rng.bits(64) for value in digits]
        bits += 64
        intervals = [_key_interval(v, bits, u, scale) for v, u in zip(digits, contested.scores, strict=True)]
        order = sorted(range(len(digits)), key=lambda i: intervals[i][0])
        first, rest = order[:seats], order[seats:]
        if not rest or max(intervals[i][1] for i in first) < intervals[rest[0]][0]:
            return contested.rows[first]


def _key_interval(digits: int, bits: int, score: float, scale: float) -> tuple[decimal.Decimal, decimal.Decimal]:
    """Enclose ln(-ln(1 - V)) - a u for V in [digits, digits + 1] / 2**bits."""
    # 1 - V loses up to `bits` binary digits of V next to one, so twice as many are carried.
    context = decimal.Context(prec=2 * bits // 3 + 20)
    slack = decimal.Decimal(10) ** -(bits // 3 + 10)
    pull = context.multiply(decimal.Decimal(scale), decimal.Decimal(score))
    ends = []
    for survival, direction in (((1 << bits) - digits, -1), ((1 << bits) - digits - 1, 1)):
        if survival in (0, 1 << bits):
            ends.append(decimal.Decimal("Infinity") * direction)
            continue
        # `copy_negate` and not a minus, which would round to the caller's decimal context.
        time = context.ln(context.divide(decimal.Decimal(survival), decimal.Decimal(1 << bits))).copy_negate()
        key = context.subtract(context.ln(time), pull)
        ends.append(context.add(key, direction * context.multiply(slack, 1 + abs(key) + pull)))
    return ends[0], ends[1]
