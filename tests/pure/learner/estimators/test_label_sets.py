import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.metrics import f1_score

from learner.estimators.choice import Shape
from learner.estimators.label_sets import LabelSets, PrivateLabelSets
from learner.linear_model import LinearModel
from privacy.accounting.cost import ADJACENCIES
from privacy.accounting.events import event_from_json
from privacy.mechanisms.sums import STEPS, exact_sums

MOST = 3


def topics(n, *, n_classes=8, d=32, seed=0, spread=0.6, names=11):
    """Rows that add up the directions of their classes, of which frequent ones come first; at most three each."""
    directions = np.random.default_rng(names).normal(size=(n_classes, d))
    directions /= np.linalg.norm(directions, axis=1, keepdims=True)
    rng = np.random.default_rng(seed)
    members = rng.random((n, n_classes)) < 1 / np.arange(2, n_classes + 2)
    for row in members:
        row[rng.permutation(np.flatnonzero(row))[MOST:]] = False
    X = members @ directions + rng.normal(size=(n, d)) * spread / np.sqrt(d)
    return X / np.maximum(1.0, np.linalg.norm(X, axis=1, keepdims=True)) * (1 - 1e-9), members


def sets_of(n_classes=8, **options):
    values = {"delta": 5e-6, "labels_per_record": MOST, "classes": range(n_classes), "random_state": 1}
    return PrivateLabelSets(2.0, **(values | options))


def test_it_learns_sets_at_epsilon_two():
    X, members = topics(4_000)
    test_X, test_members = topics(1_000, seed=5)
    found = sets_of().fit(X, members).predict(test_X)
    assert f1_score(test_members, found, average="micro") > 0.9
    assert f1_score(test_members, found, average="macro") > 0.85


@pytest.mark.parametrize("n", [150, 600, 4_000])
def test_probabilities_say_no_more_than_is_known(n):
    """Better than everybody's share where there is something to know, and hardly worse where noise hides it."""
    test_X, truth = topics(2_000, seed=5)
    X, members = topics(n)
    loss = []
    for seed in range(4):
        shares = np.clip(sets_of(random_state=seed).fit(X, members).predict_proba(test_X), 1e-9, 1 - 1e-9)
        loss.append(-(truth * np.log(shares) + ~truth * np.log(1 - shares)).mean())
    share = truth.mean(axis=0)
    alone = -(share * np.log(share) + (1 - share) * np.log(1 - share)).mean()
    assert np.mean(loss) < alone * {150: 1.35, 600: 0.75, 4_000: 0.3}[n]


def test_a_record_without_classes_counts_as_one_that_lacks_them():
    """Without the sum of all rows, rows of no class would be nobody."""
    X, members = topics(4_000)
    rows = np.vstack([X, -X]) * 0.99
    found = sets_of().fit(rows, np.vstack([members, np.zeros_like(members)]))
    shares = found.predict_proba(topics(500, seed=5)[0] * -0.99)
    assert shares.mean() < 0.05


def test_two_classes_have_a_model_each():
    X, members = topics(3_000, n_classes=2)
    found = sets_of(2, labels_per_record=2).fit(X, members)
    assert found.coef_.shape == (2, 32)
    both = members.all(axis=1)
    assert found.predict(X)[both].all(axis=1).mean() > 0.8


@pytest.mark.slow
def test_a_thousand_classes_at_one_price():
    X, members = topics(20_000, n_classes=1_000, d=40)
    members = members & (np.cumsum(members, axis=1) <= MOST)
    found = sets_of(1_000, moment_share=0.0).fit(X, members)
    assert found.coef_.shape == (1_000, 40)
    assert found.privacy_event_.cost().epsilon <= 2.0
    assert found.privacy_event_.gaussian_mu() == pytest.approx(
        sets_of(2, labels_per_record=2).event_for(40).gaussian_mu()
    )


def test_blocks_add_up():
    X, members = topics(3_000)
    first = sets_of(random_state=3).fit(X[:1_500], members[:1_500])
    second = sets_of(random_state=4).fit(X[1_500:], members[1_500:])
    both = sets_of(random_state=4, earlier=first.sums_).fit(X[1_500:], members[1_500:])
    np.testing.assert_allclose(both.sums_.class_sums, first.sums_.class_sums + second.sums_.class_sums)
    assert both.privacy_event_ == second.privacy_event_


def test_a_prior_that_fits_helps_few_rows():
    directions = np.random.default_rng(11).normal(size=(8, 32))
    prior = LinearModel(directions, np.zeros(8), tuple("abcdefgh"), "independent")
    X, members = topics(150)
    test_X, truth = topics(1_000, seed=5)
    plain, helped = (
        np.mean(
            [
                f1_score(truth, sets_of(prior=each, random_state=s).fit(X, members).predict(test_X), average="micro")
                for s in range(6)
            ]
        )
        for each in (None, prior)
    )
    assert helped > plain + 0.05


