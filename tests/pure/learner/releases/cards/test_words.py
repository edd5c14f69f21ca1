import pytest
from hypothesis import given
from hypothesis import strategies as st

from learner.releases.cards.words import stated_limit
from privacy.accounting.cost import atto_spendable, delta_limit_to_atto, epsilon_limit_to_nano, nano_spendable


@pytest.mark.parametrize("limit", ["5e-06", "1e-06", "1e-09", "0.1", "0.3", "2.0", "7.123456789"])
def test_a_limit_is_stated_as_it_was_typed(limit):
    assert repr(stated_limit(nano_spendable(epsilon_limit_to_nano(limit)))) == limit
    assert repr(stated_limit(atto_spendable(delta_limit_to_atto(limit)))) == limit


@given(st.integers(0, 10**18))
def test_no_limit_is_understated(atto):
    """Delta has up to eighteen digits, more than a float keeps."""
    assert stated_limit(atto_spendable(atto)) >= atto_spendable(atto)
