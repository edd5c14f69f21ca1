import pytest

from dpal.errors import Unreadable
from dpal.reading.heads import read_head


def head_of(text, candidates=(",", "\t", ";", "|"), **how):
    head, rest = read_head(iter(text.splitlines(keepends=True)), candidates, **how)
    return head.names, head.delimiter, head.lines, "".join(rest)


@pytest.mark.parametrize(
    ("text", "names", "delimiter", "lines"),
    [
        ("a,b\nrest", ["a", "b"], ",", 1),
        ("\ufeff\ufeffa,b\nrest", ["a", "b"], ",", 1),
        ("\n\r\na;b\nrest", ["a", "b"], ";", 3),
        ("sep=;\na;b,c\nrest", ["a", "b,c"], ";", 2),
        ('\ufeff"sep=\t"\na\tb\nrest', ["a", "b"], "\t", 2),
        ('a,"b\n(c)"\nrest', ["a", "b\n(c)"], ",", 2),
        ('"b\r\n\r\n(c)",a\nrest', ["b\n\n(c)", "a"], ",", 3),
        ("# made by x\n#2024\na,b\nrest", ["a", "b"], ",", 3),
        ("#id,text\nrest", ["#id", "text"], ",", 1),
        ("#tag\nrest", ["#tag"], ",", 1),
        (" a , b \nrest", ["a", "b"], ",", 1),
    ],
)
def test_heads(text, names, delimiter, lines):
    assert head_of(text) == (names, delimiter, lines, "rest")


def test_rows_before_the_header_are_skipped():
    assert head_of("Title\n\nMore, of it\na,b\nrest", skip=2) == (["a", "b"], ",", 4, "rest")


def test_the_separator_that_was_given_goes_before_the_one_in_the_file():
    assert head_of("sep=;\na,b;c\nrest", [","], is_given=True)[:2] == (["a", "b;c"], ",")


def test_wanted_names_choose_the_separator():
    assert head_of("a;b,c,d\n", wanted=["a"])[0] == ["a", "b,c,d"]


def test_without_a_header_the_first_row_stays():
    assert head_of("# one,two\nrest", has_header=False) == (["# one", "two"], ",", 0, "# one,two\nrest")


@pytest.mark.parametrize("text", ["", "\n\n", "\ufeff\n", "sep=;\n"])
def test_files_without_a_row(text):
    with pytest.raises(Unreadable, match="holds no rows"):
        head_of(text)
