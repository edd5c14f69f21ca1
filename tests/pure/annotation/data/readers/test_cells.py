import pytest

from dpal.reading import cells


@pytest.mark.parametrize("text", ["Play", " a ", "ä\u00a0b", "x" * cells.MAXIMUM_TEXT_LENGTH])
def test_texts_that_pass(text):
    assert cells.read_text(text) == text
    assert cells.all_texts_pass([text, "and more"])


@pytest.mark.parametrize(
    ("cell", "reason"),
    [
        (None, cells.EMPTY),
        (" \n", cells.EMPTY),
        (True, cells.NOT_TEXT),
        ("x" * (cells.MAXIMUM_TEXT_LENGTH + 1), cells.TOO_LONG),
        ("a\0", cells.NUL),
        ("a\udcff", cells.NOT_UTF8),
        ("cut \ud83d", cells.HALF),
    ],
)
def test_texts_that_do_not(cell, reason):
    with pytest.raises(cells.BadCell) as refused:
        cells.read_text(cell)
    assert str(refused.value) == reason
    assert not cells.all_texts_pass(["fine", cell])


@pytest.mark.parametrize(("cell", "text"), [(7, "7"), (7.0, "7"), (0.5, "0.5"), (-1, "-1")])
def test_a_number_is_the_text_that_another_file_would_hold(cell, text):
    assert cells.read_text(cell) == text


def test_one_person_has_one_name():
    names = {cells.read_contributor(name, required=True) for name in (" Zoë", "Zoe\u0308 ", "Zoë")}
    assert len(names) == 1
    assert cells.read_contributor(7, required=True) == "7"
    assert cells.read_contributor("", required=False) is None
    assert cells.plain_names([" Ann", "Bo"]) == ["Ann", "Bo"]
    assert cells.plain_names(["Zoë"]) is None
    with pytest.raises(cells.BadCell):
        cells.read_contributor(" ", required=True)
