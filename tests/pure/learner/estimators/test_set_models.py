import numpy as np
import pytest

from dpal.recompute.label_sets import DIRECTIONS, chosen_direction, set_scores, spreads, summarise_sets
from dpal.recompute.sums import NoisySums

CONSTANT = 0.3


def sums_of(X, members, *, noise=0.0, moment_noise=0.0, seed=0):
    rng = np.random.default_rng(seed)
    rows = np.hstack([X, np.full((len(X), 1), CONSTANT)])
    entered = np.hstack([members, np.ones((len(X), 1), dtype=bool)]).astype(float)
    square = np.triu(rng.normal(size=(rows.shape[1],) * 2) * moment_noise / np.sqrt(2), 1)
    moments = rows.T @ rows + square + square.T
    sums = entered.T @ rows
    return NoisySums(moments, sums + rng.normal(size=sums.shape) * noise, moment_noise**2 + 1e-12, noise**2 + 1e-12)


def two_directions(n=6_000, seed=1):
    rng = np.random.default_rng(seed)
    members = rng.random((n, 2)) < (0.5, 0.2)
    X = np.stack([rng.normal(size=n), *(0.4 * rng.normal(size=(2, n)) + 0.8 * members.T)], axis=1)
    return X / (1.001 * np.linalg.norm(X, axis=1).max()), members


def test_without_noise_shares_and_means_are_read_off():
    X, members = two_directions()
    summary = summarise_sets(sums_of(X, members), constant=CONSTANT, row_norm=1.0)
    np.testing.assert_allclose(summary.shares, members.mean(axis=0), atol=1e-3)
    np.testing.assert_allclose(summary.known.mean, X.mean(axis=0), atol=1e-3)
    for k in range(2):
        away = summary.known.deviations[k] / summary.known.counts[k]
        np.testing.assert_allclose(away, X[members[:, k]].mean(axis=0) - X.mean(axis=0), atol=1e-3)


def test_without_noise_the_discriminant_is_calibrated():
    X, members = two_directions()
    scores = set_scores(
        summarise_sets(sums_of(X, members), constant=CONSTANT, row_norm=1.0), DIRECTIONS["discriminants"]
    ).of(X)
    shares = 1 / (1 + np.exp(-scores))
    for k in range(2):
        for low, high in ((0.0, 0.2), (0.2, 0.5), (0.5, 0.8), (0.8, 1.0)):
            inside = (shares[:, k] >= low) & (shares[:, k] < high)
            if inside.sum() > 200:
                assert members[inside, k].mean() == pytest.approx(shares[inside, k].mean(), abs=0.08)


def test_where_noise_hides_everything_probabilities_are_the_shares():
    """A class of which nothing is known must not be said to be there or not with any certainty: on average over noises
    the log loss is hardly above that of the shares.
    """
    rng = np.random.default_rng(3)
    X = rng.normal(size=(400, 50)) / 10
    members = rng.random((400, 3)) < 0.25
    loss = []
    for seed in range(10):
        noisy = sums_of(X, members, noise=5.0, moment_noise=5.0, seed=seed)
        summary = summarise_sets(noisy, constant=CONSTANT, row_norm=1.0)
        shares = 1 / (1 + np.exp(-set_scores(summary, DIRECTIONS["prototypes"]).of(X)))
        loss.append(-np.log(np.where(members, shares, 1 - shares)).mean())
    alone = members.mean(axis=0)
    assert np.mean(loss) < 1.25 * -(alone * np.log(alone) + (1 - alone) * np.log(1 - alone)).mean()


def test_the_spread_along_a_direction_is_seen_where_noise_lets_it():
    X, members = two_directions()
    weights = np.eye(3)
    seen, trusted = spreads(
        summarise_sets(sums_of(X, members, moment_noise=0.1), constant=CONSTANT, row_norm=1.0), weights
    )
    np.testing.assert_allclose(seen, X.var(axis=0), rtol=0.1, atol=5e-3)
    assert trusted.min() > 0.99
    hidden = summarise_sets(sums_of(X, members, moment_noise=1e6), constant=CONSTANT, row_norm=1.0)
    assert spreads(hidden, weights)[1].max() < 0.01


def test_the_better_direction_is_chosen_by_the_sums_alone():
    X, members = two_directions()
    shape = {"constant": CONSTANT, "row_norm": 1.0, "prior": None}
    quiet = sums_of(X, members, noise=0.5, moment_noise=0.5)
    assert chosen_direction(quiet, generator=np.random.default_rng(0), **shape) == "discriminants"
    alone = NoisySums(None, quiet.class_sums, 0.0, quiet.class_variance)
    assert chosen_direction(alone, generator=np.random.default_rng(0), **shape) == "prototypes"
