"""Answers that are no secret: whoever runs the project declares that nobody has to be kept from learning them."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from annotation.choices.label_types.learning import chosen_estimator, learn_responses
from privacy.choices import Choice, Kind, Sound
from privacy.wording import as_message
from privacy.wording import gettext_noop as _


@dataclass(frozen=True)
class AnswersNotSecret(Choice):
    """What a question's answers agree on is learned from as it is; no account protects it, and nothing is charged."""

    kind: ClassVar[Kind] = Kind.RANDOMIZER
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
        return

    def rules(self, settings: Mapping[str, Any]) -> Mapping[str, str]:
        """Refuse an estimator that would pay for what is declared public."""
        trained = chosen_estimator(settings)
        if trained is not None and trained.learns_responses:
            return {}
        rule = as_message("Answers that are not secret are learned from by {wanted} alone.", wanted=learn_responses())
        return {"estimator": rule}
