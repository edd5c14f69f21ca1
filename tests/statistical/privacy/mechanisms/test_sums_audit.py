"""Noisy sums have the noise they are charged for, and an audit stays under the charge and finds broken twins.

Every bound holds with probability 0.9999, so a sound mechanism fails once in 10,000 seeds.
"""

import os

import numpy as np
import pytest

from privacy.accounting.sums import SumsEvent, charged_delta, sums_event, sums_mu
from privacy.evidence import epsilon_lower_bound, one_by_one
from privacy.mechanisms.randomness import SimulationRandom
from privacy.mechanisms.sums import release_sums

MORE = int(os.environ.get("DPAL_EVIDENCE_TRIALS", "1"))
TRIALS = 20_000 * MORE
EPSILON, DELTA = 1.0, 1e-3
ROW = (np.full((1, 2), 0.5**0.5 * (1 - 1e-9)), np.array([[True, False]]))
NOBODY = (np.zeros((0, 2)), np.zeros((0, 2), dtype=bool))
OTHER_CLASS = (ROW[0], ROW[1][:, ::-1])
OPPOSITE = (-ROW[0], ROW[1])
pytestmark = pytest.mark.statistical


def event_of(share, adjacency="null", **changes):
    shape = {"dimension": 2, "n_classes": 2, "norm_bound": 1.0} | changes
    return sums_event(
        sums_mu(EPSILON, DELTA), moment_share=share, delta=charged_delta(DELTA), adjacency=adjacency, **shape
    )


def audited(event, data, neighbour, *, claimed=None):
    """Audit one record against its neighbour by the likelihood ratio, with noise of the event."""
    told = claimed or event
    upper = np.triu_indices(2)
    weights = np.array([1.0, 2.0, 1.0])

    def expected(pair):
        rows, members = pair
        return (rows.T @ rows)[upper], members.T.astype(float) @ rows

    (here, sums_here), (there, sums_there) = expected(data), expected(neighbour)

    def ratio(pair, rng):
        noisy = release_sums([pair], event, rng=rng)
        found = (
            (noisy.class_sums - sums_there) ** 2 - (noisy.class_sums - sums_here) ** 2
        ).sum() / event.class_sigma**2
        if event.moment_sigma:
            entries = noisy.moments[upper]
            moved = (weights * ((entries - there) ** 2 - (entries - here) ** 2)).sum()
            found += moved / event.moment_sigma**2
        return float(found)

    rng = SimulationRandom(20_251_202)
    return epsilon_lower_bound(
        one_by_one(ratio), data, neighbour, trials=TRIALS, confidence=0.9999, delta=told.delta, rng=rng
    )


@pytest.mark.one_in(2)
@pytest.mark.parametrize("share", [0.0, 0.5, pytest.param(0.9, marks=pytest.mark.slow)])
def test_one_record_against_none(share):
    assert 0.2 * EPSILON < audited(event_of(share), ROW, NOBODY) <= EPSILON


@pytest.mark.slow
@pytest.mark.one_in(2)
@pytest.mark.parametrize(
    ("share", "neighbour"), [(0.0, OPPOSITE), pytest.param(0.5, OTHER_CLASS, marks=pytest.mark.slow), (0.5, OPPOSITE)]
)
def test_one_record_against_another(share, neighbour):
    assert audited(event_of(share, "replace"), ROW, neighbour) <= EPSILON


@pytest.mark.slow
def test_a_twin_without_the_moments_in_its_price_is_found():
    """The broken twin releases the moments and prices the class sums alone."""
    told = event_of(0.0)
    broken = SumsEvent(2, 2, 1.0, told.class_sigma / 3, told.class_sigma, delta=told.delta)
    assert audited(broken, ROW, NOBODY, claimed=told) > EPSILON


@pytest.mark.slow
def test_a_twin_with_a_third_of_the_noise_is_found():
    told = event_of(0.5)
    broken = SumsEvent(2, 2, 1.0, told.moment_sigma / 3, told.class_sigma / 3, delta=told.delta)
    assert audited(broken, ROW, NOBODY, claimed=told) > EPSILON


@pytest.mark.parametrize(("factor", "accepted"), [(1.0, True), (1.01, False), (0.99, False)])
def test_noise_variance(factor, accepted):
    """Seeded, 4.2 sigma: false alarm 3e-5 for each part; a scale 1 % off stands 6 or more away."""
    d, classes = 900, 450
    event = SumsEvent(d, classes, 1.0, 5.0 * factor, 3.0 * factor)
    noisy = release_sums([(np.zeros((0, d)), np.zeros((0, classes), dtype=bool))], event, rng=SimulationRandom(7))
    beside = noisy.moments[np.triu_indices(d, 1)] / (5.0 * 0.5**0.5)
    for draws in (beside, noisy.class_sums.ravel() / 3.0):
        z_score = ((draws**2).mean() - 1) * np.sqrt(draws.size / 2)
        assert (abs(z_score) < 4.2) == accepted
    diagonal = noisy.moments.diagonal() / 5.0
    assert abs((diagonal**2).mean() - 1) * np.sqrt(d / 2) < 4.2


def of_labels(many, *, priced):
    """Return sums of records with up to nine labels, with the noise that `priced` labels a record need."""
    told = event_of(0.0, n_classes=9, labels_per_record=priced)
    return told, SumsEvent(2, 9, 1.0, 0.0, told.class_sigma, labels_per_record=many, delta=told.delta)


EVERY_LABEL, NO_LABEL = (ROW[0], np.ones((1, 9), dtype=bool)), (NOBODY[0], np.zeros((0, 9), dtype=bool))


@pytest.mark.slow
def test_a_record_with_every_label_against_none():
    told, event = of_labels(9, priced=9)
    assert event == told
    assert 0.2 * EPSILON < audited(event, EVERY_LABEL, NO_LABEL) <= EPSILON


@pytest.mark.slow
def test_a_twin_that_prices_nine_labels_as_one_is_found():
    """Its noise is a third of what nine labels need: labels count by the square root of their number."""
    told, broken = of_labels(9, priced=1)
    assert audited(broken, EVERY_LABEL, NO_LABEL, claimed=told) > EPSILON
