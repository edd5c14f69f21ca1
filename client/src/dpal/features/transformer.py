"""A published sentence encoder in numpy alone: its weights, and the mean of its last layer over a text's pieces."""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from dpal.errors import NotGenuine

Array = NDArray[np.float32]
Network = TypeVar("Network", bound="Transformer")
# The error function as a quotient of polynomials within [-4, 4], highest power of the square first.
ERF_ABOVE = np.array(
    (
        -2.72614225801306e-10,
        2.77068142495902e-08,
        -2.10102402082508e-06,
        -5.69250639462346e-05,
        -7.34990630326855e-04,
        -2.95459980854025e-03,
        -1.60960333262415e-02,
    ),
    dtype=np.float32,
)
ERF_BELOW = np.array(
    (
        -1.45660718464996e-05,
        -2.13374055278905e-04,
        -1.68282697438203e-03,
        -7.37332916720468e-03,
        -1.42647390514189e-02,
    ),
    dtype=np.float32,
)


@dataclass(frozen=True)
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

    weights: dict[str, Array]
    layers: int
    heads: int
    epsilon: float

    @classmethod
    def read(cls: type[Network], config: Path, tensors: Path) -> Network:
        """Read the published configuration and the weights, whose digests were checked."""
        said: dict[str, Any] = json.loads(config.read_text(encoding="utf-8"))
        if (said["model_type"], said["hidden_act"]) != ("bert", "gelu"):
            raise NotGenuine(f"The sentence encoder is of the type {said['model_type']!r}, which needs a newer client.")
        weights = {
            name: np.ascontiguousarray(found.T if name.endswith("dense.weight") or ".self." in name else found)
            for name, found in read_tensors(tensors).items()
        }
        return cls(weights, said["num_hidden_layers"], said["num_attention_heads"], said["layer_norm_eps"])

    @staticmethod
    def erf(values: Array) -> Array:
        """Return the error function."""
        return erf(values)

    @property
    def width(self) -> int:
        """Number of columns of the output."""
        return int(self.weights["embeddings.word_embeddings.weight"].shape[1])

    def mean_vectors(self, tokens: NDArray[np.intp]) -> NDArray[np.float64]:
        """Return one row a text, shape (texts, width), for tokens of shape (texts, length): texts of equal length."""
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
            mixed = self.dense(mixed, f"{layer}.attention.output.dense")
            hidden = self._normalised(hidden + mixed, f"{layer}.attention.output.LayerNorm")
            raised = self.dense(hidden, f"{layer}.intermediate.dense")
            raised *= np.float32(0.5) + np.float32(0.5) * self.erf(raised * np.float32(2**-0.5))
            lowered = self.dense(raised, f"{layer}.output.dense")
            hidden = self._normalised(hidden + lowered, f"{layer}.output.LayerNorm")
        mean: NDArray[np.float64] = hidden.mean(axis=1, dtype=np.float64)
        return mean

    def dense(self, hidden: Array, name: str) -> Array:
        """Return a linear layer's output."""
        matrix = self.weights[f"{name}.weight"]
        # One large product: many small ones would each wait for all threads of the linear algebra.
        product: Array = (hidden.reshape(-1, len(matrix)) @ matrix).reshape(*hidden.shape[:-1], -1)
        product += self.weights[f"{name}.bias"]
        return product

    def _attention(self, hidden: Array, name: str) -> Array:
        texts, length, width = hidden.shape

        def split(part: str) -> Array:
            heads = self.dense(hidden, f"{name}.{part}").reshape(texts, length, self.heads, -1)
            return np.ascontiguousarray(heads.transpose(0, 2, 1, 3))

        scores = np.matmul(split("query"), split("key").transpose(0, 1, 3, 2))
        scores *= np.float32((width / self.heads) ** -0.5)
        scores -= scores.max(axis=-1, keepdims=True)
        np.exp(scores, out=scores)
        scores /= scores.sum(axis=-1, keepdims=True)
        mixed: Array = np.matmul(scores, split("value"))
        return np.ascontiguousarray(mixed.transpose(0, 2, 1, 3)).reshape(texts, length, width)

    def _normalised(self, hidden: Array, name: str) -> Array:
        centred: Array = hidden - hidden.mean(axis=-1, keepdims=True)
        variance = np.einsum("ijk,ijk->ij", centred, centred)[..., None] / np.float32(hidden.shape[-1])
        centred /= np.sqrt(variance + np.float32(self.epsilon))
        centred *= self.weights[f"{name}.weight"]
        centred += self.weights[f"{name}.bias"]
        return centred


def read_tensors(path: Path) -> dict[str, Array]:
    """Return the tensors of float32 in a file of safetensors.

    References
    ----------
    .. [1] Hugging Face, "Safetensors", format: the length of a JSON header, the header, the numbers.
    """
    content = np.memmap(path, dtype=np.uint8, mode="r")
    length = int.from_bytes(content[:8].tobytes(), "little")
    header: dict[str, Any] = json.loads(content[8 : 8 + length].tobytes())
    found = {}
    for name, tensor in header.items():
        if tensor.get("dtype") == "F32":
            start, end = tensor["data_offsets"]
            part = content[8 + length + start : 8 + length + end]
            found[name] = np.frombuffer(part.tobytes(), dtype="<f4").reshape(tensor["shape"])
    return found


def erf(values: Array) -> Array:
    """Return the error function to six digits, as float32."""
    within = np.clip(values, np.float32(-4), np.float32(4))
    square = within * within
    within *= _polynomial(ERF_ABOVE, square)
    within /= _polynomial(ERF_BELOW, square)
    return within


def _polynomial(factors: Array, at: Array) -> Array:
    found = np.full_like(at, factors[0])
    for factor in factors[1:]:
        found *= at
        found += factor
    return found
