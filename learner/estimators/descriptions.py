"""Words of an owner about classes before any label: a name, a sentence, example phrases with slots."""

import itertools
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Protocol

from dpal.reading.labels import class_key, split_line
from learner.linear_model import LinearModel

SLOT = re.compile(r"\{([A-Za-z_][A-Za-z0-9_]*)\}")
QUOTED = re.compile(r'^["“”„«»](.+)["“”«»]$')
ALTERNATIVES = re.compile(r"\{([^{}]*)\}")
# A template with many slots stands for this many texts at most; more say nothing new about its words.
MOST_FILLINGS = 32


@dataclass(frozen=True, slots=True)
class ClassDescription:
    """Public words about one class, written by the owner and by nobody who saw private records.

    Attributes
    ----------
    name : str
        The class as people read it.
    sentence : str
        What belongs to it, possibly empty.
    examples : tuple of str
        Phrases as they might occur; ``{slot}`` stands for each of the slot's values.
    slots : mapping of str to sequence of str
        Values by name of the slot.
    """

    name: str
    sentence: str = ""
    examples: tuple[str, ...] = ()
    slots: Mapping[str, Sequence[str]] = field(default_factory=lambda: MappingProxyType({}))

    def __post_init__(self) -> None:
        if not self.name.strip():
            raise ValueError("a class must have a name")
        wanted = {slot for example in self.examples for slot in SLOT.findall(example)}
        if empty := sorted(slot for slot in wanted if not self.slots.get(slot)):
            raise ValueError(f"slots without values: {empty}")

    @property
    def example_texts(self) -> tuple[str, ...]:
        """All examples with their slots filled, each once, in the order they were written."""
        filled = itertools.chain.from_iterable(fillings(example, self.slots) for example in self.examples)
        return tuple(dict.fromkeys(filled))


class PublicWords(Protocol):
    """All that is written about the classes of a project, as far as its features read it; estimators ask it."""

    @property
    def classes(self) -> tuple[str, ...]: ...

    @property
    def knows_names(self) -> bool:
        """True where features read a name as a word, not as a hash."""

    @property
    def say_something(self) -> bool:
        """True where somebody wrote about the classes, or features read their names."""

    @property
    def enough_examples(self) -> bool: ...

    def model(self) -> LinearModel:
        """Return version 0, at epsilon 0."""

    def directions(self) -> LinearModel:
        """Return the directions of the words, in the scale of softmax scores."""


def fillings(template: str, slots: Mapping[str, Sequence[str]]) -> list[str]:
    """Return a template with its slots filled: every value occurs, at most `MOST_FILLINGS` texts in all."""
    names = list(dict.fromkeys(SLOT.findall(template)))
    if not names:
        return [template]
    lists = [list(slots[name]) for name in names]
    combinations = list(itertools.islice(itertools.product(*lists), MOST_FILLINGS + 1))
    if len(combinations) > MOST_FILLINGS:
        # Side by side instead of all with all: no value is lost while there is room for it.
        longest = min(MOST_FILLINGS, max(map(len, lists)))
        combinations = [tuple(values[place % len(values)] for values in lists) for place in range(longest)]
    return [_filled(template, dict(zip(names, values, strict=True))) for values in combinations]


def _filled(template: str, chosen: Mapping[str, str]) -> str:
    return SLOT.sub(lambda found: chosen[found.group(1)], template)


def described_by(lines: Sequence[str], classes: Sequence[str]) -> dict[str, ClassDescription]:
    """Read lines like ``class: words``, one example phrase each, into descriptions by class.

    ``{one|two}`` in the words stands for either; quotation marks around them are for people. Names are compared without
    case; a line about anything else is left out.
    """
    by_name = {class_key(name): name for name in classes}
    found: dict[str, list[str]] = {}
    slots: dict[str, dict[str, list[str]]] = {}
    for line in lines:
        name, words = split_line(line, by_name)
        if name is None or not words:
            continue
        values = slots.setdefault(name, {})

        def slot(alternatives: re.Match[str], values: dict[str, list[str]] = values) -> str:
            key = f"slot{len(values)}"
            values[key] = [word.strip() for word in alternatives.group(1).split("|")]
            return "{" + key + "}"

        # Braces without alternatives are words like any other.
        plain = ALTERNATIVES.sub(slot, QUOTED.sub(r"\1", words).replace("{}", ""))
        found.setdefault(name, []).append(plain)
    return {name: ClassDescription(name, examples=tuple(said), slots=slots[name]) for name, said in found.items()}