sets = st.lists(st.booleans(), min_size=6, max_size=6).filter(lambda row: sum(row) <= MOST)
lengths = st.floats(0, 1)


@given(data=st.data(), adjacency=st.sampled_from(ADJACENCIES), moment_share=st.sampled_from([0.0, 0.05, 0.5]))
def test_neighbours_move_all_sums_by_no_more_than_is_charged(data, adjacency, moment_share):
    """The weighted distance between the exact sums of neighbours, rounding included, and near it for the worst one."""
    estimator = sets_of(6, moment_share=moment_share, adjacency=adjacency)
    event = estimator.event_for(4)

    def record():
        row = np.array(data.draw(st.lists(st.floats(-1, 1), min_size=4, max_size=4)))
        return row / max(1.0, np.linalg.norm(row)), np.array(data.draw(sets))

    others = [record() for _ in range(3)]
    one, other = record(), record()
    left = [*others, one]
    right = [*others, other] if adjacency == "replace" else others
    assert distance(estimator, event, left, right) <= event.gaussian_mu(adjacency=adjacency) * (1 + 1e-9)


def distance(estimator, event, left, right):
    def summed(records):
        rows = np.array([row for row, _ in records]).reshape(-1, 4)
        members = np.array([chosen for _, chosen in records], dtype=bool).reshape(-1, 6)
        entered = estimator._members(members, np.arange(6))
        return exact_sums([(estimator._with_constant(rows), entered)], event)

    (products, sums), (other_products, other_sums) = summed(left), summed(right)
    unit = event.norm_bound / STEPS
    square = float(((sums - other_sums) ** 2).sum()) * (unit / event.class_sigma) ** 2
    if event.moment_sigma:
        square += float(((products - other_products) ** 2).sum()) * (unit**2 / event.moment_sigma) ** 2
    return np.sqrt(square)


@pytest.mark.parametrize("moment_share", [0.0, 0.3])
def test_a_record_with_all_its_labels_moves_as_much_as_is_charged(moment_share):
    """And a twin that is charged for one label each, or for none of all rows, would be charged too little."""
    estimator = sets_of(6, moment_share=moment_share)
    event = estimator.event_for(4)
    full = (np.eye(4)[0], np.arange(6) < MOST)
    moved = distance(estimator, event, [full], [])
    assert 0.999 * event.gaussian_mu() < moved <= event.gaussian_mu()
    for fewer in (MOST, 1):
        cheaper = event_from_json({**event.to_json(), "labels_per_record": fewer})
        assert cheaper.gaussian_mu() < moved


@given(
    epsilon=st.floats(0.01, 10),
    exponent=st.floats(-12, -2),
    adjacency=st.sampled_from(ADJACENCIES),
    most=st.integers(1, 20),
    moment_share=st.floats(0, 0.9),
)
def test_the_price_is_what_was_asked_for(epsilon, exponent, adjacency, most, moment_share):
    """Recomputed from the stored event for the neighbours it was asked for."""
    delta = 10.0**exponent
    estimator = PrivateLabelSets(
        epsilon, delta=delta, classes=range(20), labels_per_record=most, moment_share=moment_share, adjacency=adjacency
    )
    cost = event_from_json(estimator.event_for(5).to_json()).cost(adjacency=adjacency)
    assert 0.9999 * epsilon <= cost.epsilon <= epsilon
    assert 0.999 * delta <= cost.delta <= delta


def test_more_labels_than_declared_and_what_is_no_set_are_refused():
    rows = np.zeros((1, 2))
    with pytest.raises(ValueError, match="at most 3 labels, got 4"):
        sets_of().fit(rows, np.arange(8)[None] < 4)
    with pytest.raises(ValueError, match="whether it has it"):
        sets_of().fit(rows, [3])
    with pytest.raises(ValueError, match="a column for each"):
        sets_of().fit(rows, np.zeros((1, 7), dtype=bool))
    with pytest.raises(ValueError, match="of one length"):
        sets_of().fit(rows, np.zeros((2, 8), dtype=bool))
    with pytest.raises(ValueError, match="clip them first"):
        sets_of().fit(rows + 2, np.zeros((1, 8), dtype=bool))


@pytest.mark.parametrize("wrong", [{"labels_per_record": 0}, {"labels_per_record": 9}, {"model": "forest"}])
def test_parameters_out_of_range(wrong):
    with pytest.raises(ValueError, match="must"):
        sets_of(**wrong).event_for(3)


def test_a_project_charges_for_as_many_labels_as_it_declares():
    shape = Shape([0, 1, 2, 3], 1.0, 0.2, labels_per_record=2)
    estimator = LabelSets(2.0, 1e-6).estimator(shape)
    assert estimator.event_for(8).labels_per_record == 3
    settings_ = {"classes": list("abcd"), "labels_per_record": 2, "oracle": "trusted", "feature_dimension": 8}
    assert (
        LabelSets(2.0, 1e-6).release(settings_ | {"data_kind": "text", "features": "standard"}).labels_per_record == 3
    )
