"""Mutual-information bounds of noisy gradient steps; the ledger shows them and never admits by them."""

import math

from privacy.accounting import checks


def _capacity(dimension: int, power: float, sigma: float) -> float:
    """Return the capacity in nats of a Gaussian vector channel with total input power `power`."""
    return dimension / 2 * math.log1p(power / (dimension * sigma * sigma))


def gaussian_mi(dimension: int, lipschitz: float, sigma: float) -> float:
    r"""Return the most one noisy gradient tells about the user it came from.

    Parameters
    ----------
    dimension : int
        Number of coordinates `d`, >= 1.
    lipschitz : float
        Bound `L` to which gradients are clipped, >= 0.
    sigma : float
        Standard deviation of the noise of every coordinate, > 0.

    Returns
    -------
    float
        :math:`(d/2) \ln(1 + L^2/(d\sigma^2))` nats per user.

    References
    ----------
    .. [1] Zhang, Venkitasubramaniam, "Mutual-information-private online gradient descent algorithm", 2018,
       Theorem 1.
    """
    checks.at_least("dimension", dimension, 1)
    checks.not_negative("lipschitz", lipschitz)
    checks.positive("sigma", sigma)
    return _capacity(dimension, lipschitz * lipschitz, sigma)


def bandit_gradient_bound(dimension: int, loss_bound: float, radius: float, lipschitz: float = 0.0) -> float:
    r"""Return the largest norm of a one-point gradient estimate :math:`(d/\delta)\,\varphi\,e`.

    Parameters
    ----------
    dimension : int
        Number of coordinates `d`, >= 1.
    loss_bound : float
        Bound `F` on the loss inside the feasible set, > 0.
    radius : float
        Exploration radius :math:`\delta`, > 0.
    lipschitz : float
        Lipschitz constant `L` of the loss, >= 0; zero where the reported loss is clipped to [-F, F] or the
        centre is projected so that the exploration stays inside the set.

    Returns
    -------
    float
        :math:`d (F/\delta + L)`.
    """
    checks.at_least("dimension", dimension, 1)
    checks.positive("loss_bound", loss_bound)
    checks.positive("radius", radius)
    checks.not_negative("lipschitz", lipschitz)
    return dimension * (loss_bound / radius + lipschitz)


def bandit_mi(dimension: int, loss_bound: float, radius: float, lipschitz: float, sigma: float) -> float:
    r"""Return the most one noisy bandit gradient tells about the user it came from.

    Returns
    -------
    float
        :math:`(d/2) \ln(1 + d (F/\delta + L)^2/\sigma^2)` nats per user.

    References
    ----------
    .. [1] Zhang, Venkitasubramaniam 2018, Theorem 3. Theorem 4 of the same source prints :math:`F/\eta` where the
       exploration radius :math:`\delta` belongs.
    """
    checks.positive("sigma", sigma)
    bound = bandit_gradient_bound(dimension, loss_bound, radius, lipschitz)
    return _capacity(dimension, bound * bound, sigma)
