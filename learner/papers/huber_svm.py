"""A support vector machine with the Huber loss, under differential privacy and without."""

from dataclasses import KW_ONLY, dataclass

import numpy as np
from numpy.typing import NDArray

from learner.estimators.baseline import LogisticRegressionBaseline
from learner.estimators.linear import LinearLogisticClassifier
from learner.estimators.logistic import PrivateLogisticRegression

# Below this the rounding of a slope, divided by the width of the bend, would exceed what the certificate allows it.
LEAST_SMOOTHING = 0.125
LARGEST_SMOOTHING = 8


class HuberLoss:
    r"""The hinge with a quadratic bend from margin 1 - h to 1 + h.

    Parameters
    ----------
    smoothing : float
        Half width h of the bend, in [1/8, 8].

    Raises
    ------
    ValueError
        If `smoothing` is out of range.
    """

    def __init__(self, smoothing: float) -> None:
        if not LEAST_SMOOTHING <= smoothing <= LARGEST_SMOOTHING:
            raise ValueError(
                f"smoothing must lie in [{LEAST_SMOOTHING}, {LARGEST_SMOOTHING:g}], got {smoothing}: "
                "the plain hinge has no curvature bound"
            )
        self.smoothing = float(smoothing)
        self.slope_bound = 1.0
        self.curvature_bound = 1 / (2 * self.smoothing)

    def slope(self, margins: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the derivative at each margin: -1 before the bend, 0 after it, linear between."""
        return np.clip((margins - (1 + self.smoothing)) / (2 * self.smoothing), -1.0, 0.0)

    def curvature(self, margins: NDArray[np.float64]) -> NDArray[np.float64]:
        return np.where(np.abs(margins - 1) < self.smoothing, self.curvature_bound, 0.0)


class _HuberClassifier(LinearLogisticClassifier):
    """Prices and solves with the Huber loss; probabilities are the logistic function of decision values."""

    smoothing: float

    @property
    def _loss(self) -> HuberLoss:
        return HuberLoss(float(self.smoothing))


@dataclass(eq=False, repr=False)
class PrivateHuberSVM(_HuberClassifier, PrivateLogisticRegression):
    r"""Release :math:`\arg\min_w \sum_i \ell_h(y_i \langle x_i, w\rangle) + \frac{\Lambda}{2}\|w\|^2` privately.

    The loss is 0 beyond margin 1 + h, 1 - z below 1 - h, and :math:`(1 + h - z)^2 / (4h)` between. Method, price,
    noise and certificate are those of `PrivateLogisticRegression` with gradient bound 1 and curvature
    bound 1/(2h) in place of 1/4: at small :math:`\Lambda` a wide bend leaves more of epsilon to the tilt.
    Probabilities are a fixed function of the released decision values, hence post-processing.

    Parameters
    ----------
    epsilon, regularization, method, classes, delta, norm_bound, fit_intercept, intercept_scaling, adjacency, \
    gradient_tolerance, output_epsilon_share, grid, prior, random_state
        As in `PrivateLogisticRegression`.
    smoothing : float
        Half width h of the bend, in [1/8, 8].

    Notes
    -----
    The loss lacks a second derivative at two margins. From the minimiser back to the tilt leads a map that
    is Lipschitz both ways, since the objective is strongly convex with a Lipschitz gradient, so the change of
    variables holds almost everywhere and its factor is bounded as if the loss were smooth.

    References
    ----------
    .. [1] Chaudhuri, Monteleoni, Sarwate, "Differentially private empirical risk minimization", 2011, equation 7
       and Corollary 13.
    """

    _: KW_ONLY
    smoothing: float = 0.5


@dataclass(eq=False, repr=False)
class HuberSVMBaseline(_HuberClassifier, LogisticRegressionBaseline):
    """Minimise the objective of `PrivateHuberSVM` with no noise: for comparison, never for release."""

    _: KW_ONLY
    smoothing: float = 0.5
