import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.datasets import load_digits
from sklearn.linear_model import LogisticRegression

from dpal.recompute.sums import MODELS, NoisySums, Summary, class_means, repaired, split_noise, summarise
from learner.estimators.sums import PrivateSums
from learner.linear_model import LinearModel
from privacy.accounting.cost import ADJACENCIES
from privacy.accounting.events import event_from_json


@pytest.fixture(scope="module")
def digits():
    X, y = load_digits(return_X_y=True)
    order = np.random.default_rng(0).permutation(len(X))
    X = X[order] / np.linalg.norm(X[order], axis=1, keepdims=True) * (1 - 1e-9)
    return X[:1_437], y[order][:1_437], X[1_437:], y[order][1_437:]


def blobs(n, n_classes, d, *, seed, distance=1.0):
    rng = np.random.default_rng(seed)
    centres = rng.normal(size=(n_classes, d)) * distance
    y = np.arange(n) % n_classes
    X = centres[y] + rng.normal(size=(n, d))
    return X / (1.001 * np.linalg.norm(X, axis=1).max()), y


def test_ten_digits_at_epsilon_two(digits):
    X, y, test_X, test_y = digits
    scores = [
        PrivateSums(2.0, delta=1e-6, classes=list(range(10)), random_state=seed).fit(X, y).score(test_X, test_y)
        for seed in range(10)
    ]
    assert np.mean(scores) >= 0.86


def overconfidence(X, y, test_X, test_y, *, epsilon):
    """Return how far the mean probability of what is predicted is above the share that is right, over five seeds."""
    gaps = []
    for seed in range(5):
        fitted = PrivateSums(epsilon, classes=list(range(10)), random_state=seed).fit(X, y)
        gaps.append(fitted.predict_proba(test_X).max(axis=1).mean() - fitted.score(test_X, test_y))
    return float(np.mean(gaps))


def test_probabilities_are_calibrated(digits):
    assert abs(overconfidence(*digits, epsilon=2.0)) < 0.07


def test_probabilities_promise_little_where_noise_hides_the_classes():
    X, y = blobs(1_100, 10, 128, seed=5, distance=0.5)
    assert overconfidence(X[:100], y[:100], X[100:], y[100:], epsilon=2.0) < 0.05


@pytest.mark.slow
def test_a_thousand_classes_learn_as_two_do():
    X, y = blobs(40_000, 1_000, 60, seed=1, distance=2.0)
    fitted = PrivateSums(2.0, classes=range(1_000), moment_share=0.0, random_state=1).fit(X, y)
    assert fitted.score(X[:5_000], y[:5_000]) > 0.2


def test_with_little_noise_and_spread_that_differs_the_choice_leaves_class_means_behind():
    """Two classes that differ along a short column, beside a long one that tells nothing."""
    rng = np.random.default_rng(2)
    y = rng.integers(2, size=4_000)
    X = np.stack([rng.normal(size=4_000), 0.05 * rng.normal(size=4_000) + 0.1 * (2 * y - 1)], axis=1)
    X = X / (1.001 * np.linalg.norm(X, axis=1).max())
    scores = {
        name: PrivateSums(100.0, classes=[0, 1], model=name, moment_share=0.5, random_state=3).fit(X, y).score(X, y)
        for name in ("auto", *MODELS)
    }
    assert scores["discriminants"] > scores["prototypes"] + 0.1
    assert scores["auto"] >= max(scores["discriminants"], scores["least_squares"]) - 0.02


@pytest.mark.slow
def test_with_much_noise_the_choice_is_hardly_worse_than_the_best():
    X, y = blobs(900, 6, 60, seed=4, distance=0.25)
    found = {
        name: np.mean(
            [PrivateSums(1.0, classes=range(6), model=name, random_state=s).fit(X, y).score(X, y) for s in range(8)]
        )
        for name in ("auto", *MODELS)
    }
    assert found["auto"] > max(found.values()) - 0.05


