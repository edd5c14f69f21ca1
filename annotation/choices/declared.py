"""Catalogue of annotation's own choices; a further one joins by one line."""

from collections.abc import Mapping
from typing import Final

from annotation.choices.classes import ClassLooks
from annotation.choices.gates import GateChoice
from annotation.choices.label_types.base import LabelType
from annotation.choices.label_types.catalogue import LABEL_TYPES
from annotation.choices.label_types.learning import LearnsLabels
from annotation.choices.noisy_gate import NoisyGate
from annotation.choices.plans import (
    AnswerBudget,
    PersonLimits,
    QualityChecks,
    QuestionPlan,
    ReleasedModelSuggests,
    ReleasePlan,
    StreamPlan,
)
from annotation.choices.policies import POLICIES, PolicyChoice
from annotation.choices.randomizers import AnswersNotSecret, RandomizedConsensus, RandomizerChoice
from annotation.choices.sampled_gate import SampledGate
from annotation.choices.selections import SelectionChoice
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
