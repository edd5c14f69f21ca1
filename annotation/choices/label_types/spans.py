"""Spans: names, amounts and places marked in a text."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Final

from annotation.choices.label_types.base import LabelType, Teaching
from annotation.choices.selections import asks_in_secret, selection_choice
from privacy.choices import Kind, Sound
from privacy.wording import gettext_noop as _

# Sets of spans are numbered as they are first stored; 0 is no span at all.
NO_SPANS: Final = 0
MOST_SETS: Final = 2**31
NO_STREAM: Final = _("A stream asks for one class, or for a yes or no.")
NO_CROWD: Final = _("Answers of a crowd are protected with one class per question only.")


@dataclass(frozen=True)
class MarkSpans(LabelType):
    """Spans of a text, each of one type; an answer is the number of a stored set of spans."""

    name: ClassVar[str] = "spans"
    label: ClassVar[str] = _("mark spans")
    help: ClassVar[str] = _("Parts of a text are marked, each with a type: the classes. Only the first 32 words count.")
    sound: ClassVar[Sound] = Sound(
        oracles=("trusted",),
        arrivals=("pool",),
        data_kinds=("text",),
        why_not={
            "stream": NO_STREAM,
            "crowd": NO_CROWD,
            "table": _("Spans are parts of a text."),
            "image": _("Spans are parts of a text."),
        },
    )
    widget: ClassVar[str] = "annotation/choices/_label_spans.html"
    lists_classes: ClassVar[bool] = True
    teaches: ClassVar[Teaching] = Teaching.SPANS
    measure: ClassVar[str] = _("Entity F1")

    def possible(self, n_classes: int) -> int:
        return MOST_SETS

    def exported(self, choice: int, classes: Sequence[str], guess: int | None) -> str:
        raise ValueError("the spans of an answer are stored, not computed from its number")

    def rules(self, settings: Mapping[str, Any]) -> Mapping[str, str]:
        broken = dict(super().rules(settings))
        choice = selection_choice(settings)
        if "selection" in settings and (choice is None or not choice.by_chance):
            broken["selection"] = _("Such answers need a secret sample or random choice.")
        if settings.get(Kind.SUGGESTIONS.key) and asks_in_secret(settings):
            broken[Kind.SUGGESTIONS.key] = _(
                "The time it takes to find spans would tell the size of the secret sample."
            )
        if settings.get("aggregation", "majority") != "majority":
            broken["aggregation"] = _("Spans are agreed on if most answers mark exactly the same.")
        return broken
