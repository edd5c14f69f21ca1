"""Records to vectors by what is declared about them, whatever they are made of."""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from learner.features.base import Featurizer
from learner.features.choice import PROJECTION_SEED, RecordShape
from learner.features.image import ImageFeaturizer, ReadsImages, cells_of, hues_side
from learner.features.tabular import TabularFeaturizer
from learner.features.text import HashingTextFeaturizer
from privacy.wording import gettext_noop as _

# Edges are counted in so many cells a side, beside the averages of pixels.
EDGE_SIDE = 2


def _as_feature(column: Mapping[str, Any]) -> dict[str, Any]:
    """Return a declared column without what only says which cells an upload may hold."""
    return {key: value for key, value in column.items() if key != "other" and value is not True}


@dataclass(frozen=True)
class DeclaredRules(ReadsImages):
    name: ClassVar[str] = "standard"
    label: ClassVar[str] = _("declared rules: hashed words, bounds, categories, pixels")

    def featurizer(self, shape: RecordShape) -> Featurizer:
        if shape.data_kind == "text":
            return HashingTextFeaturizer(shape.dimension, normalizer=shape.normalizer)
        if shape.data_kind == "table":
            return TabularFeaturizer.from_parameters({"columns": [_as_feature(one) for one in shape.columns]})
        return self._of_pixels(shape)

    def _of_pixels(self, shape: RecordShape) -> ImageFeaturizer:
        height, width, wanted = shape.image_height, shape.image_width, shape.dimension
        edges = cells_of(shape, EDGE_SIDE)
        if self.is_colour:
            sides = range(1, math.isqrt(wanted) + 1)
            largest = max((side for side in sides if side**2 + 2 * hues_side(side) ** 2 <= wanted), default=1)
            hues = cells_of(shape, hues_side(largest))
            return ImageFeaturizer(
                height, width, pooled=cells_of(shape, largest), centered=True, hues=hues, edges=edges
            )
        if wanted >= height * width:
            return ImageFeaturizer(height, width, centered=True, edges=edges)
        side = math.isqrt(wanted)
        # To a square of so many cells where there is one, else by a projection of the pixels.
        if side * side == wanted and side <= min(height, width):
            return ImageFeaturizer(height, width, pooled=(side, side), centered=True, edges=edges)
        return ImageFeaturizer(height, width, projection=(wanted, PROJECTION_SEED), centered=True)
