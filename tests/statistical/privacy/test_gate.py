"""The gate's sample is binomial, record by record."""

import hashlib

import numpy as np
import pyarrow as pa
import pytest

from privacy.gate.hashing import coins
from privacy.gate.kanonymity import KAnonymityGate

KEY = hashlib.sha256(b"a fixed key, for tests only").digest()
N_TEXTS, COPIES, RATE = 60_000, 60, 0.25


def sample_counts(rate):
    texts = pa.array([f"text {number}" for number in range(N_TEXTS)])
    batch = pa.RecordBatch.from_arrays([texts], names=["text"])
    released = KAnonymityGate(2, rate).collect([batch] * COPIES, key=KEY)
    counts = np.zeros(N_TEXTS, dtype=np.int64)
    counts[: released.num_rows] = released["sample_count"].to_numpy()
    return counts


def mean_z(counts):
    variance = COPIES * RATE * (1 - RATE) / N_TEXTS
    return (counts.mean() - COPIES * RATE) / np.sqrt(variance)


def dispersion_z(counts):
    """The sample variance of binomial counts, in standard deviations from its mean (normal kurtosis to 1 %)."""
    expected = COPIES * RATE * (1 - RATE)
    return (counts.var(ddof=1) / expected - 1) / np.sqrt(2 / N_TEXTS)


@pytest.mark.statistical
@pytest.mark.parametrize(("factor", "accepted"), [(1.0, True), (1.01, False), (0.99, False)])
def test_sampling_rate(factor, accepted):
    """Seeded, 5 sigma (false alarm 6e-7 had the key been random); a rate 1 % off is refused."""
    assert (abs(mean_z(sample_counts(RATE * factor))) < 5) == accepted


@pytest.mark.statistical
def test_coins_of_equal_records_are_independent():
    """Seeded, 5 sigma; a coin for every three equal records instead of for each is refused."""
    assert abs(dispersion_z(sample_counts(RATE))) < 5
    shared = coins(KEY, first=0, count=N_TEXTS * COPIES // 3, threshold=int(RATE * 2**32)).reshape(N_TEXTS, -1)
    assert abs(dispersion_z(3 * shared.sum(axis=1))) > 5


@pytest.mark.statistical
def test_neighbouring_coins_are_uncorrelated():
    """Seeded, 5 sigma over lags 1 to 5; a stream that repeats one coin in a hundred is refused."""
    shown = coins(KEY, first=0, count=2_000_000, threshold=2**31).astype(np.float64) * 2 - 1
    repeating = shown.copy()
    repeating[100::100] = repeating[99:-1:100]
    for lag in range(1, 6):
        assert abs((shown[lag:] * shown[:-lag]).sum()) < 5 * np.sqrt(len(shown))
    assert abs((repeating[1:] * repeating[:-1]).sum()) > 5 * np.sqrt(len(shown))
