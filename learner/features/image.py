"""Images to rows: area pooling and edges, or a public random projection."""

from dataclasses import dataclass
from typing import Any, Self, final

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dpal.features.clipping import check_norm_bound
from dpal.features.images import EDGES, Images
from learner.features.base import Featurizer, RowScaling
from learner.features.choice import FeaturesChoice, RecordShape
from privacy.choices import parameter
from privacy.wording import gettext_noop as _


class ImageFeaturizer(Featurizer):
    """Pool, project and scale images of one size.

    Parameters
    ----------
    height, width : int
        Size of every image in pixels, >= 1.
    pooled : tuple of int, optional
        Rows and columns after averaging over equal areas; they need not divide the size.
    projection : tuple of (int, int), optional
        Dimension and public seed of a random sign matrix. The seed is part of the published
        featuriser; nothing about it depends on data.
    norm_bound : float
        Bound on the L2 norm of every row.
    centered : bool
        Whether each image's own mean is subtracted, so that the brightness all images share takes up none of the norm.
        Of an image in colour it is the mean of the brightness: a surface of one hue is not even, and keeps its hue.
    row_scaling : {"bounded", "unit"}
        "unit" stretches every row to the bound; "bounded" keeps brightness and, with a projection, may clip.
    hues : tuple of int, optional
        Of images with red, green and blue: rows and columns after averaging the two differences between colours, which
        stand behind the brightness. An average counts by the root of its area, so a few cells say as much as many.
        None for grey images. The norm bound is that of grey images, and so is what a training costs.
    edges : tuple of int, optional
        Rows and columns of cells in each of which edges of four directions are counted, beside the averages. Without a
        projection, and in unit rows alone.

    References
    ----------
    .. [1] Achlioptas, "Database-friendly random projections", JCSS 66(4), 2003, Theorem 1.1.
    """

    kind = "image"
    reads = "image"

    def __init__(
        self,
        height: int,
        width: int,
        pooled: tuple[int, int] | None = None,
        projection: tuple[int, int] | None = None,
        norm_bound: float = 1.0,
        row_scaling: RowScaling = "unit",
        centered: bool = False,
        hues: tuple[int, int] | None = None,
        edges: tuple[int, int] | None = None,
    ) -> None:
        if height < 1 or width < 1:
            raise ValueError(f"images must have at least one pixel, got {height} x {width}")
        for name, cells in (("pooled", pooled), ("hues", hues), ("edges", edges)):
            if cells is not None and not (1 <= cells[0] <= height and 1 <= cells[1] <= width):
                raise ValueError(f"{name} must be within the image size, got {cells}")
        if projection is not None and (projection[0] < 1 or not 0 <= projection[1] < 2**64):
            raise ValueError(f"projection needs a dimension >= 1 and a seed of 64 bits, got {projection}")
        if edges is not None and (projection is not None or row_scaling != "unit"):
            raise ValueError("edges need unit rows without a projection")
        if row_scaling not in ("bounded", "unit"):
            raise ValueError(f"row_scaling must be 'bounded' or 'unit', got {row_scaling!r}")
        self.height = int(height)
        self.width = int(width)
        self.pooled = pooled
        self.projection = projection
        self.norm_bound = check_norm_bound(norm_bound)
        self.row_scaling: RowScaling = row_scaling
        self.centered = bool(centered)
        self.hues = hues
        self.edges = edges
        rows, columns = pooled or (height, width)
        self._n_values = rows * columns + (0 if hues is None else 2 * hues[0] * hues[1])
        self._n_values += 0 if edges is None else len(EDGES) * edges[0] * edges[1]
        self.images = Images(self.parameters())

    @property
    def dimension(self) -> int:
        return self._n_values if self.projection is None else self.projection[0]

    def parameters(self) -> dict[str, Any]:
        parameters = {
            "height": self.height,
            "width": self.width,
            "pooled": None if self.pooled is None else list(self.pooled),
            "projection": None if self.projection is None else list(self.projection),
            "norm_bound": self.norm_bound,
            "row_scaling": self.row_scaling,
            "centered": self.centered,
        }
        further = {"hues": self.hues, "edges": self.edges}
        return parameters | {name: list(cells) for name, cells in further.items() if cells is not None}

    @classmethod
    def from_parameters(cls, parameters: dict[str, Any]) -> Self:
        pairs = {
            name: None if parameters[name] is None else (int(parameters[name][0]), int(parameters[name][1]))
            for name in ("pooled", "projection", *({"hues", "edges"} & parameters.keys()))
        }
        return cls(**{**parameters, **pairs})

    def example_records(self) -> list[Any]:
        rows, columns = np.indices((self.height, self.width))
        slope = (rows * self.width + columns) * 255 // max(1, self.height * self.width - 1)
        squares = ((rows // 2 + columns // 2) % 2) * 255
        grey = np.stack([slope, squares]).astype(np.uint8)
        shown = grey if self.hues is None else np.stack([grey, 255 - grey, grey[::-1]], axis=3)
        return list(shown.tolist())

    def raw_rows(self, batch: ArrayLike) -> NDArray[np.float64]:
        """Return scaled rows, shape (n, dimension), of uint8 images, shape (n, height, width); in colour (..., 3)."""
        return self.images.rows(self.images.checked(batch))


def hues_side(side: int) -> int:
    return max(1, side // 3)


def cells_of(shape: RecordShape, side: int) -> tuple[int, int]:
    return min(shape.image_height, side), min(shape.image_width, side)


@dataclass(frozen=True)
class ReadsImages(FeaturesChoice):
    """Settings of a choice that reads images; fixed once a file was read."""

    image_colours: str = parameter(
        "grey",
        options={"grey": _("grey"), "colour": _("colour")},
        data_kinds=("image",),
        label=_("Image features"),
        help=_("Colour takes a few of the columns."),
    )

    @final
    @property
    def is_colour(self) -> bool:
        return self.image_colours == "colour"
