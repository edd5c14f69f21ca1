import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from learner.releases.evaluation import FEWEST, WANTED, Outcomes, class_thresholds


def outcomes(n: int, *, seed: int, classes: int = 3, digits: int = 2) -> Outcomes:
    """Draw a model that is the more often right the surer it is; few digits make ties."""
    rng = np.random.default_rng(seed)
    truth = rng.integers(0, classes, size=n)
    values = rng.normal(size=(n, classes)) + 1.5 * np.eye(classes)[truth]
    shares = np.exp(values) / np.exp(values).sum(axis=1, keepdims=True)
    return Outcomes(shares.round(digits), truth, ("public",))


def precision_from(found: Outcomes, place: int, threshold: float) -> tuple[int, int]:
    kept = (found.probabilities.argmax(axis=1) == place) & (found.probabilities[:, place] >= threshold)
    return int((found.truth[kept] == place).sum()), int(kept.sum())


@given(n=st.integers(1, 400), seed=st.integers(0, 10**6), digits=st.integers(1, 6))
def test_a_threshold_is_the_smallest_that_reaches_its_precision(n, seed, digits):
    found = outcomes(n, seed=seed, digits=digits)
    for place in range(3):
        named = found.probabilities[found.probabilities.argmax(axis=1) == place, place]
        for wanted, row in zip(WANTED, class_thresholds(found.probabilities, found.truth, place), strict=True):
            reaching = [
                threshold
                for threshold in np.unique(named)
                for right, kept in (precision_from(found, place, threshold),)
                if kept >= FEWEST and right >= wanted * kept
            ]
            assert (row and row["threshold"]) == (min(reaching) if reaching else None)
            if row:
                assert (row["right"], row["kept"]) == precision_from(found, place, row["threshold"])
                assert row["interval"][0] < row["right"] / row["kept"] <= row["interval"][1] + 1e-12