def test_blocks_add_up(digits):
    X, y, test_X, test_y = digits
    shape = {"delta": 1e-6, "classes": list(range(10))}
    alone, running = [], []
    for seed in range(6):
        first = PrivateSums(1.0, random_state=seed, **shape).fit(X[:700], y[:700])
        second = PrivateSums(1.0, random_state=seed + 100, **shape).fit(X[700:], y[700:])
        both = PrivateSums(1.0, random_state=seed + 100, earlier=first.sums_, **shape).fit(X[700:], y[700:])
        np.testing.assert_allclose(both.sums_.class_sums, first.sums_.class_sums + second.sums_.class_sums)
        assert both.privacy_event_ == second.privacy_event_
        alone.append(second.score(test_X, test_y))
        running.append(both.score(test_X, test_y))
    assert np.mean(running) > np.mean(alone) + 0.02


@pytest.mark.parametrize("moment_share", [0.0, 0.05])
def test_a_prior_stays_until_the_sums_say_something(digits, moment_share):
    """One label a class beside all of them, at one price."""
    X, y, _, _ = digits
    prior = LinearModel(np.eye(10, 64), np.arange(10.0), tuple("0123456789"))
    first = np.array([np.flatnonzero(y == each)[0] for each in range(10)])
    shape = {"classes": range(10), "moment_share": moment_share, "random_state": 1}
    hidden = PrivateSums(0.5, prior=prior, **shape).fit(X[first], y[first])
    assert hidden.model_ == "prior"
    np.testing.assert_array_equal(hidden.coef_, prior.coef)
    np.testing.assert_array_equal(hidden.intercept_, prior.intercept)
    assert PrivateSums(2.0, prior=prior, **shape).fit(X, y).model_ != "prior"
    # Without one there is nothing to stay with.
    assert PrivateSums(0.5, **shape).fit(X[first], y[first]).model_ == "prototypes"


def test_a_prior_that_fits_helps_and_one_that_does_not_is_left(digits):
    X, y, test_X, test_y = digits
    few = np.random.default_rng(3).permutation(len(X))[:300]
    known = LogisticRegression(C=1.0).fit(X[700:], y[700:])
    names = tuple(map(str, range(10)))
    good = LinearModel(known.coef_, known.intercept_, names, "softmax")
    bad = LinearModel(np.random.default_rng(1).normal(size=(10, 64)), np.zeros(10), names, "softmax")
    found = {
        label: np.mean(
            [
                PrivateSums(1.0, classes=range(10), prior=prior, random_state=seed)
                .fit(X[few], y[few])
                .score(test_X, test_y)
                for seed in range(8)
            ]
        )
        for label, prior in (("good", good), ("none", None), ("bad", bad))
    }
    assert found["good"] > found["none"] + 0.05
    assert found["bad"] > found["none"] - 0.05


@pytest.mark.parametrize("n", [60, 180])
def test_where_noise_hides_the_class_means_nothing_else_is_tried(n):
    """Eighteen classes, few labels, some rare: judged by such means, what guesses frequent classes would win."""
    rng = np.random.default_rng(8)
    centres = rng.normal(size=(18, 128))
    centres /= np.linalg.norm(centres, axis=1, keepdims=True)
    y = rng.choice(18, size=n, p=np.arange(1, 19) / 171)
    X = 0.5 * centres[y] + rng.normal(size=(n, 128)) * 0.06
    X /= 1.001 * np.linalg.norm(X, axis=1).max()
    chosen = [PrivateSums(5.0, classes=range(18), random_state=seed).fit(X, y).model_ for seed in range(5)]
    assert chosen == ["prototypes"] * 5


def test_a_repaired_matrix_is_positive_and_nearer_to_the_truth():
    rng = np.random.default_rng(5)
    d = 40
    axes = np.linalg.qr(rng.normal(size=(d, d)))[0]
    truth = (axes * np.r_[[5.0, 3.0, 2.0], np.full(d - 3, 0.01)]) @ axes.T
    noise = np.triu(rng.normal(size=(d, d)) * 0.05, 1)
    noisy = truth + noise + noise.T
    repaired_ = repaired(noisy, 2 * 0.05**2, trace=float(np.trace(truth)))
    assert np.linalg.eigvalsh(repaired_).min() > 0
    assert np.linalg.norm(repaired_ - truth) < np.linalg.norm(noisy - truth)
    assert np.trace(repaired_) == pytest.approx(np.trace(truth), rel=0.02)


