"""Form fields made from declared parameters."""

import csv
import math
import re
from collections.abc import Mapping
from datetime import time
from decimal import Decimal
from typing import Any

from django import forms
from django.core.files import File
from django.utils.translation import gettext, gettext_lazy

from annotation.choices.catalogue import CATALOGUE
from annotation.errors import InvalidUpload
from privacy.accounting.cost import LEAST_EPSILON_LIMIT, MOST_DELTA_LIMIT, MOST_EPSILON_LIMIT
from privacy.choices import Choice, Kind, Parameter
from privacy.wording import as_message

PERCENT = 100
LARGEST_WORDS = 4 * 2**20

# What a choice of each kind is called, and what it decides.
KIND_FIELDS: dict[Kind, tuple[Any, Any]] = {
    Kind.RANDOMIZER: (
        gettext_lazy("Randomised answers"),
        gettext_lazy("Adds noise to answers before a model learns from them."),
    ),
    Kind.SUGGESTIONS: (
        gettext_lazy("Suggestions"),
        gettext_lazy("Shown to annotators beside later questions."),
    ),
    Kind.MACHINE: (
        gettext_lazy("Machine annotator"),
        gettext_lazy("A language model answers as well; it gets only texts that passed the gate."),
    ),
}


# The first line of a table of examples, as its columns are called.
EXAMPLES_HEAD = re.compile(r"class\s*([,;\t])\s*example", re.IGNORECASE)


def lines_of(text: str) -> list[str]:
    """Return the lines of a text; a table `class,example` as lines of a class, a colon and its example in quotes."""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    head = EXAMPLES_HEAD.fullmatch(lines[0]) if lines else None
    if head is None:
        return lines
    rows = csv.reader(lines[1:], delimiter=head[1])
    return [f'{row[0].strip()}: "{row[1].strip()}"' if len(row) == 2 else ": ".join(row) for row in rows]


def lines_in_file(file: "File[bytes]") -> list[str]:
    """Return the lines of a small text file, as `lines_of` reads them.

    Raises
    ------
    InvalidUpload
        If it is larger than 4 MiB or not written in UTF-8.
    """
    if file.size > LARGEST_WORDS:
        raise InvalidUpload(as_message("file: is larger than {most:,} bytes", most=LARGEST_WORDS))
    try:
        return lines_of(file.read().decode("utf-8-sig"))
    except UnicodeDecodeError as error:
        raise InvalidUpload("file: is not written in UTF-8") from error


class LinesField(forms.CharField):
    widget = forms.Textarea(attrs={"rows": 4})

    def to_python(self, value: Any) -> Any:
        if isinstance(value, list | tuple):
            return list(value)
        return lines_of(super().to_python(value) or "")

    def prepare_value(self, value: Any) -> Any:
        return "\n".join(value) if isinstance(value, list | tuple) else value


class DecimalMarkField(forms.FloatField):
    """A number as people type it, with a point or a comma; a number input drops the other one and reads 0,5 as 5."""

    widget = forms.TextInput(attrs={"inputmode": "decimal"})

    def to_python(self, value: Any) -> Any:
        if isinstance(value, str) and value.count(",") == 1 and "." not in value:
            value = value.replace(",", ".")
        return super().to_python(value)


class EpsilonField(DecimalMarkField):
    def __init__(self, **options: Any) -> None:
        super().__init__(**{"min_value": LEAST_EPSILON_LIMIT, "max_value": MOST_EPSILON_LIMIT} | options)


class DeltaField(DecimalMarkField):
    def __init__(self, **options: Any) -> None:
        super().__init__(**{"min_value": 0, "max_value": MOST_DELTA_LIMIT} | options)


