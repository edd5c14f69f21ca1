import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dpal.recompute.softmax_steps import start_of
from learner.estimators.softmax_steps import PrivateSoftmaxSteps
from learner.linear_model import LinearModel
from privacy.accounting.steps import CenteredStepsEvent, GradientStepsEvent
from privacy.mechanisms import gradient_steps
from privacy.mechanisms.randomness import SimulationRandom

CLASSES = [0, 1, 2, 3]


def task(count, *, common, seed=0):
    """Rows of norm one in 12 columns: a direction for each class, noise, and a part that all have in common."""
    rng = np.random.default_rng(seed)
    labels = rng.integers(4, size=count)
    rows = np.eye(12)[labels] * 0.6 + rng.normal(size=(count, 12)) * 0.3
    rows[:, 4:] += common / 8**0.5
    return rows / np.linalg.norm(rows, axis=1, keepdims=True), labels


def right(estimator, *, common):
    rows, labels = task(2_000, common=common)
    held_out, answers = task(2_000, common=common, seed=1)
    return (estimator.fit(rows, labels).predict(held_out) == answers).mean()


def steps(seed=0, **changes):
    values = {"epsilon": 0.1, "delta": 1e-6, "classes": CLASSES, "random_state": SimulationRandom(seed)}
    return PrivateSoftmaxSteps(**(values | changes))


def test_rows_about_their_mean_are_told_apart_better():
    """Twelve seeds, the same each time; the difference is .17 and its standard error .02."""
    about, plain = (
        np.mean([right(steps(seed, center_share=share), common=4.0) for seed in range(12)]) for share in (0.02, 0.0)
    )
    assert about > plain + 0.08


def test_rows_without_anything_in_common_lose_little():
    about, plain = (
        np.mean([right(steps(seed, center_share=share), common=0.0) for seed in range(12)]) for share in (0.02, 0.0)
    )
    assert about > plain - 0.02


def test_what_is_charged_names_the_mean():
    assert isinstance(steps().event_for(12), CenteredStepsEvent)
    assert type(steps(center_share=0.0).event_for(12)) is GradientStepsEvent
    rows, labels = task(200, common=1.0)
    fitted = steps().fit(rows, labels)
    assert fitted.privacy_event_ == fitted.event_for(12)
    assert fitted.privacy_event_.cost().epsilon <= 0.1


def test_a_prior_says_of_moved_rows_what_it_said_of_them():
    prior = LinearModel(np.arange(48.0).reshape(4, 12) % 7, np.arange(4.0), tuple("abcd"), "softmax")
    estimator, center, reach = steps(prior=prior), np.linspace(-0.3, 0.4, 12), 0.7
    start = start_of(estimator._public(estimator.event_for(12)), center, reach)
    rows, _labels = task(50, common=1.0)
    moved = np.hstack([(rows - center) / reach, np.full((50, 1), estimator.intercept_scaling)]) @ start.T
    said = prior.decision_function(rows)
    assert np.allclose(moved / moved.std(), said / said.std())


@given(seed=st.integers(0, 2**32 - 1), common=st.floats(0, 50), bound=st.floats(0.1, 10), count=st.integers(1, 40))
def test_no_row_becomes_longer_than_is_paid_for(seed, common, bound, count):
    rows, labels = task(count, common=common, seed=seed)
    told = []
    replace_rows = gradient_steps.NoisySteps.replace_rows

    def note(noisy, moved):
        told.append(np.linalg.norm(moved, axis=1).max() / noisy._event.norm_bound)
        replace_rows(noisy, moved)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(gradient_steps.NoisySteps, "replace_rows", note)
        fitted = steps(seed, epsilon=3.0, steps=3, norm_bound=bound).fit(rows * bound, labels)
    assert np.isfinite(fitted.coef_).all()
    assert told[0] <= 1


@pytest.mark.parametrize("share", [-0.01, 0.5, float("nan")])
def test_a_share_that_leaves_too_little_for_the_steps_is_refused(share):
    with pytest.raises(ValueError, match="center_share must lie in"):
        steps(center_share=share).event_for(12)
