"""The event of a training on answers whose questions are public: only the labels are secret, and one may change."""

from dataclasses import dataclass
from typing import ClassVar, Literal

from privacy.accounting import checks
from privacy.accounting.cost import Adjacency, Cost
from privacy.accounting.event import Event, EventWords
from privacy.accounting.events_training import (
    FIXED_SLOTS,
    ObjectivePerturbationEvent,
    OutputPerturbationEvent,
    require_slot,
)
from privacy.wording import as_message
from privacy.wording import gettext_noop as _

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
    """

    inner: Event
    loss: Loss = "other"
    kind: ClassVar[str] = "label_training"
    words: ClassVar[EventWords] = EventWords(
        _("training on answers"),
        _("on answers to public questions"),
    )
    valid_for: ClassVar[frozenset[Adjacency]] = FIXED_SLOTS
    unit: ClassVar[str] = "answer"

    def __post_init__(self) -> None:
        """Check that what is claimed of the loss fits the training."""
        checks.one_of("loss", self.loss, ("logistic", "other"))
        if self.inner.needs_parent:
            raise ValueError(as_message("{kind} cannot be charged for one answer", kind=self.inner.kind))
        if self.loss == "logistic" and not _is_logistic(self.inner):
            raise ValueError(as_message("{kind} is no training with the logistic loss", kind=self.inner.kind))

    def cost(self, *, adjacency: Adjacency = "null") -> Cost:
        """Return the charge of one answer replaced by another, or by none."""
        require_slot(self, adjacency)
        return self.inner.cost(adjacency="null" if self.loss == "logistic" else adjacency)

    def summary(self) -> str:
        """Return one sentence."""
        return as_message("on answers to public questions: {reason}", reason=self.inner.summary())


def _is_logistic(inner: Event) -> bool:
    """Say whether the event's numbers are those of the logistic loss on rows that are as long as a gradient can be."""
    if isinstance(inner, ObjectivePerturbationEvent):
        return inner.curvature == LOGISTIC_CURVATURE and inner.gradient_bound >= inner.norm_bound
    return isinstance(inner, OutputPerturbationEvent)
