"""Messages stored in English, told in the language of the page."""

import re
from datetime import datetime
from typing import Any

from django.utils.formats import date_format, number_format
from django.utils.timezone import localtime
from django.utils.translation import gettext, ngettext

from privacy.wording import Message, Messages, filled, template_fields, text_of

NUMBER = re.compile(r"(-?)(\d[\d,]*(?:\.\d+)?)(.*)")


def localized(said: str) -> str:
    """Return a sentence, or several, in the language of the page, its times in the viewer's zone."""
    if not said:
        return ""
    if not isinstance(said, Message):
        return str(gettext(said))
    if isinstance(said, Messages):
        return said.separator.join(map(localized, said.parts))
    values = said.parameters
    if not values:
        return str(gettext(said.code))
    form = ngettext(said.code, said.plural, values["n"]) if said.plural else gettext(said.code)
    formats = template_fields(said.plural or said.code)
    return filled(form, {name: _shown(value, formats.get(name, "")) for name, value in values.items()})


def class_name(name: str) -> str:
    return name.replace("_", " ")


def _shown(value: Any, spec: str) -> str:
    if isinstance(value, Message):
        return localized(value)
    if isinstance(value, datetime):
        return str(date_format(localtime(value), "SHORT_DATETIME_FORMAT"))
    text = text_of(value, spec)
    return text if isinstance(value, str) else _with_signs(text)


def _with_signs(number: str) -> str:
    """Write an English number with the signs of the language; inf and nan stay words."""
    parts = NUMBER.fullmatch(number)
    if parts is None:
        return number
    sign, digits, rest = parts.groups()
    grouped = "," in digits
    return f"{sign}{number_format(digits.replace(',', ''), use_l10n=True, force_grouping=grouped)}{rest}"
