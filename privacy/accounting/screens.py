"""Costs of randomised selection: screens, streams, repeated exposure, top-c batches."""

# A screen selects a record with a probability that depends only on that record and on the last released model, and
# always lies in [q_lo, q_hi]. Its loss is s_1 when it selects and s_0 when it skips; everything else here is built from
# these two numbers.

import math

from privacy.accounting import checks
from privacy.accounting.cost import LARGEST_EXPONENT, Adjacency


def _check_rates(q_hi: float, q_lo: float) -> None:
    if not 0 <= q_lo <= q_hi <= 1:
        raise ValueError(f"rates must rise from q_lo to q_hi within [0, 1], got q_hi={q_hi}, q_lo={q_lo}")


def _log_ratio(high: float, low: float) -> float:
    if high == low:
        return 0.0
    return math.inf if low == 0 else math.log1p((high - low) / low)


def screen_losses(q_hi: float, q_lo: float) -> tuple[float, float]:
    r"""Return the loss of one screening decision, separately for both answers.

    Parameters
    ----------
    q_hi, q_lo : float
        Largest and smallest selection probability, 0 <= q_lo <= q_hi <= 1.

    Returns
    -------
    (selected, skipped) : tuple of float
        :math:`s_1 = \ln(q_{hi}/q_{lo})` and :math:`s_0 = \ln((1-q_{lo})/(1-q_{hi}))`; infinite where an
        answer is possible for one record and impossible for another.

    References
    ----------
    .. [1] Ghassemi, Sarwate, Wright, "Differentially private online active learning with applications to
       anomaly detection", 2016, Lemma 1 (stated for q_hi = 1 - q_lo only).
    """
    _check_rates(q_hi, q_lo)
    return _log_ratio(q_hi, q_lo), _log_ratio(1 - q_lo, 1 - q_hi)


def screen_epsilon(q_hi: float, q_lo: float) -> float:
    """Return the pure loss of one visible screening decision, the larger of its two losses."""
    return max(screen_losses(q_hi, q_lo))


def exponential_screen_rates(threshold: float, norm_bound: float, epsilon: float) -> tuple[float, float]:
    r"""Return the extreme selection probabilities of the exponential screen.

    Parameters
    ----------
    threshold : float
        Half width `b` of the slab around the separator, 0 <= b < M.
    norm_bound : float
        Bound `M` on the norm of every record, > 0; distances to the separator are at most M.
    epsilon : float
        Design parameter of the screen, > 0.

    Returns
    -------
    (q_hi, q_lo) : tuple of float
        :math:`e^{-b\varepsilon/(M-b)}` and :math:`e^{-M\varepsilon/(M-b)}`.

    References
    ----------
    .. [1] Ghassemi et al. 2016, equation 7.
    """
    checks.positive("norm_bound", norm_bound)
    checks.positive("epsilon", epsilon)
    if not 0 <= threshold < norm_bound:
        raise ValueError(f"threshold must lie in [0, {norm_bound}), got {threshold}")
    width = norm_bound - threshold
    return math.exp(-threshold * epsilon / width), math.exp(-norm_bound * epsilon / width)


def exponential_screen_epsilon(threshold: float, norm_bound: float, epsilon: float) -> float:
    r"""Return the exact loss of the exponential screen.

    The loss of a selection is the design parameter itself; the loss of a skip is
    :math:`\ln[(1 - q_{hi} e^{-\varepsilon})/(1 - q_{hi})]` and may exceed it, without bound as the
    threshold goes to zero. The source's condition :math:`q_{hi} \le 1/2` for the smaller of the two is not enough
    to be met by its own experiments.

    Parameters
    ----------
    threshold, norm_bound, epsilon : float
        See `exponential_screen_rates`.

    Returns
    -------
    float
        Pure privacy loss, infinite at ``threshold == 0``.

    References
    ----------
    .. [1] Ghassemi et al. 2016, Lemma 2.
    """
    q_hi, _ = exponential_screen_rates(threshold, norm_bound, epsilon)
    exponent = threshold * epsilon / (norm_bound - threshold)
    if exponent == 0:
        return math.inf
    # (1 - q e^-eps) / (1 - q) = 1 + q (1 - e^-eps) / (1 - q), with both small factors through expm1.
    skipped = math.log1p(q_hi * -math.expm1(-epsilon) / -math.expm1(-exponent))
    return max(epsilon, skipped)


