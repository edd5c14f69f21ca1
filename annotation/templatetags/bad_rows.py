"""Why a row is bad, in the reader's language: the readers are pure and say it in English."""

import re

from django import template
from django.utils.translation import gettext, gettext_noop

register = template.Library()
REASONS = (
    gettext_noop("is empty"),
    gettext_noop("is longer than %(first)s characters"),
    gettext_noop("is not text"),
    gettext_noop("is not valid UTF-8"),
    gettext_noop("holds a NUL character"),
    gettext_noop("is not a finite number"),
    gettext_noop("is not a declared category"),
    gettext_noop("is not one of the project's classes"),
    gettext_noop("does not hold as many whole numbers from 0 to 255 as the image has pixels"),
    gettext_noop("is not valid JSON"),
    gettext_noop("is not a JSON object"),
    gettext_noop("is missing"),
    gettext_noop("a quote is opened and never closed"),
    gettext_noop("a field is longer than %(first)s characters"),
    gettext_noop("a quote is closed in the middle of a field"),
    gettext_noop("cannot be split into fields"),
    gettext_noop("has %(first)s fields where the header names %(second)s"),
    gettext_noop("is not a readable PNG image"),
    gettext_noop("is not %(first)s x %(second)s pixels"),
    gettext_noop("is far larger than an image of this size can be"),
    gettext_noop("has more than eight bits a colour"),
    gettext_noop("is encrypted"),
    gettext_noop("has a file name that leads out of the archive"),
    gettext_noop("lies in no folder named after a class"),
    gettext_noop("has no answer that counts"),
    gettext_noop("names several classes in one answer"),
    gettext_noop("has answers that disagree, and no class has the most of them"),
)
NUMBER = re.compile(r"[\d,]*\d")


def _without_numbers(reason: str) -> str:
    """Return a reason with a sign for each number, so that one pattern is looked up for all of them."""
    return re.sub(r"%\(\w+\)s", "#", NUMBER.sub("#", reason))


KNOWN = {_without_numbers(reason): reason for reason in REASONS}


@register.filter
def in_words(reason: str) -> str:
    """Return a reason in the language of the page; one that no reader gives any more stays as it was stored."""
    known = KNOWN.get(_without_numbers(reason))
    if known is None:
        return reason
    if "%(" not in known:
        return gettext(known)
    first, *others = NUMBER.findall(reason)
    return gettext(known) % {"first": first, "second": others[0] if others else ""}
