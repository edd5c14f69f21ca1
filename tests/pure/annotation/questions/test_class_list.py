from hypothesis import example, given
from hypothesis import strategies as st

from annotation.choices.classes import Look
from annotation.questions.class_list import codes_of, listed_classes


@example(["0", "A\N{BRAHMI NUMBER ONE}"])
@given(st.lists(st.text(min_size=1, max_size=12), min_size=2, max_size=80, unique=True))
def test_no_two_codes_are_alike_whatever_the_names(names):
    codes = codes_of(names)
    assert len(set(codes)) == len(names)
    assert all(len(code) >= 2 and not any(sign.isdigit() or sign.isspace() for sign in code) for code in codes)


def test_a_key_of_its_own_is_the_code_of_a_class_that_is_found_by_typing():
    names = tuple(f"class {letter}" for letter in "abcdefghijk")
    looks = (Look(key="x"), *[Look()] * 10)
    assert [one.code for one in listed_classes(names, (), looks)] == ["x", *codes_of(names)[1:]]
    assert [one.code for one in listed_classes(names[:2], (), looks[:2])] == ["", ""]


def test_words_about_a_class_are_found_without_case_and_with_their_first_alternative():
    said = ("Cash: {coins|notes} and more", "cash: money", "other:", "nobody: x")
    cash, card = listed_classes(("cash", "card"), said)
    assert (cash.words, cash.code) == (("coins and more", "money"), "")
    assert card.words == ()