def test_without_noise_class_means_are_the_means():
    X, y = blobs(3_000, 3, 4, seed=6)
    rows = np.hstack([X, np.full((3_000, 1), 0.3)])
    members = (y[:, None] == np.arange(3)).astype(float)
    sums = NoisySums(rows.T @ rows, members.T @ rows, 1e-12, 1e-12)
    summary = summarise(sums, constant=0.3, row_norm=1.0)
    means, variances = class_means(summary)
    for k in range(3):
        np.testing.assert_allclose(means[k] + summary.mean, X[y == k].mean(axis=0), atol=3e-3)
    assert variances.max() < 1e-3


def mean_errors(own, noise):
    rng = np.random.default_rng(11)
    counts = np.full(60, 20.0)
    truth = rng.normal(size=(60, len(own))) * np.sqrt(own)
    spread = float(own.mean()) * len(own)
    sampled = counts[:, None] * truth + rng.normal(size=truth.shape) * np.sqrt(20 * spread / len(own))
    noisy = sampled + rng.normal(size=truth.shape) * noise**0.5
    summary = Summary(counts, np.zeros(len(own)), noisy, noise, None, spread)
    return [((class_means(summary, by_column=each)[0] - truth) ** 2).mean() for each in (True, False)]


def test_columns_that_noise_alone_tells_apart_are_one():
    """Taking each at its own would count the noise of the luckiest twice, for twice the error here."""
    by_column, together = mean_errors(np.full(128, 0.01), noise=400.0)
    assert by_column < 1.05 * together


def test_columns_that_differ_are_told_apart():
    by_column, together = mean_errors(np.r_[np.full(8, 0.1), np.full(120, 0.0005)], noise=4.0)
    assert by_column < 0.8 * together


def test_split_noise_gives_two_independent_versions():
    """Seeded: the two versions average to the original and their noises, of twice the variance, do not go together."""
    rng = np.random.default_rng(7)
    noise = rng.normal(size=(300, 300)) * 2
    first, second = split_noise(NoisySums(None, noise, 0.0, 4.0), rng)
    np.testing.assert_allclose((first.class_sums + second.class_sums) / 2, noise)
    assert first.class_variance == second.class_variance == 8.0
    assert (first.class_sums**2).mean() == pytest.approx(8.0, rel=0.03)
    assert abs((first.class_sums * second.class_sums).mean()) < 0.15


@given(
    epsilon=st.floats(0.01, 10),
    exponent=st.floats(-12, -2),
    adjacency=st.sampled_from(ADJACENCIES),
    n_classes=st.integers(2, 50),
    moment_share=st.floats(0, 0.9),
    norm_bound=st.floats(0.1, 10),
)
def test_the_price_is_what_was_asked_for_whatever_the_parameters(
    epsilon, exponent, adjacency, n_classes, moment_share, norm_bound
):
    """Recomputed from the stored event for the neighbours it was asked for."""
    delta = 10.0**exponent
    estimator = PrivateSums(
        epsilon,
        delta=delta,
        classes=range(n_classes),
        moment_share=moment_share,
        norm_bound=norm_bound,
        adjacency=adjacency,
    )
    cost = event_from_json(estimator.event_for(5).to_json()).cost(adjacency=adjacency)
    assert 0.9999 * epsilon <= cost.epsilon <= epsilon
    assert 0.999 * delta <= cost.delta <= delta


def test_the_constant_column_is_part_of_a_row():
    """What is summed is within the bound that is charged, and comes near it."""
    event = PrivateSums(1.0, classes=[0, 1], norm_bound=3.0, intercept_scaling=4.0).event_for(2)
    assert 5 <= event.norm_bound <= 5.001


def test_rows_and_labels_beyond_what_is_declared_are_refused():
    with pytest.raises(ValueError, match="clip them first"):
        PrivateSums(1.0, classes=[0, 1]).fit([[1.0, 1.0]], [0])
    with pytest.raises(ValueError, match="not among the declared"):
        PrivateSums(1.0, classes=[0, 1]).fit([[0.5, 0.5]], [2])


@pytest.mark.parametrize("wrong", [{"delta": 0.0}, {"moment_share": 1.0}, {"model": "forest"}, {"adjacency": "twin"}])
def test_parameters_out_of_range(wrong):
    with pytest.raises(ValueError, match="must"):
        PrivateSums(1.0, classes=[0, 1], **wrong).event_for(3)
