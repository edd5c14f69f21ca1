import pytest
from hypothesis import given
from hypothesis import strategies as st

from annotation.choices.randomizers import RandomizedConsensus


@given(epsilon=st.floats(0.01, 20), randomizations=st.integers(1, 5), n_classes=st.integers(2, 100))
def test_all_responses_together_cost_what_is_declared(epsilon, randomizations, n_classes):
    choice = RandomizedConsensus(answers_epsilon=epsilon, randomizations=randomizations)
    event = choice.event(n_classes=n_classes)
    assert event.randomizations == randomizations
    assert event.cost().epsilon <= epsilon
    assert event.cost().epsilon == pytest.approx(epsilon, rel=1e-6)
