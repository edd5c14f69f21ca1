import pytest
from django import forms
from hypothesis import given
from hypothesis import strategies as st

from annotation.projects.forms.configuration import column_line
from annotation.projects.forms.opening import _declared_column
from dpal.reading.quoting import quoted, split_name, split_quoted

NAMES = st.text('ab:," to1', min_size=1, max_size=8).map(str.strip).filter(bool)
NAMES |= st.sampled_from(["or missing", "b or other", 'a" or missing'])
ALLOWED = st.fixed_dictionaries({}, optional={"missing": st.just(True)})


@given(
    column=st.builds(
        lambda name, low, allowed: {"name": name, "low": low, "high": low + 1.0, **allowed},
        NAMES,
        st.integers(-9, 9).map(float),
        ALLOWED,
    )
)
def test_a_column_of_numbers_is_the_line_that_declares_it(column):
    assert _declared_column(1, column_line(column)) == column


@given(
    column=st.builds(dict, name=NAMES, categories=st.lists(NAMES, min_size=1, max_size=4, unique=True)),
    allowed=st.fixed_dictionaries({}, optional={"missing": st.just(True), "other": st.just(True)}),
)
def test_a_column_of_categories_is_the_line_that_declares_it(column, allowed):
    assert _declared_column(1, column_line(column | allowed)) == column | allowed


def test_names_with_colons_and_categories_with_commas():
    declared = _declared_column(1, '"time: of day": "early, or so", late')
    assert declared == {"name": "time: of day", "categories": ["early, or so", "late"]}
    assert quoted("plain", ":") == "plain"
    assert split_name("no colon") == ("", "")
    assert split_quoted("a, ,b") == ["a", "b"]


@pytest.mark.parametrize(
    "line",
    ["age", ": 1 to 2", "age:", '"age: 1 to 2', "age: 2 to 1", "age: x to 2", "job: a, a", "age: 1 to 2 or other"],
)
def test_lines_that_declare_nothing(line):
    with pytest.raises(forms.ValidationError):
        _declared_column(1, line)
