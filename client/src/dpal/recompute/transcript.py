"""Transcript of a release: the public parameters of its training and every answer that was paid for."""

from base64 import b64decode, b64encode
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from dpal.errors import NotGenuine

Array = NDArray[np.float64]
SCHEMA = "dpal-transcript/1"
# Query, sensitivity, noise scale, answer.
Measured = tuple[str, float, float, Array]
# Hears how many of the planned steps are made.
Tell = Callable[[int, int], None]


class Session(Protocol):
    """Answers measured queries: from private rows with noise, or from a transcript."""

    def ask(self, query: str, *public: Any) -> Array:
        """Return the noisy answer to a query that depends on public values alone otherwise."""


@dataclass(frozen=True)
class Weights:
    """Result of a training: weights, one row a score, intercepts, and how scores become probabilities."""

    coef: Array
    intercept: Array
    multiclass: str = "softmax"


class Recorded:
    """Answers of a transcript, in the order in which they were given."""

    def __init__(self, answers: Sequence[Measured]) -> None:
        self._left = deque(answers)

    def ask(self, query: str, *public: Any) -> Array:
        """Return the next answer; `NotGenuine` if it is to another query, or there is none."""
        if not self._left or self._left[0][0] != query:
            raise NotGenuine(f"The transcript lacks an answer to {query!r} where the training asks for it.")
        return self._left.popleft()[3]

    def finish(self) -> None:
        """Refuse answers that nothing read."""
        if self._left:
            raise NotGenuine(f"The transcript holds {len(self._left)} answers that the training does not read.")


@dataclass(frozen=True)
class Transcript:
    """Everything that the weights of a release are made of.

    `program` is one of `dpal.recompute.PROGRAMS`, `parameters` are public values, and `answers` are (query,
    sensitivity, noise scale, answer) in the order in which they were asked for; a scale of 0 is public chance. Of a
    release `charged` holds the `entry` of privacy.json that paid for them, and its `event`; None where answers are no
    secret.
    """

    program: str
    parameters: Mapping[str, Any]
    answers: Sequence[Measured]
    charged: Mapping[str, Any] | None = None

    def to_json(self) -> dict[str, Any]:
        """Return the content of transcript.json; arrays keep every bit."""
        return {
            "schema": SCHEMA,
            "program": self.program,
            "parameters": packed(self.parameters),
            "charged": self.charged,
            "answers": [
                {"query": query, "sensitivity": sensitivity, "scale": scale, "answer": packed(answer)}
                for query, sensitivity, scale, answer in self.answers
            ],
        }

    @classmethod
    def from_json(cls, body: Mapping[str, Any]) -> "Transcript":
        """Return the transcript that transcript.json holds; `NotGenuine` if it has another schema or cannot be read."""
        try:
            if body["schema"] != SCHEMA:
                raise NotGenuine("The transcript is of a form that this version does not know: use a newer one.")
            answers = [
                (str(one["query"]), float(one["sensitivity"]), float(one["scale"]), unpacked(one["answer"]))
                for one in body["answers"]
            ]
            return cls(str(body["program"]), unpacked(body["parameters"]), answers, body["charged"])
        except (KeyError, TypeError, ValueError) as error:
            raise NotGenuine("The transcript cannot be read.") from error


def packed(value: Any) -> Any:
    """Return JSON values that keep every bit; arrays take single precision where that suffices."""
    if isinstance(value, np.ndarray):
        wide = value.astype("<f8")
        narrow = wide.astype("<f4")
        kept = narrow if (narrow == wide).all() else wide
        return {"dtype": kept.dtype.str, "shape": list(kept.shape), "data": b64encode(kept.tobytes()).decode()}
    if isinstance(value, Mapping):
        return {"values": {name: packed(one) for name, one in value.items()}}
    if isinstance(value, (list, tuple)):
        return [packed(one) for one in value]
    return value


def unpacked(value: Any) -> Any:
    """Return what `packed` was given."""
    if isinstance(value, Mapping) and "data" in value:
        if value["dtype"] not in ("<f4", "<f8"):
            raise ValueError("arrays have single or double precision")
        flat = np.frombuffer(b64decode(value["data"]), dtype=value["dtype"])
        return flat.astype(np.float64).reshape(value["shape"])
    if isinstance(value, Mapping):
        return {name: unpacked(one) for name, one in value["values"].items()}
    if isinstance(value, list):
        return [unpacked(one) for one in value]
    return value
