import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.metrics import cohen_kappa_score

from learner.strategies.stopping import StabilizedPredictions, kappa


@given(pairs=st.lists(st.tuples(st.integers(0, 3), st.integers(0, 3), st.integers(1, 9)), min_size=2, max_size=30))
def test_agreement_is_cohens_kappa(pairs):
    one, other, weights = (np.array(column) for column in zip(*pairs, strict=True))
    if len(set(one) | set(other)) == 1:
        assert kappa(one, other, weights) == 1
    else:
        assert kappa(one, other, weights) == pytest.approx(cohen_kappa_score(one, other, sample_weight=weights))


def test_it_stops_only_after_enough_models_that_agree():
    rng = np.random.default_rng(3)
    rule, weights = StabilizedPredictions(threshold=0.95, comparisons=2), np.ones(400)
    unsettled = [rng.integers(4, size=400) for _ in range(3)]
    settled = unsettled[-1]
    nearly = np.where(np.arange(400) < 8, (settled + 1) % 4, settled)
    assert [rule.advise(unsettled[:count], weights).stop for count in range(4)] == [False] * 4
    assert np.isnan(rule.advise(unsettled[:2], weights).agreement)
    assert not rule.advise([*unsettled, nearly], weights).stop, "one comparison is not enough"
    found = rule.advise([*unsettled, nearly, settled], weights)
    assert found.stop
    assert 0.95 < found.agreement < 1
    assert found.moved == pytest.approx(8 / 400)
    assert np.isnan(rule.advise(unsettled[:2], weights).moved)
    assert not StabilizedPredictions(threshold=0.99, comparisons=2).advise([*unsettled, nearly, settled], weights).stop


def test_frequent_texts_count_more():
    one, other = np.array([0, 1, 0, 1]), np.array([0, 1, 1, 0])
    often_the_same = kappa(one, other, np.array([9.0, 9.0, 1.0, 1.0]))
    assert often_the_same > kappa(one, other, np.ones(4)) == 0
    rule = StabilizedPredictions(comparisons=1)
    assert rule.advise([one, other], np.array([9.0, 9.0, 1.0, 1.0])).moved == pytest.approx(0.1)
