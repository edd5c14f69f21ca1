"""Named budgets by published guidance, and what a limit means in plain words."""

from dataclasses import dataclass
from decimal import ROUND_CEILING, Decimal
from typing import Final

from django import forms
from django.utils.formats import number_format
from django.utils.functional import Promise
from django.utils.text import format_lazy
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from annotation.budget.words import delta_words
from annotation.choices.cards import ChoiceCards
from privacy.accounting.composition import reading, recommended_delta


@dataclass(frozen=True, slots=True)
class BudgetLevel:
    """A named limit of epsilon; `guidance` says where its name comes from."""

    key: str
    label: str | Promise
    epsilon: float
    guidance: str | Promise


# The bounds 1 and 10 are those of the tiers in Ponomareva et al., "How to DP-fy ML", JAIR 77 (2023).
LEVELS: Final = (
    BudgetLevel(
        "strict",
        _("strict"),
        1.0,
        _("Upper end of what published guidance calls a strong formal guarantee (ε at most 1)."),
    ),
    BudgetLevel(
        "moderate",
        _("moderate"),
        3.0,
        _("In the middle, by ratio, of what it calls a reasonable one (ε from 1 to 10)."),
    ),
    BudgetLevel("loose", _("loose"), 10.0, _("Upper end of that; above 10 it speaks of a weak guarantee or of none.")),
)
# As cards of a form say them.
LEVEL_CHOICES: Final = [
    (level.key, format_lazy("{name}: ε {epsilon}", name=level.label, epsilon=f"{level.epsilon:g}")) for level in LEVELS
]


def plain_meaning(epsilon: float, delta: float) -> str:
    """Say what a limit lets anybody conclude about one record or person, whatever they know and compute."""
    bounds = reading(epsilon, delta)
    return gettext(
        "Somebody who knows everything but whether one is in, and thinks it as likely as not, guesses rightly at most "
        "%(right)s %% of the time instead of 50; accusing one innocent in a hundred, they find at most %(found)s %% "
        "of those who are in. The largest advantage of any test is %(advantage)s."
    ) % {
        "right": _percent_words(bounds.right),
        "found": _percent_words(bounds.detection),
        "advantage": _bound_words(bounds.advantage),
    }


def say_consequences(form: forms.Form, *, delta: float) -> None:
    """Have the card of each named limit in a form's `level` say its guidance and what it means at this delta."""
    widget = form.fields["level"].widget
    assert isinstance(widget, ChoiceCards)
    widget.consequences = {level.key: f"{level.guidance} {_guess(level.epsilon, delta)}" for level in LEVELS}


def _guess(epsilon: float, delta: float) -> str:
    right = _percent_words(reading(epsilon, delta).right)
    return gettext("A guess is right at most %(right)s %% of the time instead of 50.") % {"right": right}


def delta_advice(delta: float, people: int) -> str:
    """Say whether delta is as small as guidance wants it for so many records or people."""
    numbers = {
        "delta": delta_words(delta),
        "most": delta_words(recommended_delta(people)),
        "people": number_format(people, force_grouping=True),
    }
    if delta <= recommended_delta(people):
        return gettext("δ %(delta)s is within %(most)s, the most that is recommended for %(people)s.") % numbers
    return (
        gettext(
            "δ %(delta)s is more than %(most)s, the most that is recommended for %(people)s: it bounds the chance that "
            "somebody is laid open altogether, and should be small against one in all of them."
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
