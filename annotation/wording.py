"""What was said in English, told in the language of the page."""

import re
from datetime import UTC, datetime
from functools import lru_cache

from django.utils.formats import date_format, number_format
from django.utils.timezone import localtime
from django.utils.translation import get_language, gettext, trans_real

from privacy.wording import is_template, most_specific_first, pattern_of

GROUPED = re.compile(r"\d{1,3}(,\d{3})+|\d+(\.\d+)?")
MOMENT = re.compile(r"(\d{4}-\d\d-\d\d \d\d:\d\d) UTC")
INNER = ("reason", "word")
SENTENCE_END = re.compile(r"(?<=\.)(;? )")


def told(said: str) -> str:
    """Return a sentence, or several, in the language of the page, its times in the viewer's zone."""
    if not said:
        return ""
    whole = _translated(said, one_sentence=True)
    if whole is None:
        # Sentences that were joined are known one by one.
        parts = SENTENCE_END.split(said)
        found = [_translated(part) for part in parts[::2]]
        whole = None if all(found) else _translated(said)
        parts[::2] = [known or part for known, part in zip(found, parts[::2], strict=True)]
        whole = whole or "".join(parts)
    return MOMENT.sub(_local_time, whole)


def _translated(said: str, *, one_sentence: bool = False) -> str | None:
    """Return one sentence translated; None where no message of the catalogue could have become it.

    With `one_sentence` what a template holds must not reach into the next sentence: that one is a message of its own.
    """
    known = gettext(said)
    if known != said:
        return known
    for template, pattern in _patterns(get_language() or ""):
        match = pattern.fullmatch(said)
        if match and not (one_sentence and _reaches_on(match.groupdict())):
            values = {name: _value(name, text) for name, text in match.groupdict().items()}
            return gettext(template).format_map(values)
    return None


@lru_cache(maxsize=16)
def _patterns(language: str) -> list[tuple[str, re.Pattern[str]]]:
    """Return the templates of a language's catalogue with what their sentences look like."""
    # Where plurals are, a key is a pair.
    known = trans_real.translation(language)._catalog.keys() if language else ()  # type: ignore[attr-defined]
    templates = [key for key in known if isinstance(key, str) and is_template(key)]
    return [(template, pattern_of(template)) for template in most_specific_first(templates)]


def _reaches_on(values: dict[str, str]) -> bool:
    return any(SENTENCE_END.search(text) for name, text in values.items() if name.startswith(INNER))


def _value(name: str, text: str) -> str:
    """Return what a sentence was filled with: a sentence again, a number with the language's signs, or a name."""
    if name.startswith(INNER):
        return told(text)
    if GROUPED.fullmatch(text):
        return str(number_format(text.replace(",", ""), use_l10n=True, force_grouping="," in text))
    return text


def _local_time(found: re.Match[str]) -> str:
    moment = datetime.strptime(found[1], "%Y-%m-%d %H:%M").replace(tzinfo=UTC)
    return str(date_format(localtime(moment), "SHORT_DATETIME_FORMAT"))
