"""Amounts, mechanisms and subjects of the ledger in words."""

import math
from collections.abc import Mapping
from dataclasses import dataclass, fields
from decimal import ROUND_CEILING, Decimal
from typing import Any, Final

from django import forms
from django.utils.formats import get_format, number_format
from django.utils.functional import Promise
from django.utils.text import format_lazy
from django.utils.translation import gettext, gettext_lazy, ngettext
from django.utils.translation import gettext as _

from annotation.choices.cards import ChoiceCards
from annotation.models import Dataset
from annotation.wording import localized
from privacy.accounting.composition import reading, recommended_delta
from privacy.accounting.cost import atto_shown, nano_shown
from privacy.accounting.event import REGISTRY
from privacy.accounting.events import Event, event_from_json


def epsilon_words(value: float | None) -> str:
    """Three digits after the point, rounded up; a dash where there is no amount."""
    if value is None:
        return "–"
    return _with_mark(f"{math.ceil(round(value * 1000, 6)) / 1000:.3f}")


def epsilon_left_words(value: float | None) -> str:
    """Three digits after the point, rounded down; a dash where there is no amount."""
    if value is None:
        return "–"
    return _with_mark(f"{math.floor(round(value * 1000, 6)) / 1000:.3f}")


def delta_words(value: float | None) -> str:
    """Two significant digits in scientific notation, rounded up."""
    if not value:
        return "0" if value == 0 else "–"
    exponent = math.floor(math.log10(value))
    mantissa = math.ceil(round(value / 10**exponent * 10, 6)) / 10
    if mantissa >= 10:
        mantissa, exponent = 1.0, exponent + 1
    return _with_mark(f"{mantissa:.1f}e{exponent}")


def exact_words(value: float | None) -> str:
    """All digits of an amount, so that the lines of a statement add up; a dash where there is no amount."""
    if value is None:
        return "–"
    exact = Decimal(repr(value)).normalize()
    return _with_mark(f"{exact:f}" if exact == 0 or exact >= Decimal("0.0001") else str(exact).lower())


def typed_words(units: int, places: int) -> str:
    """Return a limit in whole units exactly, as somebody types it: sent back unchanged it is the same limit."""
    value = Decimal(units).scaleb(-places).normalize()
    return f"{value:f}" if value == 0 or value >= Decimal("0.0001") else str(value).lower()


def _with_mark(number: str) -> str:
    return number.replace(".", str(get_format("DECIMAL_SEPARATOR")))


STATES = {
    "grant": gettext_lazy("in force"),
    "limit_change": gettext_lazy("in force"),
    "reserve": gettext_lazy("reserved, not settled yet"),
    "commit": gettext_lazy("spent"),
    "charge": gettext_lazy("spent without an output"),
    "void": gettext_lazy("given back, nothing was read"),
    "post_processing": gettext_lazy("free"),
}


def upload_names(subjects: set[str]) -> dict[str, str]:
    ids = [subject.partition(":")[2] for subject in subjects if subject.startswith("dataset:")]
    return {str(pk): name for pk, name in Dataset.objects.filter(pk__in=ids).values_list("pk", "name")}


SUBJECTS: Final = {
    "round": gettext_lazy("Round %(name)s"),
    "release": gettext_lazy("Release %(name)s"),
    "dataset": gettext_lazy("Upload %(name)s"),
    "start": gettext_lazy("Private start"),
    "stream": gettext_lazy("The whole stream"),
    "answers": gettext_lazy("All answers"),
}


def subject_words(subject: str, uploads: Mapping[str, str]) -> str:
    kind, _colon, number = subject.partition(":")
    said = SUBJECTS.get(kind)
    if said is None:
        return subject or _("not named")
    return str(said) % {"name": uploads.get(number, number) if kind == "dataset" else number}


def mechanism_words(name: str) -> str:
    event = REGISTRY.get(name)
    if event is not None and event.words is not None:
        return _(event.words.name)
    return _("limits") if name == "limits" else name.replace("_", " ")


def what_words(*, kind: str, subject: str, purpose: str, event: Mapping[str, Any], uploads: Mapping[str, str]) -> str:
    if kind in ("grant", "limit_change"):
        return _limit_words(event)
    of, _colon, number = subject.partition(":")
    if of == "project":
        said = f"{_('Project')} {number.partition(':')[0]}"
    else:
        said = subject_words(subject, uploads) if of in SUBJECTS else localized(purpose)
    how = how_words(event)
    return f"{said}: {how}." if how else f"{said}."


def how_words(stored: Mapping[str, Any]) -> str:
    try:
        return _how(event_from_json(dict(stored)))
    except (ValueError, TypeError, KeyError):
        return ""


