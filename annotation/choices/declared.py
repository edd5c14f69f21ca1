"""Catalogue of annotation's own choices; a further one joins by one line."""

from collections.abc import Mapping
from typing import Final

from annotation.choices.answer_budget import AnswerBudget
from annotation.choices.class_looks import ClassLooks
from annotation.choices.gates import GateChoice
from annotation.choices.label_randomizers import RandomizedConsensus
from annotation.choices.label_types.base import LabelType
from annotation.choices.label_types.catalogue import LABEL_TYPES
from annotation.choices.label_types.learning import LearnsLabels
from annotation.choices.noisy_gate import NoisyGate
from annotation.choices.open_answers import AnswersNotSecret
from annotation.choices.person_limits import PersonLimits
from annotation.choices.policies.base import PolicyChoice
from annotation.choices.policies.catalogue import POLICIES
from annotation.choices.quality_checks import QualityChecks
from annotation.choices.question_plan import QuestionPlan
from annotation.choices.randomizers import RandomizerChoice
from annotation.choices.release_plan import ReleasePlan
from annotation.choices.sampled_gate import SampledGate
from annotation.choices.selections import SelectionChoice
from annotation.choices.stream_plan import StreamPlan
from annotation.choices.suggestions import ReleasedModelSuggests
from privacy.choices import Choice, Kind

CHOICES: tuple[type[Choice], ...] = (
    SampledGate,
    NoisyGate,
    RandomizedConsensus,
    AnswersNotSecret,
    ReleasedModelSuggests,
    *LABEL_TYPES,
    *POLICIES,
    ReleasePlan,
    StreamPlan,
    QuestionPlan,
    PersonLimits,
    QualityChecks,
    AnswerBudget,
    ClassLooks,
)

# What the product asks of every choice of a kind; one that does not answer would be chosen, stored, and never used.
ASKED: Final[Mapping[Kind, type]] = {
    Kind.GATE: GateChoice,
    Kind.STRATEGY: SelectionChoice,
    Kind.ESTIMATOR: LearnsLabels,
    Kind.POLICY: PolicyChoice,
    Kind.RANDOMIZER: RandomizerChoice,
    Kind.LABEL_TYPE: LabelType,
}


def annotation_choices() -> tuple[type[Choice], ...]:
    return CHOICES
