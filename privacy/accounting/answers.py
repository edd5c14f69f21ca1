"""Costs and events of randomised answers and of training on them."""

# A response that keeps k classes says the true one with weight `odds` and each other one with weight `ODDS_UNIT`,
# whatever k is. Both are integers, so every probability is a rational number, and the loss is exactly ln(odds /
# ODDS_UNIT): no probability is ever rounded after it was charged.

import decimal
import math
from abc import abstractmethod
from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar, Final, Literal

from privacy.accounting import checks
from privacy.accounting.cost import Adjacency, Cost, float_at_least
from privacy.accounting.counts import PickedFitEvent
from privacy.accounting.event import Event, EventWords, counted_words
from privacy.accounting.training import FIXED_SLOTS, ObjectivePerturbationEvent, OutputPerturbationEvent, require_slot
from privacy.wording import gettext_noop as _

ODDS_UNIT: Final = 2**32
# With up to a thousand classes all weights together still fit the 63 bits of one draw.
LARGEST_EPSILON: Final = 20.0
# Digits carried by logarithms and exponentials, of which a charge uses 17.
_DIGITS: Final = 60


def response_odds(epsilon: float) -> int:
    r"""Return the weight of the true class beside `ODDS_UNIT` for every other one.

    Parameters
    ----------
    epsilon : float
        Wanted loss of one randomisation, 0 < epsilon <= `LARGEST_EPSILON`.

    Returns
    -------
    int
        :math:`\lfloor e^\varepsilon \cdot \mathrm{ODDS\_UNIT} \rfloor`: rounded towards more noise.

    Raises
    ------
    ValueError
        If epsilon is out of range, or so small that both weights would be equal.
    """
    if not 0 < epsilon <= LARGEST_EPSILON:
        raise ValueError(f"epsilon must be > 0 and <= {LARGEST_EPSILON:g}, got {epsilon}")
    with decimal.localcontext(decimal.Context(prec=_DIGITS)):
        odds = int((decimal.Decimal(epsilon).exp() * ODDS_UNIT).to_integral_value(decimal.ROUND_FLOOR))
    if odds == ODDS_UNIT:
        raise ValueError(f"epsilon {epsilon} is too small to be drawn")
    return odds


def response_epsilon(odds: int) -> float:
    """Return the smallest float that is not below the loss of one randomisation with this weight."""
    check_odds(odds)
    with decimal.localcontext(decimal.Context(prec=_DIGITS)):
        # A logarithm is rounded to the nearest number of so many digits; the next one is above it.
        loss = (decimal.Decimal(odds) / ODDS_UNIT).next_plus().ln().next_plus()
    return float_at_least(Fraction(loss))


def check_odds(odds: int) -> None:
    largest = int(ODDS_UNIT * decimal.Decimal(LARGEST_EPSILON).exp())
    if isinstance(odds, bool) or int(odds) != odds or not ODDS_UNIT < odds <= largest:
        raise ValueError(f"odds must be an integer above {ODDS_UNIT} and at most {largest}, got {odds}")


