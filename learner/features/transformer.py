"""The transformer of `dpal.features`, computed so that the row of a text never depends on its neighbours."""

from pathlib import Path
from typing import Self

import numpy as np
from numpy.typing import NDArray
from scipy import special

from dpal import encoders
from dpal.features import transformer

Activations = NDArray[np.float32]


class Transformer(transformer.Transformer):
    """Compute each row from its own text by the same operations in the same order, however many texts there are."""

    @classmethod
    def from_folder(cls, folder: Path) -> Self:
        """Read `config.json` and `model.safetensors`."""
        return cls.read(folder / encoders.PUBLISHED[encoders.CONFIG], folder / encoders.PUBLISHED[encoders.WEIGHTS])

    @staticmethod
    def erf(values: Activations) -> Activations:
        """Return the error function to the last digit of float32."""
        found: Activations = special.erf(values)
        return found

    def dense(self, hidden: Activations, name: str) -> Activations:
        """Return a product for each text, of a size that no other text changes."""
        product: Activations = np.matmul(hidden, self.weights[f"{name}.weight"])
        product += self.weights[f"{name}.bias"]
        return product
