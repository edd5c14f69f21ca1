"""Version 0: the model that public words about classes are worth, at epsilon 0, before any label."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from learner.estimators.adaptation import INVERSE_TEMPERATURE, linear_model
from learner.estimators.baseline import LogisticRegressionBaseline
from learner.estimators.descriptions import ClassDescription
from learner.linear_model import LinearModel

Encode = Callable[[Sequence[str]], NDArray[np.floating]]
# From so many example texts a class on, differences between examples say more than their mean.
LEAST_EXAMPLES = 4
# A regularised fit; each class weighs as much as its examples.
REGULARIZATION = 0.1


@dataclass(frozen=True, slots=True)
class EncodedWords:
    """Words about classes, with features that read them: `PublicWords` as estimators ask for them."""

    classes: tuple[str, ...]
    descriptions: Mapping[str, ClassDescription]
    encode: Encode
    knows_names: bool

    @property
    def say_something(self) -> bool:
        return bool(self.descriptions) or self.knows_names

    @property
    def enough_examples(self) -> bool:
        return enough_examples(self.classes, self.descriptions)

    def model(self) -> LinearModel:
        return version_zero(self.classes, self.descriptions, self.encode)

    def directions(self) -> LinearModel:
        return word_directions(self.classes, self.descriptions, self.encode)


def public_examples(
    classes: Sequence[str], descriptions: Mapping[str, ClassDescription]
) -> tuple[list[str], NDArray[np.int64]]:
    found = [
        (text, place)
        for place, name in enumerate(classes)
        if name in descriptions
        for text in descriptions[name].example_texts
    ]
    return [text for text, _ in found], np.array([place for _, place in found], dtype=np.int64)


def enough_examples(classes: Sequence[str], descriptions: Mapping[str, ClassDescription]) -> bool:
    places = public_examples(classes, descriptions)[1]
    return bool(len(places)) and int(np.bincount(places, minlength=len(classes)).min()) >= LEAST_EXAMPLES


def version_zero(classes: Sequence[str], descriptions: Mapping[str, ClassDescription], encode: Encode) -> LinearModel:
    """Return the model made of names, sentences and examples.

    With enough examples of every class a linear model is fitted to them; else each class is the mean direction of what
    was written about it, its name where nothing was.
    """
    texts, places = public_examples(classes, descriptions)
    if enough_examples(classes, descriptions):
        return _fitted(np.asarray(encode(texts), dtype=np.float64), places, tuple(classes))
    directions = np.stack([_direction(name, descriptions.get(name), encode) for name in classes])
    coef = INVERSE_TEMPERATURE * (directions - directions.mean(axis=0))
    intercept = np.zeros(len(classes))
    if len(classes) == 2:
        coef, intercept = np.diff(coef, axis=0), intercept[1:]
    return LinearModel(coef, intercept, tuple(classes), "softmax")


def word_directions(
    classes: Sequence[str], descriptions: Mapping[str, ClassDescription], encode: Encode
) -> LinearModel:
    """Return the model whose classes are the directions of their words, as far as these differ between classes.

    What learns under a known channel starts from it: softmax scores of one length for every class, however much was
    written about each. Where nothing was, the name stands for the class.
    """
    directions = []
    for name in classes:
        words = descriptions.get(name, ClassDescription(name))
        said = [text for text in (words.name, words.sentence, *words.example_texts) if text.strip()]
        directions.append(np.asarray(encode(said), dtype=np.float64).mean(axis=0))
    apart = np.stack(directions) - np.mean(directions, axis=0)
    lengths = np.linalg.norm(apart, axis=1, keepdims=True)
    weights = INVERSE_TEMPERATURE * apart / np.where(lengths > 0, lengths, 1.0)
    return linear_model(weights, np.zeros(len(weights)), np.zeros(weights.shape[1]), tuple(classes))


def _fitted(rows: NDArray[np.float64], places: NDArray[np.int64], classes: tuple[str, ...]) -> LinearModel:
    fitted = LogisticRegressionBaseline(REGULARIZATION, classes=range(len(classes))).fit(rows, places)
    return LinearModel(fitted.coef_, fitted.intercept_, classes)


def _direction(name: str, described: ClassDescription | None, encode: Encode) -> NDArray[np.float64]:
    words = described or ClassDescription(name.replace("_", " "))
    said = [text for text in (words.name, words.sentence, *words.example_texts) if text.strip()]
    rows = np.asarray(encode(said), dtype=np.float64).mean(axis=0)
    length = float(np.linalg.norm(rows))
    direction: NDArray[np.float64] = rows / length if length else rows
    return direction