def hidden_selection_epsilon(rate: float, epsilon: float, adjacency: Adjacency = "null") -> float:
    r"""Return the loss of a pure mechanism applied to a record that took part only by a secret coin.

    Parameters
    ----------
    rate : float
        Upper bound on the probability of taking part, in [0, 1].
    epsilon : float
        Loss of the mechanism between a record and a dummy that contributes nothing, >= 0.
    adjacency : {"null", "replace"}
        `null`: :math:`\ln(1 + q(e^{\varepsilon} - 1))`. `replace`: both records may take part, and the two ends of the
        mixture move apart: :math:`\ln[(1 + q(e^{\varepsilon} - 1))/(1 + q(e^{-\varepsilon} - 1))]`.

    Returns
    -------
    float
        Pure privacy loss.
    """
    if not 0 <= rate <= 1:
        raise ValueError(f"rate must lie in [0, 1], got {rate}")
    if not epsilon >= 0:
        raise ValueError(f"epsilon must be >= 0, got {epsilon}")
    if rate == 0:
        return 0.0
    rising = math.log1p(rate * math.expm1(epsilon)) if epsilon < 500 else epsilon + math.log(rate)
    if adjacency == "null":
        return rising
    if adjacency == "replace":
        # 1 + q (e^-eps - 1) reaches zero at q = 1 for an infinite loss.
        floor = rate * math.expm1(-epsilon)
        return rising - math.log1p(floor) if floor > -1 else rising + epsilon
    raise ValueError(f"adjacency must be null or replace, got {adjacency!r}")


def rate_after_release(rate: float, released_epsilon: float) -> float:
    r"""Return how likely a record took part, at most, once something computed from the same secret coins is known.

    Parameters
    ----------
    rate : float
        Upper bound `q` on the probability of taking part, in [0, 1].
    released_epsilon : float
        Total loss :math:`b` (record against dummy, given that it took part) of what was released, >= 0.

    Returns
    -------
    float
        :math:`q e^{b}/(1 - q + q e^{b})` by Bayes' rule. Amplifying the next release by this rate makes the charges
        of all releases add up to the amplification of their sum, which amplifying each by `q` falls short of.
    """
    if not 0 <= rate <= 1:
        raise ValueError(f"rate must lie in [0, 1], got {rate}")
    if not released_epsilon >= 0:
        raise ValueError(f"released_epsilon must be >= 0, got {released_epsilon}")
    return rate / (rate + (1 - rate) * math.exp(-released_epsilon)) if rate else 0.0


def hidden_selection_delta(rate: float, delta: float) -> float:
    """Return rate times delta, the delta against a dummy of a record that took part by a secret coin."""
    return rate * delta


def update_within(
    epsilon: float, delta: float, q_hi: float, q_lo: float, *, selection_visible: bool
) -> tuple[float, float]:
    r"""Return the (epsilon, delta) of one update with which a whole stream costs a limit, record against dummy.

    The inverse of `stream_epsilon` and `hidden_selection_delta`: :math:`\ln(1 + (e^{\varepsilon} - 1)/q_{hi})` and
    :math:`\delta/q_{hi}` where the selection is hidden, :math:`\varepsilon - s_1` and :math:`\delta` where it is seen.

    Parameters
    ----------
    epsilon, delta : float
        The limit, epsilon > 0, 0 <= delta < 1.
    q_hi, q_lo : float
        Extreme selection probabilities of the screen, in (0, 1].

    Returns
    -------
    tuple of float
        Not above 0 where a visible selection costs all of epsilon by itself.
    """
    selected, _skipped = screen_losses(q_hi, q_lo)
    if selection_visible:
        return epsilon - selected, delta
    return inner_epsilon(epsilon, q_hi), delta / q_hi


def inner_epsilon(epsilon: float, rate: float) -> float:
    return math.log1p(math.expm1(epsilon) / rate) if epsilon < LARGEST_EXPONENT else epsilon - math.log(rate)


def stream_epsilon(
    q_hi: float, q_lo: float, update_epsilon: float, *, selection_visible: bool, adjacency: Adjacency = "replace"
) -> float:
    r"""Return the loss of a whole stream in which each record has one slot, one window and one update.

    Parameters
    ----------
    q_hi, q_lo : float
        Extreme selection probabilities of the screen.
    update_epsilon : float
        Loss :math:`\varepsilon_g` of one mini-batch update under `adjacency`, >= 0.
    selection_visible : bool
        Whether counts, times or the empty window can be seen from outside. Visible streams cost
        :math:`\max(s_0, s_1 + \varepsilon_g)` under both adjacencies.
    adjacency : {"replace", "null"}
        What `update_epsilon` was proven for; it only matters where the selection is hidden. `replace`: noise
        is scaled to twice the gradient bound, a record moves the sum by at most half of it, and the cost is
        :math:`\ln[(1 + q_{hi}(e^{\varepsilon_g/2}-1))/(1 + q_{hi}(e^{-\varepsilon_g/2}-1))]`. `null`: the dummy moves
        nothing, and the cost is :math:`\ln(1 + q_{hi}(e^{\varepsilon_g}-1))`.

    Returns
    -------
    float
        Pure privacy loss of the stream.

    References
    ----------
    .. [1] Ghassemi et al. 2016, Theorems 1 to 3 (which charge the sum :math:`\varepsilon_s + \varepsilon_g`).
    """
    selected, skipped = screen_losses(q_hi, q_lo)
    if not update_epsilon >= 0:
        raise ValueError(f"update_epsilon must be >= 0, got {update_epsilon}")
    if selection_visible:
        return max(skipped, selected + update_epsilon)
    one_sided = update_epsilon if adjacency == "null" else update_epsilon / 2
    return hidden_selection_epsilon(q_hi, one_sided, adjacency)


