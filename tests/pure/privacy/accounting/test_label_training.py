import itertools
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from learner.estimators.logistic import PrivateLogisticRegression
from learner.papers.ghassemi_curves import HuberLoss, PrivateHuberSVM
from privacy.accounting import events as ev

LOGISTIC = PrivateLogisticRegression()._loss


def log_density(event, loss, rows, labels, weights):
    """Return the log density of the exact minimisers at `weights`, up to a constant; a label of -1 is none."""
    total = 0.0
    for model, w in enumerate(weights):
        known = labels >= 0
        signs = np.where(labels[known] == (1 if len(weights) == 1 else model), 1.0, -1.0)
        margins = signs * (rows[known] @ w)
        tilt = -(event.total_regularization * w + (loss.slope(margins) * signs) @ rows[known])
        hessian = (rows[known].T * loss.curvature(margins)) @ rows[known] + event.total_regularization * np.eye(len(w))
        total += np.linalg.slogdet(hessian)[1] - np.linalg.norm(tilt) / event.tilt_scale
    return total


def worst_loss(event, loss, n_classes, rng, trials=60):
    worst = 0.0
    for _ in range(trials):
        rows = rng.normal(size=(4, 2))
        rows *= event.norm_bound / np.linalg.norm(rows, axis=1, keepdims=True)
        # Along the row that changes, and at margins where a loss bends the least evenly, neighbours lie farthest apart.
        weights = rng.normal(size=(event.n_models, 2)) * rng.choice([0.0, 0.1, 1.0, 5.0])
        labels = rng.integers(-1, n_classes, size=4)
        here = log_density(event, loss, rows, labels, weights)
        for answer in range(-1, n_classes):
            changed = labels.copy()
            changed[0] = answer
            worst = max(worst, abs(log_density(event, loss, rows, changed, weights) - here))
    return worst


@settings(max_examples=25, deadline=None)
@given(
    epsilon=st.floats(0.1, 8), ridge=st.floats(0.05, 20), n_classes=st.integers(2, 5), seed=st.integers(0, 2**32 - 1)
)
def test_another_answer_costs_the_logistic_loss_no_more_than_a_row_left_out(epsilon, ridge, n_classes, seed):
    classes = list(range(n_classes))
    trained = PrivateLogisticRegression(epsilon, ridge, classes=classes, fit_intercept=False).event_for(2)
    charged = ev.LabelTrainingEvent(trained, "logistic").cost(adjacency="replace")
    assert charged == trained.cost(adjacency="null")
    output = trained.output_cost().times(trained.n_models).epsilon
    assert worst_loss(trained, LOGISTIC, n_classes, np.random.default_rng(seed)) <= charged.epsilon - output + 1e-9


def test_the_huber_loss_would_lose_more_which_is_why_it_pays_for_two_steps():
    """The planted twin: charged like the logistic loss, an answer turned round loses nearly twice the charge."""
    trained = PrivateHuberSVM(2.0, 50.0, smoothing=0.125, classes=[0, 1], fit_intercept=False).event_for(2)
    found = worst_loss(trained, HuberLoss(0.125), 2, np.random.default_rng(5), trials=400)
    assert found > 1.5 * trained.cost(adjacency="null").epsilon
    charged = ev.LabelTrainingEvent(trained).cost(adjacency="replace").epsilon
    assert found <= charged == trained.cost(adjacency="replace").epsilon
    assert charged > 1.9 * trained.cost(adjacency="null").epsilon


def test_a_minimiser_moves_as_far_for_another_answer_as_for_none():
    """Output perturbation: the gradients of both answers differ by the row itself."""
    margins = np.linspace(-30, 30, 1001)
    both = np.abs(LOGISTIC.slope(margins) + LOGISTIC.slope(-margins))
    assert both.max() <= 1 + 1e-12
    for n_classes in (2, 3, 7):
        trained = PrivateLogisticRegression(1.0, 2.0, "output", classes=list(range(n_classes))).event_for(5)
        flipped = 1 if n_classes == 2 else 2
        assert flipped <= trained.n_models
        assert ev.LabelTrainingEvent(trained, "logistic").cost(adjacency="replace") == trained.cost()


def log_masses(counts, scale):
    weights = scale * (counts - counts.max())
    return weights - np.log(np.exp(weights).sum())


def worst_loss_of_a_pick(scale, candidates):
    """Return the largest loss of a draw between all counts that differ in the label of one row of three."""
    worst = 0.0
    others = np.array(list(itertools.product((0, 2), repeat=candidates)))
    for before, after in itertools.product(itertools.product((0, 1), repeat=candidates), repeat=2):
        losses = [log_masses(each + before, scale) - log_masses(each + after, scale) for each in others]
        worst = max(worst, float(np.abs(losses).max()))
    return worst


@pytest.mark.parametrize("scale", [0.01, 0.2, 3.0])
def test_a_pick_pays_for_both_labels_of_an_answer_that_is_replaced(scale):
    """The planted twin prices the draw as for a row left out, and loses more than that."""
    trained = PrivateLogisticRegression(1.0, 2.0, classes=[0, 1, 2]).event_for(5)
    picked = ev.PickedFitEvent(trained, 4, scale, "exponential")
    charged, alone = (
        ev.LabelTrainingEvent(each, "logistic").cost(adjacency="replace").epsilon for each in (picked, trained)
    )
    found = worst_loss_of_a_pick(scale, 4)
    assert alone == trained.cost(adjacency="null").epsilon
    twin = picked.cost(adjacency="null").epsilon - alone
    assert 1.4 * twin < found <= charged - alone + 1e-9


def test_another_loss_pays_for_two_steps_and_the_pick():
    huber = PrivateHuberSVM(2.0, 50.0, smoothing=0.125, classes=[0, 1]).event_for(3)
    picked = ev.PickedFitEvent(huber, 5, 0.1, "exponential")
    assert ev.LabelTrainingEvent(picked).cost(adjacency="replace") == picked.cost(adjacency="replace")


def test_what_is_not_the_logistic_loss_cannot_say_so():
    huber = PrivateHuberSVM(1.0, 1.0, smoothing=0.5, classes=[0, 1]).event_for(3)
    picked = ev.PickedFitEvent(huber, 5, 0.1, "exponential")
    for inner in (huber, picked, ev.MinibatchSgdEvent(2.0, 5), ev.GaussianEvent(1.0, 2.0)):
        with pytest.raises(ValueError, match="no training with the logistic loss"):
            ev.LabelTrainingEvent(inner, "logistic")
    with pytest.raises(ValueError, match="cannot be charged for one answer"):
        ev.LabelTrainingEvent(ev.PostProcessingEvent("ranking"))
    assert math.isfinite(ev.LabelTrainingEvent(huber).cost(adjacency="replace").epsilon)
