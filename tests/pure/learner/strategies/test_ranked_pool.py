from decimal import Decimal

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from learner.strategies.ranked_pool import AnnotationBudget, RankedExamplePool

IDS = np.array([30, 10, 20, 40])
UNCERTAINTY = np.array([0.2, 0.6, 0.2, 0.4])
CONFIDENCE = np.array([0.9, 0.5, 0.8, 0.7])


def pool_of(**budget):
    return RankedExamplePool(IDS, UNCERTAINTY, CONFIDENCE, budget=AnnotationBudget(**budget))


def test_the_most_uncertain_come_first_and_each_comes_once():
    pool = pool_of()
    assert pool.next_examples().tolist() == [10]
    assert pool.next_examples(2).tolist() == [40, 30]  # of equal ones the first that came
    ids, uncertainty, confidence = pool.waiting()
    assert (ids.tolist(), uncertainty.tolist(), confidence.tolist()) == ([20], [0.2], [0.8])
    assert pool.next_examples(9).tolist() == [20]
    assert len(pool) == pool.affordable == 0
    assert not pool.spent


@pytest.mark.parametrize(
    ("budget", "examples"),
    [
        ({}, None),
        ({"labels": 7, "labels_per_example": 3}, 2),
        ({"labels": 2, "labels_per_example": 3}, 0),
        ({"money": Decimal("1.00"), "price": Decimal("0.15"), "labels_per_example": 2}, 3),
        ({"labels": 4, "money": Decimal("1.00"), "price": Decimal("0.15"), "labels_per_example": 2}, 2),
        ({"money": Decimal("0.30"), "price": Decimal("0.10")}, 3),
    ],
)
def test_the_nearer_limit_counts_in_whole_examples(budget, examples):
    assert AnnotationBudget(**budget).examples == examples


def test_it_stops_when_the_money_is_spent():
    pool = pool_of(money=Decimal("0.45"), price=Decimal("0.10"), labels_per_example=2)
    assert pool.affordable == 2
    assert pool.next_examples(4).tolist() == [10, 40]
    assert pool.budget.money == Decimal("0.05")
    assert pool.spent
    assert pool.next_examples(4).tolist() == []
    assert len(pool) == 2


@given(
    labels=st.none() | st.integers(0, 30),
    money=st.none() | st.integers(0, 300),
    price=st.integers(1, 40),
    overlap=st.integers(1, 5),
    asked=st.lists(st.integers(0, 6), max_size=8),
)
def test_neither_limit_is_ever_passed(labels, money, price, overlap, asked):
    pool = pool_of(
        labels=labels,
        money=None if money is None else Decimal(money) / 100,
        price=Decimal(price) / 100,
        labels_per_example=overlap,
    )
    handed = [example for n in asked for example in pool.next_examples(n).tolist()]
    assert len(set(handed)) == len(handed) <= sum(asked)
    answers = overlap * len(handed)
    assert labels is None or answers <= labels
    assert money is None or answers * price <= money
    # It stops for a reason: everything asked for came, or the next one could not be paid.
    wanted = min(sum(asked), len(IDS))
    short = (labels is not None and answers + overlap > labels) or (
        money is not None and (answers + overlap) * price > money
    )
    assert len(handed) == wanted or short


@pytest.mark.parametrize(
    "arguments",
    [
        {"labels": -1},
        {"money": Decimal(-1), "price": Decimal(1)},
        {"money": Decimal(1)},
        {"price": Decimal(-1)},
        {"labels_per_example": 0},
    ],
)
def test_a_budget_that_means_nothing_is_refused(arguments):
    with pytest.raises(ValueError):
        AnnotationBudget(**arguments)


def test_more_than_the_budget_pays_for_is_refused():
    with pytest.raises(ValueError, match="pays for 2"):
        AnnotationBudget(labels=5, labels_per_example=2).after(3)


@pytest.mark.parametrize(
    ("ids", "uncertainty", "message"),
    [([1, 2], [0.1], "shapes"), ([1, 1], [0.1, 0.2], "distinct"), ([1, 2], [0.1, np.nan], "numbers")],
)
def test_what_cannot_be_ranked_is_refused(ids, uncertainty, message):
    values = np.array(uncertainty)
    with pytest.raises(ValueError, match=message):
        RankedExamplePool(np.array(ids), values, values, budget=AnnotationBudget())


def test_a_negative_number_is_refused():
    with pytest.raises(ValueError, match="n must be"):
        pool_of().next_examples(-1)
