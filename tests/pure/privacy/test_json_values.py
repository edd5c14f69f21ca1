from datetime import time
from decimal import Decimal

import pytest

from privacy.choices import Parameter
from privacy.json_values import read, written_value

PRICE = Parameter(
    name="price", type=Decimal, default=None, label="Price", above=0, at_most=10, decimals=4, optional=True
)
QUIET = Parameter(name="quiet", type=time, default=None, label="Quiet", optional=True)
CODE = Parameter(name="code", type=str, default="", label="Code", pattern="[A-Z]{3}", rule="Three letters, not {got}.")


@pytest.mark.parametrize(
    ("value", "wanted", "found"),
    [
        ("0.0500", Decimal, Decimal("0.0500")),
        (7, Decimal, Decimal(7)),
        (True, Decimal, True),
        (0.5, Decimal, 0.5),
        ("half", Decimal, "half"),
        ("22:30", time, time(22, 30)),
        ("24:00", time, "24:00"),
        (3, float, 3.0),
        (True, float, True),
        (["a"], tuple, ("a",)),
        (None, Decimal, None),
    ],
)
def test_a_value_is_read_in_its_type_or_left_as_it_is(value, wanted, found):
    assert read(value, wanted) == found
    assert type(read(value, wanted)) is type(found)


@pytest.mark.parametrize(
    ("value", "decimals", "text"),
    [
        (Decimal("5"), 2, "5.00"),
        (Decimal("1E+3"), 2, "1000.00"),
        (Decimal("0.05"), 4, "0.0500"),
        (time(6), 0, "06:00:00"),
        (("a", "b"), 0, ["a", "b"]),
        (0.5, 0, 0.5),
    ],
)
def test_what_is_written_is_read_as_the_same(value, decimals, text):
    assert written_value(value, decimals) == text
    assert read(text, type(value)) == value


@pytest.mark.parametrize(
    ("parameter", "value", "rule"),
    [
        (PRICE, "0.05", ""),
        (PRICE, Decimal(10), ""),
        (PRICE, None, ""),
        (PRICE, "0", "Must be above 0, got 0."),
        (PRICE, "10.5", "Must be at most 10, got 10.5."),
        (PRICE, "0.00001", "Must have at most 4 decimals, got 0.00001."),
        (PRICE, "NaN", "Must be a finite number, got NaN."),
        (PRICE, "-Infinity", "Must be a finite number, got -Infinity."),
        (PRICE, 0.05, 'Must be an amount as a text like "12.50", got 0.05.'),
        (PRICE, "five", "Must be an amount as a text like \"12.50\", got 'five'."),
        (QUIET, "22:30", ""),
        (QUIET, "25:00", "Must be a time like 22:30, got '25:00'."),
        (CODE, "NOK", ""),
        (CODE, "", ""),
        (CODE, "NOKK", "Three letters, not NOKK."),
    ],
)
def test_a_declaration_refuses_what_is_none(parameter, value, rule):
    assert parameter.broken(value) == rule
