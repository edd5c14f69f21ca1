"""The featuriser that public trials found best for each kind of records."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from learner.features.base import Featurizer
from learner.features.choice import RecordShape
from learner.features.declared_rules import DeclaredRules
from learner.features.encoder import SentenceEncoder
from learner.features.image import ReadsImages
from learner.features.static_encoder import COLUMNS, MOST_COLUMNS, StaticTable
from privacy.choices import Sound, parameter
from privacy.wording import gettext_noop as _

# Found on public tasks, see docs/results/utility.md: many classes need more directions, few need less noise. Two of a
# pool have so little noise that all columns are worth it.
MANY_CLASSES = 30
COLUMNS_OF_MANY = 192


def planned_columns(n_classes: int, *, of_pool: bool = True) -> int:
    """Return how many columns of the static encoder suit so many classes, of a pool or of a stream."""
    if n_classes == 2 and of_pool:
        return MOST_COLUMNS
    return COLUMNS_OF_MANY if n_classes > MANY_CLASSES else COLUMNS


@dataclass(frozen=True)
class PlannedFeatures(StaticTable, ReadsImages):
    name: ClassVar[str] = "planned"
    label: ClassVar[str] = _("Automatic: sentence encoder for texts, declared rules otherwise")
    sound: ClassVar[Sound] = Sound()

    sentence_network: bool = parameter(
        False,
        data_kinds=("text",),
        label=_("Use the sentence network"),
        help=_("Better with many classes; 300 short texts per second and core."),
    )

    def planned(self, settings: Mapping[str, Any]) -> Mapping[str, Any]:
        if settings.get("data_kind") != "text":
            return {}
        n_classes, of_pool = len(settings["classes"]), settings.get("arrival", "pool") == "pool"
        if of_pool and n_classes > 2:
            return {"text_columns": COLUMNS_OF_MANY, "sentence_network": True}
        return {"text_columns": planned_columns(n_classes, of_pool=of_pool), "sentence_network": False}

    def featurizer(self, shape: RecordShape) -> Featurizer:
        if shape.data_kind == "text" and self.sentence_network:
            return SentenceEncoder(n_features=self.text_columns, normalizer=shape.normalizer)
        if shape.data_kind == "text":
            return super().featurizer(shape)
        return DeclaredRules(image_colours=self.image_colours).featurizer(shape)
