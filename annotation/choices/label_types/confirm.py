"""Yes or no to the class a model guesses."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from annotation.choices.label_types.base import LabelType
from privacy.choices import Sound
from privacy.wording import gettext_noop as _

BANDIT_ONLY = _("Confirmations teach online learning only, which needs a stream.")


@dataclass(frozen=True)
class ConfirmGuess(LabelType):
    """Whether the class that the model guesses is right; a yes is stored as 0, a no as 1."""

    name: ClassVar[str] = "confirm"
    label: ClassVar[str] = _("say whether the model's guess is right")
    help: ClassVar[str] = _("A no leaves open which class it is, so only learning from confirmations can use it.")
    sound: ClassVar[Sound] = Sound(
        oracles=("trusted",), arrivals=("stream",), why_not={"crowd": BANDIT_ONLY, "pool": BANDIT_ONLY}
    )
    widget: ClassVar[str] = "annotation/_label_choose.html"
    coefficient: ClassVar[str] = _("Krippendorff's alpha")

    def possible(self, n_classes: int) -> int:
        """Return two answers, however many classes there are."""
        return 2

    def exported(self, choice: int, classes: Sequence[str], guess: int | None) -> list[str]:
        """Return the class that was guessed, or its absence."""
        if guess is None:
            return [classes[choice]]
        return [classes[guess] if choice == 0 else f"not {classes[guess]}"]
