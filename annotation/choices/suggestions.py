"""Suggestions of the released model beside a question."""

from dataclasses import dataclass
from typing import Any, ClassVar

from privacy.choices import FreeChoice, Kind, Sound, parameter
from privacy.wording import gettext_noop as _


@dataclass(frozen=True)
class ReleasedModelSuggests(FreeChoice):
    """The class the newest released model would give stands beside the question, except where a coin leaves it out."""

    kind: ClassVar[Kind] = Kind.SUGGESTIONS
    name: ClassVar[str] = "released_model"
    label: ClassVar[str] = _("what the newest released model takes it for, with how sure it is")
    help: ClassVar[str] = _("Made of a released model and of what annotators see anyway, so it costs nothing.")
    sound: ClassVar[Sound] = Sound(
        arrivals=("pool",),
        why_not={"stream": _("A stream asks before it learns; where its model guesses, annotators confirm that.")},
    )
    # It reads nothing and changes no price, so it may come and go.
    stays: ClassVar[bool] = False

    blind_share: float = parameter(
        0.2,
        at_least=0.05,
        at_most=0.95,
        label=_("Share of questions without a suggestion"),
        help=_(
            "Chosen by coins. Only beside these can be measured what suggestions save in time, and how far they draw "
            "answers towards the model."
        ),
    )


def suggests(settings: Any) -> ReleasedModelSuggests | None:
    if settings.get(Kind.SUGGESTIONS.key) != ReleasedModelSuggests.name:
        return None
    return ReleasedModelSuggests.of(settings)
