import math
import unicodedata
from decimal import Decimal

import pytest

from annotation.choices.label_types.catalogue import label_type_of
from dpal.reading.cells import BadCell
from dpal.reading.labels import NOT_A_CLASS, SEVERAL, LabelNames, canonical_name, labels_in, name_key

NAMES = LabelNames(("refund", "Über uns", "card_arrival", "1", "-1", "true", "a: b"))


@pytest.mark.parametrize(
    ("cell", "place"),
    [
        *[("refund", 0), (["refund"], 0), ('["refund"]', 0), ("['refund']", 0), (" REFUND ", 0), (("Refund",), 0)],
        *[(unicodedata.normalize("NFD", "über UNS"), 1), ("über\u00a0uns", 1), ("\ufeffüber\u200b uns", 1)],
        *[("Card arrival", 2), ("CARD_ARRIVAL", 2)],
        *[(1, 3), (1.0, 3), ("1", 3), ("1.0", 3), ("+1", 3), (Decimal("1.0"), 3), ([1], 3)],
        *[(-1, 4), ("-1.0", 4), ("-1", 4)],
        *[(True, 5), ("TRUE", 5), ("True", 5), ([True], 5)],
        *[("a: b", 6), (["A: B"], 6)],
    ],
)
def test_one_cell_means_one_class(cell, place):
    assert NAMES.read(cell) == place


@pytest.mark.parametrize("cell", [None, "", " ", [], "[]", math.nan, [None]])
def test_cells_without_a_label(cell):
    with pytest.raises(BadCell, match="is empty"):
        NAMES.read(cell)


@pytest.mark.parametrize("cell", ["other", {"name": "refund"}, [["refund"]], "refund,1", 0.5, "[refund"])
def test_cells_that_name_no_class(cell):
    with pytest.raises(BadCell) as refused:
        NAMES.read(cell)
    assert str(refused.value) == NOT_A_CLASS


def test_several_classes_are_no_answer_of_one():
    with pytest.raises(BadCell) as refused:
        NAMES.read(["refund", "1"])
    assert str(refused.value) == SEVERAL
    assert NAMES.read(["refund", "Refund"]) == 0


def test_a_loose_spelling_of_two_classes_means_neither():
    names = LabelNames(("US", "us"))
    assert (names.read("US"), names.read("us")) == (0, 1)
    with pytest.raises(BadCell):
        names.read("Us")


def test_values_that_a_mapping_spells():
    names = LabelNames(("refund", "praise"), {"RF": "refund", "gone": "nothing"})
    assert names.read("rf") == 0
    assert names.place("gone") is None


def test_a_class_may_be_called_as_a_list_is_written():
    assert LabelNames(("[x]", "y")).read("[x]") == 0


def test_sets_name_the_separator_that_the_cells_seem_to_have():
    sets = label_type_of("several", {"classes": ["a", "b"], "most_classes": 2})
    names = LabelNames(("a", "b"))
    assert sets.places(names.read_set("a|b", sets, separator="|")) == (0, 1)
    assert sets.places(names.read_set("['b', 'A']", sets, separator="|")) == (0, 1)
    with pytest.raises(BadCell, match=r"by ',', not '\|'"):
        names.read_set("a, b", sets, separator="|")
    assert sets.places(names.read_set("a, b", sets, separator=",")) == (0, 1)


def test_labels_of_a_cell_as_they_are_listed():
    assert labels_in("a, b", separator=",") == ["a", "b"]
    assert labels_in("a, b") == ["a, b"]


def test_names_have_one_form():
    assert canonical_name(" e\u0301te\u200b  x ") == "éte x"
    assert name_key("Ete_X") == name_key("ete x")