def field_of(declared: Parameter) -> forms.Field:
    """Return the form field of a parameter; what has no default is missed by the choice itself."""
    said: dict[str, Any] = {
        "label": gettext_lazy(declared.label),
        "help_text": gettext_lazy(declared.help) if declared.help else "",
        "initial": declared.default,
        "required": not declared.optional and declared.default is not None and declared.type not in (bool, tuple, str),
    }
    if declared.options:
        none = [("", gettext_lazy("none"))] if declared.optional else []
        choices = [*none, *((value, gettext_lazy(label)) for value, label in declared.options.items())]
        return forms.ChoiceField(choices=choices, **said | {"required": not declared.optional})
    if declared.type is bool:
        # An unticked box sends nothing.
        return forms.BooleanField(**said | {"initial": declared.default or None})
    if declared.type is int:
        number = forms.IntegerField(min_value=_least(declared), max_value=_most(declared), **said)
        if declared.rule or (declared.default is None and not declared.optional):
            # What it may be, the choice says in its own words.
            number.validators = []
        return number
    if declared.type is float:
        return DecimalMarkField(**said)
    if declared.type is Decimal:
        return _amount_field(declared, said)
    if declared.type is time:
        return forms.TimeField(widget=forms.TimeInput(attrs={"type": "time"}, format="%H:%M"), **said)
    if declared.type is tuple:
        return LinesField(**said)
    if declared.pattern:
        return forms.RegexField(
            f"^{declared.pattern}$", error_messages={"invalid": gettext_lazy(declared.rule)}, **said
        )
    return forms.CharField(**said)


def _amount_field(declared: Parameter, said: Mapping[str, Any]) -> forms.DecimalField:
    least = declared.at_least if declared.above is None else Decimal(1).scaleb(-declared.decimals)
    return forms.DecimalField(
        min_value=None if least is None else Decimal(least),
        max_value=None if declared.at_most is None else Decimal(declared.at_most),
        decimal_places=declared.decimals,
        **said,
    )


def named_field(choice: type[Choice], name: str) -> forms.Field:
    return field_of(next(each for each in choice.parameters() if each.name == name))


def percent_field(
    choice: type[Choice], name: str, *, label: Any, least: int = 0, most: int = PERCENT
) -> forms.IntegerField:
    declared = next(each for each in choice.parameters() if each.name == name)
    return forms.IntegerField(
        required=not declared.optional,
        min_value=least,
        max_value=most,
        label=label,
        help_text=gettext_lazy(declared.help) if declared.help else "",
    )


def share_of(percent: int | None) -> float | None:
    return None if percent is None else percent / PERCENT


def percent_of(share: Any) -> Any:
    return round(PERCENT * share) if isinstance(share, float) else share


def kind_field(kind: Kind, offered: list[tuple[str, str]]) -> forms.ChoiceField:
    label, help_text = KIND_FIELDS.get(kind, (kind.key, ""))
    choices = [("", gettext_lazy("none")), *((name, gettext_lazy(text)) for name, text in offered)]
    return forms.ChoiceField(choices=choices, required=False, label=label, help_text=help_text)


def setting_label(name: str) -> str:
    declared = CATALOGUE.parameters().get(name)
    if declared is not None:
        return gettext(declared.label)
    kind = next((kind for kind in KIND_FIELDS if kind.key == name), None)
    return "" if kind is None else str(KIND_FIELDS[kind][0])


def setting_value_label(name: str, value: Any) -> str:
    declared = CATALOGUE.parameters().get(name)
    if declared is not None and declared.options:
        return gettext(declared.options.get(value, "")) if declared.options.get(value) else ""
    kind = next((kind for kind in Kind if kind.key == name), None)
    choice = None if kind is None else CATALOGUE.find(kind, str(value))
    return "" if choice is None else gettext(choice.label)


def _least(declared: Parameter) -> int | None:
    if declared.at_least is not None:
        return math.ceil(declared.at_least)
    return None if declared.above is None else math.floor(declared.above) + 1


def _most(declared: Parameter) -> int | None:
    if declared.at_most is not None:
        return math.floor(declared.at_most)
    return None if declared.below is None else math.ceil(declared.below) - 1
