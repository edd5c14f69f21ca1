"""Yes or no to the class a model guesses."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, Final

import numpy as np
from numpy.typing import NDArray

from annotation.choices.label_types.base import LabelType, Teaching
from privacy.choices import Sound
from privacy.wording import gettext_noop as _

YES: Final = 0
NO: Final = 1
STREAM_ONLY: Final = _("Confirmations teach running sums only, which need a stream.")


@dataclass(frozen=True)
class ConfirmGuess(LabelType):
    """Yes or no to the class that the model guesses; a yes is stored as 0, a no as 1."""

    name: ClassVar[str] = "confirm"
    label: ClassVar[str] = _("say whether the model's guess is right")
    help: ClassVar[str] = _("Only learning from confirmations can use a no.")
    sound: ClassVar[Sound] = Sound(
        oracles=("trusted",), arrivals=("stream",), why_not={"crowd": STREAM_ONLY, "pool": STREAM_ONLY}
    )
    widget: ClassVar[str] = "annotation/choices/_label_choose.html"
    words: ClassVar[Sequence[str]] = (_("Yes, it is right"), _("No, it is wrong"))
    letters: ClassVar[Sequence[str]] = (_("Y"), _("N"))
    teaches: ClassVar[Teaching] = Teaching.CONFIRMATIONS

    def possible(self, n_classes: int) -> int:
        return 2

    def exported(self, choice: int, classes: Sequence[str], guess: int | None) -> str:
        if guess is None:
            return classes[choice]
        return classes[guess] if choice == YES else f"not {classes[guess]}"

    def targets(
        self, choices: NDArray[np.int64], guesses: NDArray[np.int64] | None, *, n_classes: int
    ) -> tuple[NDArray[np.bool_], NDArray[np.int64]]:
        """Return which answers name a class, and these classes: all of two classes, of more a yes alone."""
        if guesses is None:
            return super().targets(choices, guesses, n_classes=n_classes)
        confirmed = choices == YES
        if n_classes == 2:
            return np.ones(len(guesses), dtype=np.bool_), np.where(confirmed, guesses, 1 - guesses)
        return confirmed, guesses[confirmed]
