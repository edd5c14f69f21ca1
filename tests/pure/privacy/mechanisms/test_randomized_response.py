import itertools
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import assume, example, given
from hypothesis import strategies as st

from privacy.accounting.answers import ODDS_UNIT, response_odds
from privacy.accounting.events import RandomizedAnswersEvent
from privacy.mechanisms.randomized_response import RandomizedResponse
from privacy.mechanisms.randomness import SecureRandom, SimulationRandom

CHANCES = st.lists(st.floats(0, 1), min_size=2, max_size=9)


class Scripted(SimulationRandom):
    """Answers requests for integers from a list, so that every outcome of a draw can be tried."""

    def __init__(self, *answers):
        super().__init__(0)
        self.answers = list(answers)

    def integers(self, low, high=None, size=None):
        drawn, span = self.answers.pop(0)
        assert span in (None, low)
        return np.full(size, drawn, dtype=np.int64)


def response(epsilon, chances):
    assume(max(chances) > 0)
    mechanism = RandomizedResponse(len(chances), response_odds(epsilon))
    return mechanism, mechanism.kept(np.array([chances]))[0]


@given(epsilon=st.floats(1e-6, 20), chances=CHANCES)
def test_any_two_classes_are_within_the_charge_of_each_other(epsilon, chances):
    mechanism, kept = response(epsilon, chances)
    bound = Fraction(RandomizedAnswersEvent(epsilon, len(chances)).odds, ODDS_UNIT)
    classes = range(len(chances))
    masses = {true: [mechanism.mass(said, true, kept) for said in classes] for true in classes}
    assert all(sum(row) == 1 for row in masses.values())
    # As rational numbers; test_randomized_response of the accounting holds ln(bound) against the charge.
    assert all(
        masses[first][said] <= bound * masses[second][said]
        for first, second, said in itertools.product(classes, repeat=3)
    )
    if kept.sum() > 1:
        ratios = [masses[a][z] / masses[b][z] for a, b, z in itertools.product(classes, repeat=3) if masses[b][z]]
        assert max(ratios) == bound, "noise was added that nobody is charged less for"


def law_of_answers(mechanism, kept, answers):
    votes = np.bincount(answers, minlength=mechanism.n_classes)
    leaders = np.flatnonzero(votes == votes.max())
    return [
        sum(mechanism.mass(said, int(true), kept) for true in leaders) / len(leaders)
        for said in range(mechanism.n_classes)
    ]


@given(
    epsilon=st.floats(0.01, 5), chances=st.lists(st.floats(0.01, 1), min_size=3, max_size=3), overlap=st.integers(1, 4)
)
def test_one_changed_answer_stays_within_the_charge_whatever_the_others_say(epsilon, chances, overlap):
    mechanism, kept = response(epsilon, chances)
    bound = Fraction(mechanism.odds, ODDS_UNIT)
    for answers in itertools.product(range(3), repeat=overlap):
        law = law_of_answers(mechanism, kept, answers)
        for other in range(3):
            neighbour = law_of_answers(mechanism, kept, (other, *answers[1:]))
            assert all(first <= bound * second for first, second in zip(law, neighbour, strict=True))


@given(epsilon=st.floats(0.01, 8), chances=CHANCES)
@example(epsilon=1.0, chances=[0.0, 5e-324])
@example(epsilon=1.0, chances=[1e308, 1e308, 1.0])
def test_k_says_the_truth_most_often_under_the_prior(epsilon, chances):
    mechanism, kept = response(epsilon, chances)
    prior = np.array(chances) / max(chances)
    prior /= prior.sum()
    ratio = mechanism.odds / ODDS_UNIT
    ranked = np.sort(prior)[::-1].cumsum()
    hits = ranked * ratio / (ratio + np.arange(len(prior)))
    size = int(kept.sum())
    assert hits[size - 1] == pytest.approx(hits.max(), rel=1e-9)
    assert prior[kept].sum() == pytest.approx(ranked[size - 1])


@pytest.mark.parametrize("n_classes", [2, 3, 18, 1000])
@pytest.mark.parametrize("epsilon", [1e-4, 1.0, 8.0])
def test_a_prior_without_opinion_is_plain_randomised_response(n_classes, epsilon):
    mechanism = RandomizedResponse(n_classes, response_odds(epsilon))
    kept = mechanism.kept(np.full((1, n_classes), 1 / n_classes))
    assert kept.all()
    other = 1 / (mechanism.odds / ODDS_UNIT + n_classes - 1)
    wanted = np.full((n_classes, n_classes), other)
    np.fill_diagonal(wanted, mechanism.odds / ODDS_UNIT * other)
    np.testing.assert_allclose(mechanism.channel(kept[0]), wanted, rtol=1e-12)


