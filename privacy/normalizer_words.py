"""Public word lists of the rules in `privacy.normalizers`; like the rules they never change.

They are English. Words of other languages pass through unchanged, which is safe and groups fewer texts.
"""

import re
from typing import Final

from privacy.common_words import COMMON_WORDS

# A decimal digit of any script.
DIGIT: Final = re.compile(r"\d")
NUMBER: Final = "<number>"
WEEKDAY: Final = "<weekday>"
MONTH: Final = "<month>"
# Any word that is not on the public list.
OTHER: Final = "<word>"

# "second", "may" and "march" are left out: more often than not they mean something else.
_NUMBERS = (
    "zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen seventeen "
    "eighteen nineteen twenty thirty forty fifty sixty seventy eighty ninety hundred thousand million billion"
)
_WEEKDAYS = "monday tuesday wednesday thursday friday saturday sunday"
_MONTHS = "january february april june july august september october november december"
_FUNCTION_WORDS = (
    "a an the this that these those i im ive ill me my mine we us our ours you youre your yours he him his she her "
    "hers it its they them their theirs is are am was were be been being do does did doing have has had having will "
    "would shall should can could might must to of for at by with from as and or but if so than then there here "
    "please thanks thank hey hi hello ok okay just some any"
)

MASKS: Final = {
    **dict.fromkeys(_NUMBERS.split(), NUMBER),
    **{word + plural: WEEKDAY for word in _WEEKDAYS.split() for plural in ("", "s")},
    **dict.fromkeys(_MONTHS.split(), MONTH),
}
FUNCTION_WORDS: Final = frozenset(_FUNCTION_WORDS.split())
SLOTS: Final = frozenset({NUMBER, WEEKDAY, MONTH, OTHER})


def masked(word: str) -> str:
    """Return the public slot a word stands in, or the word; every word with a digit in it is a number."""
    if DIGIT.search(word):
        return NUMBER
    return MASKS.get(word, word)


def content(word: str) -> str:
    """Return the slot or the word, or an empty string for a word that only binds others."""
    return "" if word in FUNCTION_WORDS else masked(word)


def general(word: str) -> str:
    """Return what `content` does, with the same slot for every word that is not on the public list."""
    left = content(word)
    return left if not left or left in SLOTS or left in COMMON_WORDS else OTHER


def listed_steps(word: str) -> str:
    """Return what `general` does, and nothing for a word that is not on the list."""
    left = general(word)
    return "" if left == OTHER else left
