"""Answers that are declared not to be secret."""

from dataclasses import dataclass
from typing import Any, ClassVar

from annotation.choices.randomizers import RandomizerChoice
from privacy.choices import Sound
from privacy.wording import gettext_noop as _


@dataclass(frozen=True)
class AnswersNotSecret(RandomizerChoice):
    """What a question's answers agree on is learned from as it is; no account protects it, and nothing is charged."""

    mechanism: ClassVar[None] = None
    name: ClassVar[str] = "not_secret"
    label: ClassVar[str] = _("answers are not secret: models may show any of them")
    help: ClassVar[str] = _("Only what people said in front of the gate is protected then, and the answers are not.")
    sound: ClassVar[Sound] = Sound(
        oracles=("crowd",),
        arrivals=("pool",),
        data_kinds=("text",),
        why_not={
            "trusted": _("A label belongs to its record here, and nothing in front of the annotators protects that."),
            "stream": _("A label belongs to its record here, and nothing in front of the annotators protects that."),
        },
    )

    def event(self, *args: Any, **circumstances: Any) -> None:
        """Return nothing: behind a gate, questions are public, and answers are declared to be so."""
