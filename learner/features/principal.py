"""Images by privately found principal directions: the one featuriser that is paid for, once for each project."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import linalg

from dpal.features.clipping import check_norm_bound
from dpal.features.images import PrincipalImages
from learner.features.base import Featurizer
from learner.features.choice import Finding, RecordShape
from learner.features.image import ImageFeaturizer, ReadsImages, cells_of, hues_side
from privacy.accounting.sums import second_moments_event
from privacy.choices import Sound, parameter
from privacy.mechanisms.randomness import RandomSource
from privacy.mechanisms.second_moments import release_second_moments
from privacy.wording import gettext_noop as _

# Written into every release; finer steps than features need.
COMPONENT_STEP = 2.0**-20
# The noise of a covariance grows with its columns, so images are pooled to at most this many cells a side first.
LARGEST_COVARIANCE_SIDE = 10
# Brightness of so many cells a side and hues of a third as many make about as many columns.
LARGEST_COLOURED_SIDE = 9


class PrincipalImageFeaturizer(Featurizer):
    """Project pooled images on directions that were released once, each row stretched to the norm bound.

    Parameters
    ----------
    pixels : ImageFeaturizer
        What the directions were found in; data-independent.
    n_components : int
        Number of directions, 1 <= n_components <= pixels.dimension.
    components : ndarray of shape (n_components, pixels.dimension), optional
        Released directions. Without them the width is known and no image can be featurised.
    norm_bound : float
        L2 norm of every row other than zero.
    """

    kind = "principal_image"
    reads = "image"

    def __init__(
        self, pixels: ImageFeaturizer, n_components: int, components: ArrayLike | None = None, norm_bound: float = 1.0
    ) -> None:
        if not 1 <= n_components <= pixels.dimension:
            raise ValueError(f"n_components must be within [1, {pixels.dimension}], got {n_components}")
        self.pixels = pixels
        self.n_components = int(n_components)
        self.norm_bound = check_norm_bound(norm_bound)
        self.components: NDArray[np.float64] | None = None
        if components is not None:
            found = np.asarray(components, dtype=np.float64)
            if found.shape != (self.n_components, pixels.dimension) or not np.isfinite(found).all():
                raise ValueError(
                    f"components must be finite, of shape {(n_components, pixels.dimension)}, got {found.shape}"
                )
            self.components = found

    @property
    def dimension(self) -> int:
        return self.n_components

    def parameters(self) -> dict[str, Any]:
        return {
            "pixels": self.pixels.parameters(),
            "n_components": self.n_components,
            "components": None if self.components is None else self.components.tolist(),
            "norm_bound": self.norm_bound,
        }

    @classmethod
    def from_parameters(cls, parameters: dict[str, Any]) -> Self:
        return cls(**{**parameters, "pixels": ImageFeaturizer.from_parameters(parameters["pixels"])})

    def example_records(self) -> list[Any]:
        return self.pixels.example_records()

    def raw_rows(self, batch: ArrayLike) -> NDArray[np.float64]:
        """Return scaled rows, shape (n, n_components); `ValueError` before the directions were released."""
        if self.components is None:
            raise ValueError("the principal directions were not released yet")
        found = PrincipalImages(self.pixels.images, self.components, self.norm_bound)
        return found.projected(self.pixels.raw_rows(batch))


def principal_directions(moments: NDArray[np.float64], n_components: int) -> NDArray[np.float64]:
    """Return the leading eigenvectors of a released symmetric matrix, shape (n_components, d): post-processing.

    Each has the sign that makes its largest entry positive, and entries that are multiples of `COMPONENT_STEP`.
    """
    _, vectors = linalg.eigh(moments, subset_by_index=(len(moments) - n_components, len(moments) - 1))
    directions = vectors.T[::-1]
    largest = directions[np.arange(n_components), np.abs(directions).argmax(axis=1)]
    rounded: NDArray[np.float64] = np.rint(directions * np.sign(largest)[:, None] / COMPONENT_STEP) * COMPONENT_STEP
    return rounded


@dataclass(frozen=True)
class PrincipalDirections(ReadsImages):
    name: ClassVar[str] = "principal"
    label: ClassVar[str] = _("principal directions of the images, found privately")
    sound: ClassVar[Sound] = Sound(
        oracles=("trusted",),
        data_kinds=("image",),
        why_not=dict.fromkeys(("crowd", "text", "table"), _("Principal directions need images of a trusted project.")),
    )
    no_start: ClassVar[str] = _("role: upload the pool first; principal directions are found in it")

    features_epsilon: float = parameter(
        None,
        above=0,
        label=_("Epsilon of principal directions"),
        help=_("Charged once, before the first image is read."),
        charged=True,
    )

    def featurizer(self, shape: RecordShape) -> Featurizer:
        return self._projecting(shape, None)

    def found(self, shape: RecordShape, released: list[Any]) -> Featurizer:
        return self._projecting(shape, released)

    def _projecting(self, shape: RecordShape, components: list[Any] | None) -> PrincipalImageFeaturizer:
        height, width = shape.image_height, shape.image_width
        largest = LARGEST_COLOURED_SIDE if self.is_colour else LARGEST_COVARIANCE_SIDE
        hues = cells_of(shape, hues_side(largest)) if self.is_colour else None
        pixels = ImageFeaturizer(height, width, pooled=cells_of(shape, largest), centered=True, hues=hues)
        return PrincipalImageFeaturizer(pixels, min(shape.dimension, pixels.dimension), components)

    def finding(self, shape: RecordShape) -> Finding:
        """Return noisy second moments of the images, of which the directions are the leading eigenvectors."""
        waiting = self._projecting(shape, None)
        pixels = waiting.pixels
        event = second_moments_event(self.features_epsilon, pixels.dimension, norm_bound=pixels.norm_bound)

        def release(batches: Iterable[ArrayLike], rng: RandomSource) -> list[Any]:
            moments = release_second_moments((pixels.transform(batch) for batch in batches), event, rng=rng)
            directions: list[Any] = principal_directions(moments, waiting.n_components).tolist()
            return directions

        return Finding(
            event,
            purpose="find principal directions of the images",
            no_pool=_("There is no pool."),
            release=release,
        )
