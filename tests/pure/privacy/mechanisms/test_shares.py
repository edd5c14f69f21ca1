import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from privacy.accounting.events import ClassCountsEvent
from privacy.mechanisms.discrete import DiscreteLaplace
from privacy.mechanisms.randomness import SecureRandom, SimulationRandom
from privacy.mechanisms.session import MeasuringSession
from privacy.mechanisms.shares import compared_cells, count_query, label_cells, predicted_cells

K, GROUPS = 3, 2
# Noise of this scale is zero, except with probability exp(-1000).
NO_NOISE = 1e-3
whole = st.integers(0, 2**31)


def drawn(seed, n=40):
    rng = np.random.default_rng(seed)
    return rng.integers(0, K, n), rng.integers(0, K + 1, n), rng.integers(0, GROUPS, n)


def layouts(seed):
    predicted, labels, groups = drawn(seed)
    return [
        (predicted_cells(predicted, groups, n_classes=K), GROUPS * K, 1),
        (label_cells(labels, groups, n_classes=K), GROUPS * (K + 1), 1),
        (compared_cells(labels, predicted, groups, n_classes=K), GROUPS * 3 * (K + 1), 2),
    ]


def counted(cells, event, rng=None):
    session = MeasuringSession(count_query("counts", lambda: cells, event, rng=rng or SimulationRandom(1)))
    return session.ask("counts"), session


@given(seed=whole, row=st.integers(0, 39))
def test_the_mass_ratio_of_neighbours_is_within_the_cost(seed, row):
    """Null and add/remove: one record less. Replace: another record in its place."""
    for cells, n_cells, per_record in layouts(seed):
        event = ClassCountsEvent(n_cells, per_record, NO_NOISE)
        priced = ClassCountsEvent(n_cells, per_record, 1.3)
        here, _ = counted(cells, event)
        less, _ = counted(np.delete(cells, row, axis=0), event)
        other = cells.copy()
        other[row] = cells[row - 1]
        another, _ = counted(other, event)
        noise = DiscreteLaplace(1.3)

        def loss(one, two, noise=noise):
            # The largest ratio of masses lies beyond both counts.
            return sum(abs(noise.log_mass(int(a - b)) - noise.log_mass(0)) for a, b in zip(one, two, strict=True))

        assert loss(here, less) <= priced.cost(adjacency="null").epsilon
        assert loss(here, another) <= priced.cost(adjacency="replace").epsilon


def test_counts_are_those_of_the_records():
    predicted, labels, groups = drawn(5)
    compared, _ = counted(compared_cells(labels, predicted, groups, n_classes=K), ClassCountsEvent(24, 2, NO_NOISE))
    agreed, alone, labelled = compared.reshape(GROUPS, 3, K + 1).transpose(1, 0, 2)
    for group in range(GROUPS):
        here = groups == group
        np.testing.assert_array_equal((agreed + labelled)[group], np.bincount(labels[here], minlength=K + 1))
        np.testing.assert_array_equal((agreed + alone)[group], np.bincount(predicted[here], minlength=K + 1))
    assert agreed.sum() == (labels == predicted).sum()


def test_the_session_records_sensitivity_and_scale():
    _, session = counted(np.zeros((3, 2), dtype=np.int64), ClassCountsEvent(4, 2, 5.0))
    (measured,) = session.record
    assert (measured.query, measured.sensitivity, measured.scale) == ("counts", 2.0, 5.0)


@pytest.mark.parametrize("cells", [np.zeros((3, 2)), np.full((3, 1), 4), np.full((3, 1), -2), np.zeros(3)])
def test_records_beyond_what_is_paid_for_are_refused(cells):
    with pytest.raises(ValueError, match="cells"):
        counted(cells.astype(np.int64), ClassCountsEvent(4, 1, 5.0))


def test_noise_of_the_operating_system_is_drawn_anew():
    event = ClassCountsEvent(400, 1, 50.0)
    none = np.empty((0, 1), dtype=np.int64)
    one, two = (counted(none, event, SecureRandom())[0] for _ in range(2))
    assert (one != two).any()
