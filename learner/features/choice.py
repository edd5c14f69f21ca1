"""Base class of featuriser choices."""

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, Final

from learner.features.base import Featurizer
from privacy.choices import FreeChoice, Kind, parameter
from privacy.wording import gettext_noop as _

# Part of the published featuriser, like the number of columns; nothing about it depends on data.
PROJECTION_SEED: Final = 0
READS_TEXTS_ALONE: Final = _("Sentence encoders read texts only.")


@dataclass(frozen=True, slots=True)
class RecordShape:
    """Declared facts about a project's records; all public.

    `dimension` is the wished length of a vector, `normalizer` the rule by which texts that look alike count as one;
    `columns` are those of a table, height and width the pixels of an image.
    """

    data_kind: str
    dimension: int
    normalizer: str = "L1"
    columns: Sequence[Mapping[str, Any]] = field(default_factory=tuple)
    image_height: int = 1
    image_width: int = 1


@dataclass(frozen=True)
class FeaturesChoice(FreeChoice):
    kind: ClassVar[Kind] = Kind.FEATURES

    feature_dimension: int = parameter(
        64,
        at_least=2,
        at_most=4096,
        data_kinds=("text", "image"),
        label=_("Feature dimension"),
        help=_("Fewer mean less noise; more separate classes better."),
    )

    @abstractmethod
    def featurizer(self, shape: RecordShape) -> Featurizer:
        """Return the featuriser, fixed by the configuration alone."""