@given(epsilon=st.floats(0.01, 5), chances=CHANCES, data=st.data())
def test_the_channel_that_learners_use_is_the_law(epsilon, chances, data):
    mechanism, kept = response(epsilon, chances)
    channel = mechanism.channel(kept)
    for said, true in itertools.product(range(len(chances)), repeat=2):
        assert channel[said, true] == pytest.approx(float(mechanism.mass(said, true, kept)), rel=1e-12)
    said = data.draw(st.sampled_from(np.flatnonzero(kept).tolist()))
    row = mechanism.likelihoods(np.array([said]), kept[None])
    np.testing.assert_array_equal(row[0], channel[said])


def test_every_outcome_of_a_draw_lands_where_the_weights_say():
    """Three kept classes of five: the first `odds` numbers are the truth, then one block for each other."""
    mechanism, kept = RandomizedResponse(5, response_odds(1.0)), np.array([[True, False, True, True, False]])
    total, odds = mechanism.odds + 2 * ODDS_UNIT, mechanism.odds
    edges = [(0, 2), (odds - 1, 2), (odds, 0), (odds + ODDS_UNIT - 1, 0), (odds + ODDS_UNIT, 3), (total - 1, 3)]
    for drawn, said in edges:
        rng = Scripted((1, 3), (drawn, total))
        assert mechanism.release(np.array([2]), kept, rng=rng).tolist() == [said]
    for drawn, said in enumerate([0, 2, 3]):
        rng = Scripted((drawn, 3), (0, total))
        assert mechanism.release(np.array([4]), kept, rng=rng).tolist() == [said]


def test_questions_of_different_priors_are_drawn_together():
    """False alarm: < 2e-8; a question with two kept classes is answered by a lie with 2e-9, one with four with 6e-9."""
    mechanism = RandomizedResponse(4, response_odds(20.0))
    kept = np.array([[True, True, False, False], [False, False, False, True], [True, True, True, True]] * 2)
    truth = np.array([1, 0, 2] * 2)
    said = mechanism.release(truth, kept, rng=SecureRandom())
    assert said.reshape(-1, 3).tolist() == [[1, 3, 2]] * 2


def test_what_cannot_be_is_refused():
    mechanism = RandomizedResponse(3, response_odds(1.0))
    kept = np.array([[True, True, False]])
    with pytest.raises(ValueError, match="priors must have shape"):
        mechanism.kept(np.ones((1, 4)))
    for bad in ([0.0, 0.0, 0.0], [-1.0, 1.0, 1.0], [np.nan, 1.0, 1.0], [np.inf, 1.0, 1.0]):
        with pytest.raises(ValueError, match="priors must be"):
            mechanism.kept(np.array([bad]))
    with pytest.raises(ValueError, match=r"classes must lie in \[0, 3\)$"):
        mechanism.release(np.array([3]), kept, rng=SecureRandom())
    with pytest.raises(ValueError, match="one row a question"):
        mechanism.release(np.array([0, 1]), kept, rng=SecureRandom())
    with pytest.raises(ValueError, match="keep a class"):
        mechanism.release(np.array([0]), np.zeros((1, 3), dtype=bool), rng=SecureRandom())
    with pytest.raises(ValueError, match="among the classes"):
        mechanism.likelihoods(np.array([2]), kept)
    with pytest.raises(ValueError, match="n_classes"):
        RandomizedResponse(1, response_odds(1.0))
    with pytest.raises(ValueError, match="do not fit"):
        RandomizedResponse(2**31, response_odds(20.0))


@given(epsilon=st.floats(0.01, 8), chances=CHANCES)
@example(epsilon=3.0, chances=[0.25, 0.25, 0.0625, 5e-324])
def test_information_is_that_of_the_law(epsilon, chances):
    mechanism, kept = response(epsilon, chances)
    prior = np.array(chances) / sum(chances)
    joint = mechanism.channel(kept) * prior
    # By logarithms apart: the product of two chances may be too small for a float where neither is.
    said, true = np.broadcast_arrays(joint.sum(axis=1, keepdims=True), joint.sum(axis=0, keepdims=True))
    there = joint > 0
    told = float((joint[there] * (np.log(joint[there]) - np.log(said[there]) - np.log(true[there]))).sum())
    found = mechanism.information(np.array([chances]), kept[None])
    assert found.shape == (1,)
    assert found[0] == pytest.approx(told, abs=1e-9)
    # Neither more than the response can carry nor more than there is to know.
    assert found[0] <= min(epsilon, -(prior[prior > 0] * np.log(prior[prior > 0])).sum()) + 1e-9