def response_information(epsilon: float, n_classes: int) -> float:
    r"""Return what one response tells of an answer, as a share of what the answer itself would tell.

    Parameters
    ----------
    epsilon : float
        Loss of the response, > 0.
    n_classes : int
        Classes it may name, all equally likely beforehand; >= 2.

    Returns
    -------
    float
        Mutual information of answer and response over :math:`\ln K`, in (0, 1). Where public knowledge makes some
        classes likelier than others, both are less.
    """
    others = n_classes - 1
    # e^epsilon alone would overflow for an answer that is said all but surely.
    wrong = math.exp(-epsilon) / (1 + others * math.exp(-epsilon))
    right = 1 - others * wrong
    information = math.log(n_classes) + right * math.log(right) + others * wrong * math.log(wrong)
    return max(0.0, information / math.log(n_classes))


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
        """True if the mechanism keeps the likeliest classes by public knowledge alone."""
        return False

    def __post_init__(self) -> None:
        checks.positive("epsilon", self.epsilon)
        checks.at_least("n_classes", self.n_classes, 2)
        checks.one_of("unit", self.unit, ("answer", "annotator"))
        checks.at_least("randomizations", self.randomizations, 1)
        checks.at_least("questions_per_annotator", self.questions_per_annotator, 1)
        if self.unit == "answer" and self.questions_per_annotator != 1:
            raise ValueError(f"questions_per_annotator must be 1 for unit answer, got {self.questions_per_annotator}")

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
        _("one randomised answer a question, %(n_classes)s classes; charged once"),
    )
    valid_for: ClassVar[frozenset[Adjacency]] = FIXED_SLOTS

    def __post_init__(self) -> None:
        AnswersEvent.__post_init__(self)
        checks.one_of("method", self.method, ("top_k", "uniform"))
        if self.odds == 0:
            object.__setattr__(self, "odds", response_odds(self.epsilon))
        check_odds(self.odds)

    @property
    def epsilon_once(self) -> float:
        return response_epsilon(self.odds)

    def information(self, epsilon: float) -> float:
        return response_information(epsilon, self.n_classes)

    @property
    def uses_prior(self) -> bool:
        return self.method == "top_k"

    def summary(self) -> str:
        if self.unit == "annotator":
            questions = counted_words(self.questions_per_annotator, "question")
            return f"randomised answers with epsilon {self.epsilon:.4g}, per person of at most {questions}"
        return f"randomised answers with epsilon {self.epsilon:.4g}, per answer"


Loss = Literal["logistic", "other"]
LOGISTIC_CURVATURE = 0.25


@dataclass(frozen=True, slots=True)
class LabelTrainingEvent(Event):
    r"""A training whose rows are public, charged for one answer: a row's label is another, is there, or is not there.

    `inner` is the training as it is charged for a row. For the logistic loss a label that turns into another costs no
    more than a row that is left out. :math:`\ell(-m) - \ell(m) = m` is linear in the weights with gradient
    :math:`y x`, so the tilt makes up for it by a vector no longer than a row, and the Hessian does not change at all;
    of K one-vs-rest models two see it, at most K. A minimiser moves by at most :math:`M / \Lambda`, as it does for a
    row left out. Any other loss is charged the two steps of leaving the row out and bringing another in.

    A pick after it is charged for both in any case: another label takes the row from the counts of some candidates and
    adds it to those of others.
    """

    inner: Event
    loss: Loss = "other"
    kind: ClassVar[str] = "label_training"
    words: ClassVar[EventWords] = EventWords(_("training on answers"), _("training on answers"))
    valid_for: ClassVar[frozenset[Adjacency]] = FIXED_SLOTS
    unit: ClassVar[str] = "answer"

    def __post_init__(self) -> None:
        checks.one_of("loss", self.loss, ("logistic", "other"))
        if self.inner.needs_parent:
            raise ValueError(f"{self.inner.kind} cannot be charged for one answer")
        if self.loss == "logistic" and not _is_logistic(self._training):
            raise ValueError(f"{self.inner.kind} is no training with the logistic loss")

    def cost(self, *, adjacency: Adjacency = "null") -> Cost:
        require_slot(self, adjacency)
        if self.loss != "logistic":
            return self.inner.cost(adjacency=adjacency)
        trained = self._training.cost(adjacency="null")
        if isinstance(self.inner, PickedFitEvent):
            return trained.plus(self.inner.drawing_cost(adjacency=adjacency))
        return trained

    @property
    def _training(self) -> Event:
        return self.inner.inner if isinstance(self.inner, PickedFitEvent) else self.inner

    def summary(self) -> str:
        return f"on answers to public questions: {self.inner.summary()}"


def _is_logistic(inner: Event) -> bool:
    if isinstance(inner, ObjectivePerturbationEvent):
        return inner.curvature == LOGISTIC_CURVATURE and inner.gradient_bound >= inner.norm_bound
    return isinstance(inner, OutputPerturbationEvent)
