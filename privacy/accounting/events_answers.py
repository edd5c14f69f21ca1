"""The events of answers that leave the trusted side through a mechanism, and that of randomised response."""

from abc import abstractmethod
from dataclasses import dataclass
from typing import ClassVar, Literal

from privacy.accounting import checks
from privacy.accounting.cost import Adjacency, Cost
from privacy.accounting.event import Event, EventWords
from privacy.accounting.events_training import FIXED_SLOTS, require_slot
from privacy.accounting.randomized_response import check_odds, response_epsilon, response_information, response_odds
from privacy.wording import as_message, as_plural_message
from privacy.wording import gettext_noop as _

AnswerUnit = Literal["answer", "annotator"]
ResponseMethod = Literal["top_k", "uniform"]


class AnswersEvent(Event):
    """All ordinary answers of a project: each question's consensus leaves through a mechanism, response by response.

    One entry, opened with the project, pays for every question, round, training and release together. An answer belongs
    to one question, whose consensus is a function of its own answers, and whatever else may come out depends on the
    responses and on public data only; so a changed answer moves the responses to one question alone.

    Neighbours differ in one answer (unit ``answer``), or in all ordinary answers of one person (``annotator``), who
    gives one answer each to at most `questions_per_annotator` questions. A consensus is randomised at most
    `randomizations` times.

    Attributes
    ----------
    epsilon : float
        What one response was asked to cost.
    n_classes : int
        Declared classes, >= 2.
    unit : {"answer", "annotator"}
        Whose change is hidden.
    randomizations, questions_per_annotator : int
        As above, >= 1; of a unit ``answer`` one question.
    """

    __slots__ = ()
    epsilon: float
    n_classes: int
    unit: AnswerUnit
    randomizations: int
    questions_per_annotator: int

    @property
    @abstractmethod
    def epsilon_once(self) -> float:
        """The largest loss between any two classes of one response as it is drawn, whichever classes it keeps."""

    @abstractmethod
    def information(self, epsilon: float) -> float:
        """Return what one response at `epsilon` tells of an answer, as a share of what the answer would; in (0, 1)."""

    @property
    def uses_prior(self) -> bool:
        """Whether the mechanism keeps the likeliest classes by public knowledge alone."""
        return False

    def __post_init__(self) -> None:
        """Check the ranges that all of them have."""
        checks.positive("epsilon", self.epsilon)
        checks.at_least("n_classes", self.n_classes, 2)
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

    def cost(self, *, adjacency: Adjacency = "null") -> Cost:
        """Return the loss of one response for every randomisation that one unit can have moved.

        A response compares any two classes at the same price, so replacing an answer costs what leaving it out does.
        """
        require_slot(self, adjacency)
        return Cost(self.epsilon_once).times(self.randomizations * self.questions_per_annotator)


@dataclass(frozen=True, slots=True)
class RandomizedAnswersEvent(AnswersEvent):
    """Answers that leave through a randomised response.

    It has weight `odds` for the true class beside ``ODDS_UNIT`` for every other one that is kept. Left at zero, `odds`
    follows from `epsilon`; it is stored, and the charge is computed from it.
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
        AnswersEvent.__post_init__(self)
        checks.one_of("method", self.method, ("top_k", "uniform"))
        if self.odds == 0:
            object.__setattr__(self, "odds", response_odds(self.epsilon))
        check_odds(self.odds)

    @property
    def epsilon_once(self) -> float:
        """The loss of the stored weight."""
        return response_epsilon(self.odds)

    def information(self, epsilon: float) -> float:
        """Return the share of randomised response."""
        return response_information(epsilon, self.n_classes)

    @property
    def uses_prior(self) -> bool:
        """Whether the likeliest classes are kept."""
        return self.method == "top_k"

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