def _how(event: Event) -> str:
    values = {field.name: getattr(event, field.name) for field in fields(event)}
    if event.words is None:
        return localized(event.summary())
    how, counted = event.words.how, event.words.counted
    said = _(how) if isinstance(how, str) else ngettext(*how, values[counted])
    said %= {name: _number(value) for name, value in values.items()}
    # Whose mechanism runs on a secret sample, whose update a stream makes, and what a population repeats, are events.
    inner = values.get("inner") or values.get("update") or values.get("event")
    return f"{said}; {_how(inner)}" if isinstance(inner, Event) else said


def reason_words(*, kind: str, reason: str, event: Mapping[str, Any]) -> str:
    if kind != "limit_change":
        return localized(reason)
    manager = event.get("approved_by")
    return _("%(own)s (approved by %(manager)s)") % {"own": reason, "manager": manager} if manager else reason


def _limit_words(event: Mapping[str, Any]) -> str:
    amounts = {
        "epsilon": epsilon_words(nano_shown(int(event.get("epsilon_limit_nano", 0)))),
        "delta": delta_words(atto_shown(int(event.get("delta_limit_atto", 0)))),
    }
    return _("Limit: ε %(epsilon)s, δ %(delta)s.") % amounts


def _number(value: Any) -> str:
    if isinstance(value, bool) or not isinstance(value, int | float):
        return str(value)
    if isinstance(value, int):
        return number_format(value, force_grouping=True)
    return str(number_format(f"{value:.4g}"))


@dataclass(frozen=True, slots=True)
class BudgetLevel:
    """A named limit of epsilon; `guidance` says where its name comes from."""

    key: str
    label: str | Promise
    epsilon: float
    guidance: str | Promise


# The bounds 1 and 10 are those of the tiers in Ponomareva et al., "How to DP-fy ML", JAIR 77 (2023).
LEVELS: Final = (
    BudgetLevel("strict", gettext_lazy("strict"), 1.0, gettext_lazy("Strong by published guidance: ε up to 1.")),
    BudgetLevel(
        "standard",
        gettext_lazy("standard"),
        2.0,
        gettext_lazy("Reasonable by published guidance: ε from 1 to 10."),
    ),
    BudgetLevel(
        "loose",
        gettext_lazy("loose"),
        4.0,
        gettext_lazy("The most that is reasonable; above ε 10 the guarantee is weak or none."),
    ),
)
# As cards of a form say them.
LEVEL_CHOICES: Final = [
    (level.key, format_lazy("{name}: ε {epsilon}", name=level.label, epsilon=f"{level.epsilon:g}")) for level in LEVELS
]


def plain_meaning(epsilon: float, delta: float) -> str:
    bounds = reading(epsilon, delta)
    return gettext(
        "An attacker who knows everything else guesses right at most %(right)s %% of the time (50 %% is "
        "chance), or finds %(found)s %% of members at 1 %% false alarms; advantage at most %(advantage)s."
    ) % {
        "right": _percent_words(bounds.right),
        "found": _percent_words(bounds.detection),
        "advantage": _bound_words(bounds.advantage),
    }


def say_consequences(form: forms.Form, *, delta: float, own: tuple[str, float] | None = None) -> None:
    """Have the card of each limit in a form's `level` say what it means at this delta.

    `own` is the key of exact numbers and the epsilon they name.
    """
    widget = form.fields["level"].widget
    assert isinstance(widget, ChoiceCards)
    said = {level.key: f"{level.guidance} {guess_words(level.epsilon, delta)}" for level in LEVELS}
    if own is not None:
        key, epsilon = own
        said[key] = f"ε {epsilon_words(epsilon)}. {guess_words(epsilon, delta)}"
    widget.consequences = said


def guess_words(epsilon: float, delta: float) -> str:
    right = _percent_words(reading(epsilon, delta).right)
    return gettext("An attacker guesses right at most %(right)s %% of the time (50 %% is pure chance).") % {
        "right": right
    }


def delta_advice(delta: float, people: int) -> str:
    numbers = {
        "delta": delta_words(delta),
        "most": delta_words(recommended_delta(people)),
        "people": number_format(people, force_grouping=True),
    }
    if delta <= recommended_delta(people):
        return gettext("δ %(delta)s is within %(most)s, the most that is recommended for %(people)s.") % numbers
    return (
        gettext(
            "δ %(delta)s is above %(most)s, the most recommended for %(people)s. δ bounds the chance of full "
            "disclosure."
        )
        % numbers
    )


def _percent_words(share: float) -> str:
    return _bound_words(share * 100, most=100, places=1)


def _bound_words(value: float, *, most: int = 1, places: int = 3) -> str:
    """Return a bound rounded up, so that it stays one, with as many more places as keep it from being said as `most`.

    From 0.99999999 of `most` on it is said as `most` itself: so near, it bounds nothing.
    """
    exact = Decimal(round(value, 12))
    for digits in range(places, places + 5):
        rounded = exact.quantize(Decimal(1).scaleb(-digits), rounding=ROUND_CEILING)
        if rounded < most:
            return number_format(rounded, digits)
    return number_format(most)
