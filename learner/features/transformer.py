"""A small bidirectional transformer in numpy: reads published weights, needs no learning framework."""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Self

import numpy as np
from numpy.typing import NDArray
from scipy.special import erf

Activations = NDArray[np.float32]


@dataclass(frozen=True, slots=True)
class Transformer:
    """Weights of a BERT-like encoder and how to run them.

    Attributes
    ----------
    weights : dict of str to ndarray of float32
        As published, matrices transposed for rows times matrix.
    layers, heads : int
        Numbers of layers, and of attention heads in each.
    epsilon : float
        Added to variances before a square root.

    References
    ----------
    .. [1] Devlin et al., "BERT", NAACL 2019.
    .. [2] Vaswani et al., "Attention is all you need", NeurIPS 2017, equation 1.
    """

    weights: dict[str, Activations]
    layers: int
    heads: int
    epsilon: float

    @classmethod
    def from_folder(cls, folder: Path) -> Self:
        """Read `config.json` and `model.safetensors`.

        Raises
        ------
        ValueError
            If the weights are those of another kind of network.
        """
        from safetensors.numpy import load_file  # noqa: PLC0415  # slow import

        config = json.loads((folder / "config.json").read_text())
        if (config["model_type"], config["hidden_act"]) != ("bert", "gelu"):
            raise ValueError(f"the encoder must be of type bert with gelu, got {config['model_type']!r}")
        loaded = load_file(folder / "model.safetensors")
        weights = {
            name: np.ascontiguousarray(found.T if name.endswith("dense.weight") or ".self." in name else found)
            for name, found in loaded.items()
            if found.dtype == np.float32
        }
        return cls(weights, config["num_hidden_layers"], config["num_attention_heads"], config["layer_norm_eps"])

    @property
    def width(self) -> int:
        """Number of columns of the output."""
        return int(self.weights["embeddings.word_embeddings.weight"].shape[1])

    def mean_vectors(self, tokens: NDArray[np.intp]) -> NDArray[np.float64]:
        """Return the mean of the last layer over the tokens of each text.

        Parameters
        ----------
        tokens : ndarray of int, shape (texts, length)
            Texts of equal length, so that nothing is padded.

        Returns
        -------
        ndarray of shape (texts, width)
            Each row is computed from its own text by the same operations in the same order, however many there are:
            every product is one of a text's own matrix.
        """
        prefix = "embeddings."
        hidden = (
            self.weights[f"{prefix}word_embeddings.weight"][tokens]
            + self.weights[f"{prefix}token_type_embeddings.weight"][0]
            + self.weights[f"{prefix}position_embeddings.weight"][: tokens.shape[1]]
        )
        hidden = self._normalised(hidden, f"{prefix}LayerNorm")
        for number in range(self.layers):
            layer = f"encoder.layer.{number}"
            mixed = self._attention(hidden, f"{layer}.attention.self")
            mixed = self._dense(mixed, f"{layer}.attention.output.dense")
            hidden = self._normalised(hidden + mixed, f"{layer}.attention.output.LayerNorm")
            raised = self._dense(hidden, f"{layer}.intermediate.dense")
            raised *= 0.5 * (1 + erf(raised * np.float32(2**-0.5)))
            lowered = self._dense(raised, f"{layer}.output.dense")
            hidden = self._normalised(hidden + lowered, f"{layer}.output.LayerNorm")
        mean: NDArray[np.float64] = hidden.mean(axis=1, dtype=np.float64)
        return mean

    def _dense(self, hidden: Activations, name: str) -> Activations:
        # A stack of matrices times one matrix is one product for each text, of a size that no other text changes.
        product: Activations = np.matmul(hidden, self.weights[f"{name}.weight"])
        product += self.weights[f"{name}.bias"]
        return product

    def _attention(self, hidden: Activations, name: str) -> Activations:
        texts, length, width = hidden.shape

        def split(part: str) -> Activations:
            heads = self._dense(hidden, f"{name}.{part}").reshape(texts, length, self.heads, -1)
            return np.ascontiguousarray(heads.transpose(0, 2, 1, 3))

        scores = np.matmul(split("query"), split("key").transpose(0, 1, 3, 2))
        scores *= np.float32((width / self.heads) ** -0.5)
        scores -= scores.max(axis=-1, keepdims=True)
        np.exp(scores, out=scores)
        scores /= scores.sum(axis=-1, keepdims=True)
        mixed: Activations = np.matmul(scores, split("value"))
        return np.ascontiguousarray(mixed.transpose(0, 2, 1, 3)).reshape(texts, length, width)

    def _normalised(self, hidden: Activations, name: str) -> Activations:
        centred: Activations = hidden - hidden.mean(axis=-1, keepdims=True)
        variance = np.einsum("ijk,ijk->ij", centred, centred)[..., None] / np.float32(hidden.shape[-1])
        centred /= np.sqrt(variance + np.float32(self.epsilon))
        centred *= self.weights[f"{name}.weight"]
        centred += self.weights[f"{name}.bias"]
        return centred
