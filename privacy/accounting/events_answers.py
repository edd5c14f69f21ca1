"""The event of answers that leave the trusted side through a randomised response."""

from dataclasses import dataclass
from typing import ClassVar, Literal

from privacy.accounting import checks
from privacy.accounting.cost import Adjacency, Cost
from privacy.accounting.event import Event, EventWords
from privacy.accounting.events_training import FIXED_SLOTS, require_slot
from privacy.accounting.randomized_response import check_odds, response_epsilon, response_odds
from privacy.wording import as_message, as_plural_message
from privacy.wording import gettext_noop as _

AnswerUnit = Literal["answer", "annotator"]
ResponseMethod = Literal["top_k", "uniform"]


@dataclass(frozen=True, slots=True)
class RandomizedAnswersEvent(Event):
    """All ordinary answers of a project: each question's consensus leaves through a randomised response.

    One entry, opened with the project, pays for every question, round, training and release together. An answer belongs
    to one question, whose consensus is a function of its own answers, and whatever else may come out depends on the
    responses and on public data only; so a changed answer moves the responses to one question alone.

    Neighbours differ in one answer (unit ``answer``), or in all ordinary answers of one person (``annotator``), who
    gives one answer each to at most `questions_per_annotator` questions. A consensus is randomised at most
    `randomizations` times, each with weight `odds` for the true class beside ``ODDS_UNIT`` for every other one that is
    kept. Left at zero, `odds` follows from `epsilon`; it is stored, and the charge is computed from it.
    """

    epsilon: float
    n_classes: int
    method: ResponseMethod = "top_k"
    unit: AnswerUnit = "answer"
    randomizations: int = 1
    questions_per_annotator: int = 1
    odds: int = 0
    kind: ClassVar[str] = "randomized_answers"
    words: ClassVar[EventWords] = EventWords(
        _("randomised answers"),
        _("what a question's answers agree on, randomised among %(n_classes)s classes; paid once for all questions"),
    )
    valid_for: ClassVar[frozenset[Adjacency]] = FIXED_SLOTS

    def __post_init__(self) -> None:
        """Check the ranges and fill in the weight the mechanism has to use."""
        checks.positive("epsilon", self.epsilon)
        checks.at_least("n_classes", self.n_classes, 2)
        checks.one_of("method", self.method, ("top_k", "uniform"))
        checks.one_of("unit", self.unit, ("answer", "annotator"))
        checks.at_least("randomizations", self.randomizations, 1)
        checks.at_least("questions_per_annotator", self.questions_per_annotator, 1)
        if self.unit == "answer" and self.questions_per_annotator != 1:
            raise ValueError(
                as_message(
                    "questions_per_annotator must be 1 for unit answer, got {questions_per_annotator}",
                    questions_per_annotator=self.questions_per_annotator,
                )
            )
        if self.odds == 0:
            object.__setattr__(self, "odds", response_odds(self.epsilon))
        check_odds(self.odds)

    def cost(self, *, adjacency: Adjacency = "null") -> Cost:
        """Return the loss of the stored weight for every randomisation that one unit can have moved.

        A response compares any two classes at the same price, so replacing an answer costs what leaving it out does.
        """
        require_slot(self, adjacency)
        return Cost(response_epsilon(self.odds)).times(self.randomizations * self.questions_per_annotator)

    def summary(self) -> str:
        """Return one sentence."""
        if self.unit == "annotator":
            return as_plural_message(
                "randomised answers with epsilon {epsilon:.4g}, per person of at most {n} question",
                "randomised answers with epsilon {epsilon:.4g}, per person of at most {n} questions",
                epsilon=self.epsilon,
                n=self.questions_per_annotator,
            )
        return as_message("randomised answers with epsilon {epsilon:.4g}, per answer", epsilon=self.epsilon)
