from privacy.accounting.event import counted_words


def test_one_is_told_as_one():
    assert [counted_words(n, "column") for n in (0, 1, 2)] == ["0 columns", "1 column", "2 columns"]
    assert [counted_words(n, "class", "classes") for n in (1, 2)] == ["1 class", "2 classes"]
