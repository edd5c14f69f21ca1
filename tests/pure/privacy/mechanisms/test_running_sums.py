import json
import math
from dataclasses import asdict

import numpy as np
import pytest

from dpal.recompute.running_sums import RunningTotal, variance_growth
from dpal.recompute.transcript import packed, unpacked
from learner.estimators.running_sums import public_parts
from privacy.accounting.sums import PARTS, RunningSumsEvent, SumsEvent, fitted_for
from privacy.mechanisms.randomness import SecureRandom, SimulationRandom
from privacy.mechanisms.running_sums import release_running_sums, weighted_sums
from privacy.mechanisms.sums import STEPS
from tests.pure.privacy.mechanisms.test_sums import labels, unit_rows

NOBODY = (np.zeros((0, 3)), np.zeros((0, 2), dtype=bool))


def event_of(updates, moment_sigma=0.0, class_sigma=1.0):
    return RunningSumsEvent(SumsEvent(3, 2, 1.0, moment_sigma, class_sigma), updates, *fitted_for(updates))


def batches_of(rng, sizes):
    return [(unit_rows(rng, size, 3), labels(rng, size, 2, 1)) for size in sizes]


@pytest.mark.parametrize("moment_sigma", [0.0, 1.0])
@pytest.mark.parametrize("place", [0, 3, 7])
def test_empirical_sensitivity(moment_sigma, place):
    """One record of any batch moves all releases of the epoch within the stated ratio; the first batch comes near."""
    rng, event = np.random.default_rng(20_251_210), event_of(8, moment_sigma)
    batches = batches_of(rng, [2] * 8)
    others = [*batches]
    others[place] = (batches[place][0][:1], batches[place][1][:1])
    total = 0.0
    for known in range(1, 9):
        (moments, sums), (theirs, other) = weighted_sums(batches[:known], event), weighted_sums(others[:known], event)
        total += (((sums - other) / STEPS / PARTS / event.sums.class_sigma) ** 2).sum()
        if moment_sigma:
            moved = (moments - theirs) / STEPS**2 / PARTS
            total += ((np.triu(moved, 1) ** 2).sum() * 2 + (moved.diagonal() ** 2).sum()) / moment_sigma**2
    assert math.sqrt(total) <= event.gaussian_mu()
    if place == 0:
        assert math.sqrt(total) >= 0.98 * event.gaussian_mu()


@pytest.mark.parametrize("source", [SecureRandom(), SimulationRandom(1)], ids=["secure", "seeded"])
def test_totals_are_those_of_all_batches_over_epochs(source):
    """Noise hardly any: what remains is the rounding of rows to the grid."""
    rng, event = np.random.default_rng(5), event_of(4, 1e-6, 1e-6)
    batches = batches_of(rng, [0, 30, 7, 11, 5, 0, 13, 2, 9])
    total = RunningTotal.empty(public_parts(event))
    for number in range(len(batches)):
        epoch = batches[number - number % 4 : number + 1]
        total = total.after(release_running_sums(epoch, event, rng=source), public_parts(event))
        total = RunningTotal(**unpacked(json.loads(json.dumps(packed(asdict(total))))))
        found = total.sums(public_parts(event))
        rows = np.vstack([rows for rows, _ in batches[: number + 1]])
        members = np.vstack([of for _, of in batches[: number + 1]]).astype(float)
        assert np.abs(found.moments - rows.T @ rows).max() < 0.05
        assert np.abs(found.class_sums - members.T @ rows).max() < 0.05
    assert (total.epochs, total.place) == (2, 1)
    growth = variance_growth(public_parts(event)["coefficients"])
    assert found.class_variance == pytest.approx((2 * growth[-1] + growth[0]) * 1e-12)


def test_the_noise_of_a_total_is_what_it_says():
    """Seeded, 5 sigma at 20,000 draws (false alarm 6e-7); a total told to be 5 % less noisy is noticed."""
    event = RunningSumsEvent(SumsEvent(40, 500, 1.0, 0.0, 3.0), 16, *fitted_for(16))
    nobody = (np.zeros((0, 40)), np.zeros((0, 500), dtype=bool))
    rng, total = SimulationRandom(11), RunningTotal.empty(public_parts(event))
    for number in range(20):
        epoch = [nobody] * (number % 16 + 1)
        total = total.after(release_running_sums(epoch, event, rng=rng), public_parts(event))
        found = total.sums(public_parts(event))
        square = (found.class_sums**2).mean()
        bound = 5 * math.sqrt(2 / 20_000)
        assert abs(square / found.class_variance - 1) < bound
        assert abs(square / (0.95 * found.class_variance) - 1) > bound / 5
    assert found.class_variance < 20 * 3.0**2 / 2


def test_what_is_not_as_declared_is_refused():
    event = event_of(2)
    for batches in ([], [NOBODY] * 3):
        with pytest.raises(ValueError, match="1 to 2 batches"):
            release_running_sums(batches, event, rng=SimulationRandom(1))
    with pytest.raises(ValueError, match="clip them first"):
        release_running_sums([(np.full((1, 3), 1.0), np.array([[True, False]]))], event, rng=SimulationRandom(1))
