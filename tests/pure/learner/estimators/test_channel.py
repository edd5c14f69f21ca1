import numpy as np
import pytest
from scipy.special import softmax
from sklearn.linear_model import LogisticRegression

from dpal.recompute.channel import class_scores
from learner.estimators.adaptation import INVERSE_TEMPERATURE, adapt_to_texts
from learner.estimators.channel import ChannelClassifier
from learner.linear_model import LinearModel
from privacy.accounting.answers import response_odds
from privacy.mechanisms.randomized_response import RandomizedResponse
from privacy.mechanisms.randomness import SimulationRandom

DIMENSION = 24


def scene(n_classes, n_texts=600, *, spread=0.5, seed=0):
    rng = np.random.default_rng(seed)
    middles = rng.normal(size=(n_classes, DIMENSION))
    middles /= np.linalg.norm(middles, axis=1, keepdims=True)
    truth = rng.integers(n_classes, size=n_texts)
    texts = middles[truth] + spread * rng.normal(size=(n_texts, DIMENSION)) / np.sqrt(DIMENSION) * 2
    texts /= np.linalg.norm(texts, axis=1, keepdims=True)
    names = tuple(f"class {place}" for place in range(n_classes))
    beside = middles + 0.8 * rng.normal(size=middles.shape) / np.sqrt(DIMENSION) * 2
    return names, texts, truth, described(beside, names)


def described(directions, names):
    directions = directions / np.linalg.norm(directions, axis=1, keepdims=True)
    if len(names) == 2:
        directions = directions[1:] - directions[:1]
    return LinearModel(INVERSE_TEMPERATURE * directions, np.zeros(len(directions)), names, "softmax")


def responses(truth, n_classes, epsilon, *, seed=0):
    mechanism = RandomizedResponse(n_classes, response_odds(epsilon))
    kept = np.ones((len(truth), n_classes), dtype=bool)
    said = mechanism.release(truth, kept, rng=SimulationRandom(seed))
    return said, mechanism.likelihoods(said, kept)


def share_right(model, texts, truth):
    return float(np.mean(np.array(model.leaders(model.decision_function(texts))) == truth))


def test_without_noise_and_prior_it_is_multinomial_regression():
    names, texts, truth, _prior = scene(5)
    fitted = ChannelClassifier(classes=names, regularization=1.0).fit(texts, np.eye(5)[truth])
    centred = texts - texts.mean(axis=0)
    scaled = centred / np.sqrt((centred**2).sum(axis=1).mean())
    # A constant column makes their intercept as regularised as ours.
    theirs = LogisticRegression(C=1.0, fit_intercept=False, tol=1e-8, max_iter=1000)
    theirs.fit(np.c_[scaled, np.ones(len(scaled))], truth)
    np.testing.assert_allclose(
        fitted.model_.predict_proba(texts), theirs.predict_proba(np.c_[scaled, np.ones(len(scaled))]), atol=2e-3
    )


@pytest.mark.parametrize("n_classes", [2, 6])
def test_knowing_the_channel_is_worth_more_than_believing_what_was_said(n_classes):
    """Where every response avoids one class in favour of its neighbour, belief learns the wrong class."""
    names, texts, truth, _prior = scene(n_classes, 2000, spread=0.4)
    channel = 0.4 * np.eye(n_classes) + 0.6 * np.roll(np.eye(n_classes), 1, axis=0)
    rng = np.random.default_rng(5)
    said = np.where(rng.random(len(truth)) < 0.4, truth, (truth + 1) % n_classes)
    knowing = ChannelClassifier(classes=names, regularization=1.0).fit(texts, channel[said])
    believing = ChannelClassifier(classes=names, regularization=1.0).fit(texts, np.eye(n_classes)[said])
    assert share_right(believing.model_, texts, truth) < 0.3
    assert share_right(knowing.model_, texts, truth) > 0.9


@pytest.mark.parametrize("n_classes", [2, 5])
def test_responses_that_say_nothing_leave_the_prior(n_classes):
    names, texts, _truth, prior = scene(n_classes)
    nothing = np.full((50, n_classes), 1 / n_classes)
    alone = ChannelClassifier(classes=names, prior=prior).fit(texts[:50], nothing)
    np.testing.assert_allclose(alone.model_.predict_proba(texts), prior.predict_proba(texts), atol=1e-6)
    with_texts = ChannelClassifier(classes=names, prior=prior).fit(texts[:50], nothing, texts=texts)
    moved = adapt_to_texts(prior, texts)
    np.testing.assert_allclose(with_texts.model_.predict_proba(texts), moved.predict_proba(texts), atol=1e-6)


def test_texts_without_answers_help_before_and_after_the_first_response():
    names, texts, truth, prior = scene(8, 700)
    _said, chances = responses(truth[:100], 8, 2.0)
    version_0 = share_right(prior, texts, truth)
    moved = share_right(adapt_to_texts(prior, texts), texts, truth)
    alone = ChannelClassifier(classes=names, prior=prior).fit(texts[:100], chances)
    both = ChannelClassifier(classes=names, prior=prior).fit(texts[:100], chances, texts=texts)
    assert moved > version_0 + 0.05
    assert share_right(both.model_, texts, truth) > share_right(alone.model_, texts, truth)
    assert share_right(both.model_, texts, truth) > moved - 0.05


def test_words_that_describe_the_wrong_class_are_outgrown():
    names, texts, truth, prior = scene(4, 800, spread=0.3)
    wrong = described(np.roll(prior.coef, 1, axis=0), names)
    _said, chances = responses(truth[:300], 4, 3.0)
    fitted = ChannelClassifier(classes=names, prior=wrong).fit(texts[:300], chances, texts=texts)
    assert share_right(wrong, texts, truth) < 0.2
    assert share_right(fitted.model_, texts, truth) > 0.9
    assert fitted.strengths_.sum() < 0.5


