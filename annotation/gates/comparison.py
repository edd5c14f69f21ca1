"""Gates a project could have at one price, compared by the price alone: no record is looked at here."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Final, Self

import numpy as np

from annotation.choices.gates import (
    GateChoice,
    NamedByNumbers,
    gate_choice,
    gate_choices,
    gate_fields,
    own_gate_parameters,
    own_parameters,
    run_event,
    unit_of,
)
from privacy.accounting.cost import Unit
from privacy.gate.counting import CountingGate
from privacy.gate.normalizers import Normalizer, normalize_text
from privacy.gate.planning import Passing, passing
from privacy.gate.survey import Frequencies
from privacy.wording import Message, as_message, as_plural_message

EXAMPLE_TEXT: Final = "Set an alarm for 7:30 on Monday!"
SMALLEST_DELTA: Final = 1e-12
# Below this, finding the smallest k takes longer than a page may.
SMALLEST_EPSILON_PER_TEXT: Final = 0.05
ZIPF_EXPONENT: Final = 1.1
SYNTHETIC_RECORDS: Final = 1_000_000
SYNTHETIC_TEXTS: Final = 60_000


@dataclass(frozen=True, slots=True)
class Offer:
    """A gate at the wanted price; `needed` is about how often a text must be said to pass it."""

    settings: Mapping[str, str | int | float | None]
    gate: CountingGate
    needed: int
    choice: GateChoice

    @classmethod
    def of(cls, choice: GateChoice, unit: Unit) -> Self:
        own = {each.name: getattr(choice, each.name) for each in own_parameters(type(choice))}
        settings = {"gate_kind": choice.name, "gate_epsilon": choice.gate_epsilon, **own}
        return cls(settings, choice.gate(unit), choice.needed(unit), choice)

    @property
    def called(self) -> str:
        return self.choice.numbers() if isinstance(self.choice, NamedByNumbers) else self.choice.label


def offers(epsilon: float, delta: float, *, unit: Unit, texts_per_contributor: int | None) -> list[Offer]:
    """Return the gates at a price that no other of their kind beats; `ValueError` where epsilon is too small."""
    cap = texts_per_contributor or 1
    if epsilon < cap * SMALLEST_EPSILON_PER_TEXT:
        raise ValueError(
            as_plural_message(
                "epsilon must be at least {smallest_epsilon_per_text} for {n} text, got {epsilon}",
                "epsilon must be at least {smallest_epsilon_per_text} for each of {n} texts, got {epsilon}",
                smallest_epsilon_per_text=SMALLEST_EPSILON_PER_TEXT,
                n=cap,
                epsilon=epsilon,
            )
        )
    return [
        Offer.of(choice, unit)
        for kind in gate_choices().values()
        for choice in kind.at_price(epsilon, delta, unit=unit, texts_per_contributor=texts_per_contributor)
    ]


def settings_of_gate(settings: Mapping[str, Any]) -> str:
    fields = {"gate_kind", "gate_epsilon", *own_gate_parameters()}
    fields |= {"privacy_unit", "texts_per_contributor", "normalizer"}
    return json.dumps({field: settings.get(field) for field in sorted(fields)})


@lru_cache(maxsize=64)
def offers_like(settings: str) -> tuple[Offer, list[Offer]]:
    """Return a project's own gate and the gates at its price; `ValueError` where epsilon is too small."""
    declared = json.loads(settings)
    unit = unit_of(declared)
    own = Offer.of(gate_choice(declared), unit)
    price = run_event(declared).cost()
    cap = own.choice.cap(unit)
    delta = max(price.delta, SMALLEST_DELTA)
    return own, offers(price.epsilon, delta, unit=unit, texts_per_contributor=cap)


def gates_like(settings: Mapping[str, Any]) -> dict[str, Any] | None:
    """Return a project's own gate, its price, the best at that and the best of each kind; None at too small epsilon."""
    price = run_event(settings).cost()
    try:
        own, others = offers_like(settings_of_gate(settings))
    except ValueError:
        return None
    return {
        "own": own,
        "epsilon": price.epsilon,
        "delta": max(price.delta, SMALLEST_DELTA),
        "best_of_each": best_of_each(others),
        "best": recommended(others),
    }


def recommended(found: Sequence[Offer]) -> Offer:
    """Return the gate that lets the rarest texts pass; of equal ones the first: sampled, k is literally true."""
    return min(found, key=lambda offer: offer.needed)


def best_of_each(found: Sequence[Offer]) -> list[Offer]:
    kinds = dict.fromkeys(offer.choice.name for offer in found)
    return [recommended([offer for offer in found if offer.choice.name == kind]) for kind in kinds]


def advice_on(found: Sequence[Offer]) -> Message:
    best = recommended(found)
    other = recommended([offer for offer in best_of_each(found) if offer.choice.name != best.choice.name])
    return as_message(
        "{word_gate} is better here: a text passes when about {best} say it; {word_other} needs {takes}.",
        word_gate=best.called,
        best=best.needed,
        word_other=other.called,
        takes=other.needed,
    )


def passing_shares(found: list[Offer], frequencies: Frequencies) -> list[Passing]:
    """Return what each gate would let pass; as private as what the frequencies were counted from."""
    return [passing(frequencies, offer.gate) for offer in found]


@dataclass(frozen=True, slots=True)
class LikenessLevel:
    """A rule under which texts are equal: what annotators see of an example, and the project's gate with it."""

    normalizer: Normalizer
    example: str
    settings: Mapping[str, Any]


def own_settings(settings: Mapping[str, Any]) -> dict[str, Any]:
    return {field: settings[field] for field in ("gate_kind", "gate_epsilon", *gate_fields(settings["gate_kind"]))}


def levels(settings: Mapping[str, Any]) -> list[LikenessLevel]:
    own = own_settings(settings)
    return [
        LikenessLevel(rule, normalize_text(EXAMPLE_TEXT, rule), own | {"normalizer": rule.value}) for rule in Normalizer
    ]


def synthetic_log() -> Frequencies:
    weights = np.arange(1, SYNTHETIC_TEXTS + 1, dtype=np.float64) ** -ZIPF_EXPONENT
    said = np.maximum(1, np.rint(weights / weights.sum() * SYNTHETIC_RECORDS)).astype(np.int64)
    counts, texts = np.unique(said, return_counts=True)
    return Frequencies(counts, texts.astype(np.float64), float(SYNTHETIC_TEXTS), int(said.sum()))
