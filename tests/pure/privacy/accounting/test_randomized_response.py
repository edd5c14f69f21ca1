import math
from fractions import Fraction

import mpmath
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from privacy.accounting.answers import LARGEST_EPSILON, ODDS_UNIT, response_epsilon, response_information, response_odds
from privacy.accounting.cost import NoProof, epsilon_to_nano, float_at_least
from privacy.accounting.events import RandomizedAnswersEvent

mpmath.mp.dps = 80


def exact(value):
    return mpmath.mpf(value.numerator) / value.denominator


@given(st.floats(1e-8, LARGEST_EPSILON))
def test_the_charge_is_the_rounded_loss_and_never_above_what_was_asked_for(epsilon):
    odds = response_odds(epsilon)
    charged = response_epsilon(odds)
    loss = mpmath.log(mpmath.mpf(odds) / ODDS_UNIT)
    assert exact(Fraction(math.nextafter(charged, 0))) < loss <= exact(Fraction(charged))
    assert charged <= epsilon
    assert mpmath.log(mpmath.mpf(odds + 1) / ODDS_UNIT) > exact(Fraction(epsilon)), "a larger weight was affordable"


@pytest.mark.parametrize("epsilon", [0.1, 0.5, 1.0, 2.0, 4.0])
def test_a_round_epsilon_costs_exactly_its_nano_units(epsilon):
    assert epsilon_to_nano(RandomizedAnswersEvent(epsilon, 18).cost().epsilon) == round(epsilon * 10**9)


@pytest.mark.parametrize("epsilon", [0.0, -1.0, math.nan, math.inf, 20.1, 1e-12])
def test_an_epsilon_that_cannot_be_drawn_is_refused(epsilon):
    with pytest.raises(ValueError, match="epsilon"):
        response_odds(epsilon)


@pytest.mark.parametrize("odds", [0, ODDS_UNIT, 2**62, 2.5 * ODDS_UNIT + 0.5, True])
def test_a_weight_that_cannot_be_drawn_is_refused(odds):
    with pytest.raises(ValueError, match="odds"):
        response_epsilon(odds)


@given(
    epsilon=st.floats(0.01, 5),
    randomizations=st.integers(1, 5),
    questions=st.integers(1, 200),
    adjacency=st.sampled_from(["null", "replace"]),
)
def test_the_series_pays_for_every_randomisation_a_unit_can_move(epsilon, randomizations, questions, adjacency):
    once = RandomizedAnswersEvent(epsilon, 18).cost(adjacency=adjacency)
    answer = RandomizedAnswersEvent(epsilon, 18, randomizations=randomizations).cost(adjacency=adjacency)
    person = RandomizedAnswersEvent(
        epsilon, 18, unit="annotator", randomizations=randomizations, questions_per_annotator=questions
    ).cost(adjacency=adjacency)
    assert once.delta == answer.delta == person.delta == 0
    assert answer.epsilon == float_at_least(Fraction(once.epsilon) * randomizations)
    assert person.epsilon == float_at_least(Fraction(once.epsilon) * randomizations * questions)
    assert person.rho == pytest.approx(once.rho * randomizations * questions)


def test_the_number_of_settled_questions_is_public():
    with pytest.raises(NoProof, match="add_remove"):
        RandomizedAnswersEvent(1.0, 18).cost(adjacency="add_remove")


def test_the_stored_weight_decides_and_not_what_was_asked_for():
    event = RandomizedAnswersEvent(1.0, 18, odds=response_odds(3.0))
    assert event.cost().epsilon == pytest.approx(3.0)


@pytest.mark.parametrize(
    ("values", "named"),
    [
        ({"n_classes": 1}, "n_classes"),
        ({"method": "laplace"}, "method"),
        ({"unit": "contributor"}, "unit"),
        ({"randomizations": 0}, "randomizations"),
        ({"unit": "annotator", "questions_per_annotator": 0}, "questions_per_annotator"),
        ({"questions_per_annotator": 2}, "questions_per_annotator"),
        ({"odds": ODDS_UNIT}, "odds"),
        ({"epsilon": 0.0}, "epsilon"),
    ],
)
def test_a_parameter_out_of_range_is_named(values, named):
    with pytest.raises(ValueError, match=named):
        RandomizedAnswersEvent(**{"epsilon": 1.0, "n_classes": 18} | values)


@given(epsilon=st.floats(1e-6, 20), classes=st.integers(2, 1000))
def test_what_a_response_tells_is_its_mutual_information(epsilon, classes):
    """Against the sum over the whole channel."""
    right = math.exp(epsilon) / (math.exp(epsilon) + classes - 1)
    channel = np.full((classes, classes), (1 - right) / (classes - 1))
    np.fill_diagonal(channel, right)
    told = float((channel / classes * np.log(channel * classes)).sum()) / math.log(classes)
    assert response_information(epsilon, classes) == pytest.approx(told, rel=1e-6, abs=1e-9)
    assert 0 <= response_information(epsilon, classes) <= 1
    assert response_information(epsilon + 0.1, classes) >= response_information(epsilon, classes)
