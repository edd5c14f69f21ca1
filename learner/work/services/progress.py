"""How far a round or a training is: in steps that its kind fixes, and parts whose number is public.

What a step tells is how many of its parts are made. Their number follows from sizes and settings alone: ranges of rows,
classes, batches of the questions asked. How long a solver goes on, which the records decide, is never a number here.
"""

from collections.abc import Callable

from annotation.work.services.attempts import Lease
from privacy.wording import as_message

TellParts = Callable[[int, int], None]
# Of the bar, each step has as much as every other.
STEP_LENGTH = 100

FEATURES = as_message("features are made")
CHOICE_PAID, SCORES, QUESTIONS = (
    as_message("the choice is paid for"),
    as_message("the pool is scored"),
    as_message("questions are opened"),
)
TRAINING_PAID, FIT = as_message("the training is paid for"), as_message("the model is fitted")
RELEASE = as_message("the release is written")
CHOOSING = (CHOICE_PAID, FEATURES, SCORES, QUESTIONS)
TRAINING = (TRAINING_PAID, FEATURES, FIT, RELEASE)


class Progress:
    """Tells what an attempt does now; nothing is told twice, and no bar goes back."""

    def __init__(self, lease: Lease, steps: tuple[str, ...]) -> None:
        self._lease = lease
        self._steps = steps
        self._at = 0
        self._reported = 0

    def check(self) -> None:
        """Raise once the attempt is to stop, as the lease does."""
        self._lease.check()

    def begin(self, step: str) -> None:
        """Begin a step, or come to it again; those before it are done."""
        self._at = self._steps.index(step)
        self._report(0, as_message("Step {step} of {steps}: {reason}.", **self._words()))

    def tell(self, done: int, total: int) -> None:
        """Say how many parts of the present step are made; `total` must be public."""
        if total > 0:
            words = as_message(
                "Step {step} of {steps}: {reason}, {done} of {total}.", done=done, total=total, **self._words()
            )
            self._report(STEP_LENGTH * done // total, words)

    def _words(self) -> dict[str, object]:
        return {"step": self._at + 1, "steps": len(self._steps), "reason": self._steps[self._at]}

    def _report(self, within: int, message: str) -> None:
        self._reported = max(self._reported, STEP_LENGTH * self._at + within)
        self._lease.report(progress_done=self._reported, progress_total=STEP_LENGTH * len(self._steps), message=message)


def silent(done: int, total: int) -> None:
    """Tell nobody."""


def spread(tell: TellParts, place: int, places: int) -> TellParts:
    """Return what tells the parts of one of several equal places."""

    def within(done: int, total: int) -> None:
        tell(place * total + done, places * total)

    return within
