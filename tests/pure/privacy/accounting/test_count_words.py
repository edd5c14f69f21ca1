import pytest

from privacy.accounting.event import class_words, column_words, model_words


@pytest.mark.parametrize(
    ("words", "one", "several"),
    [
        (class_words, "1 class", "2 classes"),
        (column_words, "1 column", "2 columns"),
        (model_words, "one model", "2 models"),
    ],
)
def test_one_is_told_as_one(words, one, several):
    assert (words(1), words(2)) == (one, several)
    assert words(2).parameters["n"] == 2
