r"""What one randomised answer costs, in exact numbers.

A response that keeps k classes says the true one with weight `odds` and each other one with weight
`ODDS_UNIT`, whatever k is. Both are integers, so every probability is a rational number, and the loss is
:math:`\ln(\mathrm{odds} / \mathrm{ODDS\_UNIT})` exactly: no probability is ever rounded after it was charged.
"""

import decimal
import math
from fractions import Fraction
from typing import Final

from privacy.accounting.units import float_at_least
from privacy.wording import as_message

ODDS_UNIT: Final = 2**32
# With up to a thousand classes all weights together still fit the 63 bits of one draw.
LARGEST_EPSILON: Final = 20.0
# Digits carried by logarithms and exponentials, of which a charge uses 17.
_DIGITS: Final = 60


def response_odds(epsilon: float) -> int:
    r"""Return the weight of the true class beside `ODDS_UNIT` for every other one.

    Parameters
    ----------
    epsilon : float
        Wanted loss of one randomisation, 0 < epsilon <= `LARGEST_EPSILON`.

    Returns
    -------
    int
        :math:`\lfloor e^\varepsilon \cdot \mathrm{ODDS\_UNIT} \rfloor`: rounded towards more noise.

    Raises
    ------
    ValueError
        If epsilon is out of range, or so small that both weights would be equal.
    """
    if not 0 < epsilon <= LARGEST_EPSILON:
        raise ValueError(
            as_message(
                "epsilon must be > 0 and <= {largest:g}, got {epsilon}", largest=LARGEST_EPSILON, epsilon=epsilon
            )
        )
    with decimal.localcontext(decimal.Context(prec=_DIGITS)):
        odds = int((decimal.Decimal(epsilon).exp() * ODDS_UNIT).to_integral_value(decimal.ROUND_FLOOR))
    if odds == ODDS_UNIT:
        raise ValueError(as_message("epsilon {epsilon} is too small to be drawn", epsilon=epsilon))
    return odds


def response_epsilon(odds: int) -> float:
    """Return the smallest float that is not below the loss of one randomisation with this weight.

    Raises
    ------
    ValueError
        If the weight is out of range.
    """
    check_odds(odds)
    with decimal.localcontext(decimal.Context(prec=_DIGITS)):
        # A logarithm is rounded to the nearest number of so many digits; the next one is above it.
        loss = (decimal.Decimal(odds) / ODDS_UNIT).next_plus().ln().next_plus()
    return float_at_least(Fraction(loss))


def check_odds(odds: int) -> None:
    """Require a weight that a response can draw with."""
    largest = int(ODDS_UNIT * decimal.Decimal(LARGEST_EPSILON).exp())
    if isinstance(odds, bool) or int(odds) != odds or not ODDS_UNIT < odds <= largest:
        raise ValueError(
            as_message(
                "odds must be an integer above {unit} and at most {largest}, got {odds}",
                unit=ODDS_UNIT,
                largest=largest,
                odds=odds,
            )
        )


def response_information(epsilon: float, n_classes: int) -> float:
    r"""Return what one response tells of an answer, as a share of what the answer itself would tell.

    Parameters
    ----------
    epsilon : float
        Loss of the response, > 0.
    n_classes : int
        Classes it may name, all equally likely beforehand; >= 2.

    Returns
    -------
    float
        Mutual information of answer and response over :math:`\ln K`, in (0, 1). Where public knowledge makes some
        classes likelier than others, both are less.
    """
    others = n_classes - 1
    # e^epsilon alone would overflow for an answer that is said all but surely.
    wrong = math.exp(-epsilon) / (1 + others * math.exp(-epsilon))
    right = 1 - others * wrong
    information = math.log(n_classes) + right * math.log(right) + others * wrong * math.log(wrong)
    return max(0.0, information / math.log(n_classes))