def test_the_penalty_with_the_likelier_held_out_responses_is_taken():
    names, texts, truth, _prior = scene(3, 400, spread=0.2)
    sure = ChannelClassifier(classes=names).fit(texts, np.eye(3)[truth])
    _said, chances = responses(truth[:40], 3, 0.1)
    unsure = ChannelClassifier(classes=names).fit(texts[:40], chances)
    assert sure.regularization_ < unsure.regularization_
    assert sure.log_likelihood_ / 400 > unsure.log_likelihood_ / 40


def test_two_responses_to_a_question_are_worth_more_than_one():
    names, texts, truth, _prior = scene(4, 1000)
    first, second = (responses(truth, 4, 1.0, seed=seed)[1] for seed in (1, 2))
    once = ChannelClassifier(classes=names, regularization=1.0).fit(texts, first)
    twice = ChannelClassifier(classes=names, regularization=1.0).fit(texts, first * second)
    assert share_right(twice.model_, texts, truth) > share_right(once.model_, texts, truth)


def test_the_order_of_the_classes_does_not_matter():
    names, texts, truth, prior = scene(5)
    _said, chances = responses(truth[:80], 5, 2.0)
    order = [3, 0, 4, 1, 2]
    shuffled = LinearModel(prior.coef[order], prior.intercept[order], tuple(names[place] for place in order), "softmax")
    one = ChannelClassifier(classes=names, prior=prior).fit(texts[:80], chances, texts=texts)
    other = ChannelClassifier(classes=shuffled.classes, prior=shuffled).fit(texts[:80], chances[:, order], texts=texts)
    # The solver's path differs in the last digits.
    np.testing.assert_allclose(one.model_.predict_proba(texts)[:, order], other.model_.predict_proba(texts), atol=5e-3)


@pytest.mark.slow
def test_a_thousand_classes():
    names, texts, truth, prior = scene(1000, 1200)
    _said, chances = responses(truth[:200], 1000, 6.0)
    fitted = ChannelClassifier(classes=names, prior=prior, regularization=1.0).fit(texts[:200], chances, texts=texts)
    assert fitted.model_.coef.shape == (1000, DIMENSION)
    assert share_right(fitted.model_, texts, truth) > share_right(prior, texts, truth) > 0.03


def test_frequent_texts_draw_the_clusters():
    _names, texts, _truth, prior = scene(3, 300)
    often = np.where(np.arange(300) < 100, 25.0, 1.0)
    repeated = np.repeat(texts, np.where(often > 1, 5, 1), axis=0)
    weighted, written_out = adapt_to_texts(prior, texts, often), adapt_to_texts(prior, repeated)
    # A square root of counts: 25 times said counts as 5 texts. The middle of all texts uses the counts themselves.
    agreement = np.mean(weighted.predict_proba(texts).argmax(1) == written_out.predict_proba(texts).argmax(1))
    assert agreement > 0.97
    assert not np.allclose(weighted.coef, adapt_to_texts(prior, texts).coef)


def test_scores_have_the_probabilities_of_the_model():
    _names, texts, _truth, prior = scene(2)
    np.testing.assert_allclose(softmax(class_scores(prior, texts), axis=1), prior.predict_proba(texts))
    _names, texts, _truth, prior = scene(3)
    np.testing.assert_allclose(softmax(class_scores(prior, texts), axis=1), prior.predict_proba(texts))


@pytest.mark.parametrize(
    ("change", "named"),
    [
        ({"classes": ("a",)}, "classes"),
        ({"classes": ("a", "a")}, "classes"),
        ({"classes": ("a", "b", "c")}, "same classes"),
        ({"regularization": 0.0}, "regularization"),
        ({"X": np.ones((0, DIMENSION))}, "X"),
        ({"X": np.full((2, DIMENSION), np.nan)}, "finite"),
        ({"likelihoods": np.ones((3, 2))}, "likelihoods"),
        ({"likelihoods": np.zeros((2, 2))}, "likelihoods"),
        ({"likelihoods": -np.ones((2, 2))}, "likelihoods"),
        ({"texts": np.ones((4, 3))}, "X"),
        ({"texts": np.ones((4, DIMENSION)), "weights": np.ones(3)}, "weights"),
        ({"texts": np.ones((4, DIMENSION)), "weights": np.zeros(4)}, "weights"),
    ],
)
def test_what_cannot_be_is_refused(change, named):
    prior = LinearModel(np.ones((1, DIMENSION)), np.zeros(1), ("a", "b"))
    made = {name: change.get(name, value) for name, value in [("classes", ("a", "b")), ("regularization", None)]}
    given = {"X": np.ones((2, DIMENSION)), "likelihoods": np.ones((2, 2)), "texts": None, "weights": None}
    given |= {name: value for name, value in change.items() if name in given}
    with pytest.raises(ValueError, match=named):
        ChannelClassifier(prior=prior, **made).fit(
            given["X"], given["likelihoods"], texts=given["texts"], weights=given["weights"]
        )


def test_a_prior_whose_scores_do_not_add_up_is_refused():
    prior = LinearModel(np.ones((3, DIMENSION)), np.zeros(3), ("a", "b", "c"), "one_vs_rest")
    with pytest.raises(ValueError, match="softmax"):
        ChannelClassifier(classes=prior.classes, prior=prior).fit(np.ones((2, DIMENSION)), np.ones((2, 3)))