def exposure_epsilon(q_hi: float, q_lo: float, exposures: int) -> float:
    r"""Return the loss of a record that is screened at most `exposures` times and leaves once selected.

    Returns
    -------
    float
        :math:`\max\{E s_0, (E-1) s_0 + s_1\}`.
    """
    checks.at_least("exposures", exposures, 1)
    selected, skipped = screen_losses(q_hi, q_lo)
    before = (exposures - 1) * skipped if exposures > 1 else 0.0
    return before + max(skipped, selected)


def top_c_shift(pool_size: int, picks: int, scale: float, *, first_pick: int = 1) -> float:
    r"""Return the most that changing one score can move the probability of a batch that leaves the record out.

    Parameters
    ----------
    pool_size : int
        Public number `m` of records still in the pool, >= 1.
    picks : int
        Batch size `c`, 1 <= c <= m.
    scale : float
        Exponent `a` of the weights :math:`e^{a u}`, u in [0, 1], > 0.
    first_pick : int
        Pick to start the sum from, 1 for the whole batch.

    Returns
    -------
    float
        :math:`S = \sum_{s} \ln[(m-s+e^a)/(m-s+1)]`.
    """
    checks.at_least("pool_size", pool_size, 1)
    checks.at_least("picks", picks, 1)
    checks.positive("scale", scale)
    if picks > pool_size:
        raise ValueError(f"picks must be at most pool_size={pool_size}, got {picks}")
    rise = math.expm1(scale) if scale < 700 else math.inf
    if math.isinf(rise):
        return math.fsum(
            scale + math.log1p((pool_size - s) * math.exp(-scale)) - math.log(pool_size - s + 1)
            for s in range(first_pick, picks + 1)
        )
    return math.fsum(math.log1p(rise / (pool_size - s + 1)) for s in range(first_pick, picks + 1))


def top_c_epsilon(pool_size: int, picks: int, scale: float) -> float:
    r"""Return the loss of one batch of `picks` records drawn by Gumbel noise from a pool of public size.

    Returns
    -------
    float
        :math:`\max\{a, S\}` with `S` from `top_c_shift`: about `a`, not `c a`, while the pool is large.

    Notes
    -----
    One record's score moves one weight only, and the score lies in [0, 1]: no factor 1/2 is lost.
    """
    return max(scale, top_c_shift(pool_size, picks, scale))


def top_c_rho(pool_size: int, picks: int, scale: float) -> float:
    r"""Return the zCDP cost of one batch, from the range of its loss.

    Notes
    -----
    For one pair of neighbours all losses lie in an interval of length :math:`a + \sum_{s \ge 2}` of the terms of
    `S` (the first term is common to all batches), and a loss of range `t` is :math:`t^2/8`-zCDP.
    """
    later = top_c_shift(pool_size, picks, scale, first_pick=2) if picks > 1 else 0.0
    top_c_shift(pool_size, picks, scale)
    return (scale + later) ** 2 / 8


def rank_bernoulli_epsilon(probability: float, rank_shift: int) -> float:
    r"""Return the true loss of querying by coin flips down a ranked list, for the report on the source.

    Parameters
    ----------
    probability : float
        Chance `p` of stopping at each rank, in (0, 1).
    rank_shift : int
        How many ranks one record can move, >= 1; a change of one record can move it from first to last,
        ``pool_size - 1``.

    Returns
    -------
    float
        :math:`r \ln(1/(1-p))`, where the source claims :math:`\ln(p/(1-p))`.

    References
    ----------
    .. [1] Rane, Brito, "A version space perspective on differentially private pool-based active learning",
       2019, section V.
    """
    if not 0 < probability < 1:
        raise ValueError(f"probability must lie in (0, 1), got {probability}")
    checks.at_least("rank_shift", rank_shift, 1)
    return -rank_shift * math.log1p(-probability)
