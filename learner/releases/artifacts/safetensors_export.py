"""A released model as safetensors: the numbers of weights.json bit for bit, for programs that read tensors alone."""

import json

from learner.linear_model import SCHEMA, LinearModel


def safetensors_bytes(model: LinearModel, *, featurizer: str) -> bytes:
    """Return coef, float64 of shape (outputs, d), and intercept, (outputs,), with classes and schema as metadata.

    Parameters
    ----------
    model : LinearModel
        The released weights.
    featurizer : str
        Version of the featuriser the input must come from.
    """
    from safetensors.numpy import save  # noqa: PLC0415  # slow import

    metadata = {
        "schema": SCHEMA,
        "classes": json.dumps(model.classes, ensure_ascii=False),
        "multiclass": model.multiclass,
        "featurizer": featurizer,
    }
    content: bytes = save({"coef": model.coef, "intercept": model.intercept}, metadata=metadata)
    return _in_order(content)


def _in_order(content: bytes) -> bytes:
    """Write the header with sorted names: the library keeps metadata in an order of its own in every process."""
    length = int.from_bytes(content[:8], "little")
    header = json.loads(content[8 : 8 + length])
    written = json.dumps(header, sort_keys=True, separators=(",", ":"), ensure_ascii=False).encode()
    # Tensors begin at a multiple of eight bytes.
    written += b" " * (-len(written) % 8)
    return len(written).to_bytes(8, "little") + written + content[8 + length :]
