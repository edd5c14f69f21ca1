from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from annotation.budget.words import typed_words
from privacy.accounting.cost import delta_limit_to_atto, epsilon_limit_to_nano


@pytest.mark.parametrize(
    ("units", "places", "words"),
    [(8 * 10**9, 9, "8"), (100 * 10**9, 9, "100"), (10**14, 18, "0.0001"), (5 * 10**12, 18, "0.000005"), (0, 18, "0")],
)
def test_a_limit_is_written_as_it_was_typed(units, places, words):
    assert Decimal(typed_words(units, places)) == Decimal(words)
    assert len(typed_words(units, places)) <= len(words)


@given(epsilon=st.integers(0, 10**14), delta=st.integers(0, 5 * 10**17))
def test_sent_back_unchanged_it_is_the_same_limit(epsilon, delta):
    """As the forms read it: a float, whose shortest words are taken for what was meant."""
    if len(str(epsilon)) <= 15 and len(str(delta).rstrip("0")) <= 15:
        assert epsilon_limit_to_nano(Decimal(repr(float(typed_words(epsilon, 9))))) == epsilon
        assert delta_limit_to_atto(Decimal(repr(float(typed_words(delta, 18))))) == delta
