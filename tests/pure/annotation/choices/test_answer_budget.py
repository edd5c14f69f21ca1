from decimal import Decimal

import pytest

from annotation.choices.plans import AnswerBudget
from annotation.choices.rules import hides_selection

LIMITED = AnswerBudget(labels_limit=5)
OPEN = {"oracle": "trusted", "selection": "random"}


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"selection": "secret_sample"}, "the size of the sample"),
        (
            {"selection": "bernoulli_screen", "update_policy": "flsw_hidden"},
            "the size of the sample",
        ),
    ],
)
def test_no_limit_where_stopping_would_tell(settings, words):
    assert hides_selection(settings)
    assert words in LIMITED.rules(settings)["labels_limit"]
    assert AnswerBudget(money_limit=Decimal(5), price_per_label=Decimal(1)).rules(settings).keys() == {"labels_limit"}
    assert not AnswerBudget(price_per_label=Decimal(1), currency="NOK").rules(settings)


def test_a_limit_in_money_needs_a_price():
    assert not hides_selection(OPEN)
    assert not LIMITED.rules(OPEN)
    assert AnswerBudget(money_limit=Decimal(5)).rules(OPEN).keys() == {"price_per_label"}
    assert AnswerBudget.broken_by(OPEN | {"money_limit": "5.00", "price_per_label": "0.5"}) == {}
