"""Gates a project could have at one price, compared by the price alone: no record is looked at here."""

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache, lru_cache
from itertools import chain
from typing import Any, Final

import numpy as np

from annotation.choices.gate_base import gate_event
from annotation.choices.gates import GATE_FIELDS, gate_from
from privacy.accounting.cost import Unit
from privacy.gate import KAnonymityGate, ThresholdGate
from privacy.normalizers import Normalizer, normalize_text
from privacy.planning import PaperCell, Passing, frontier, paper_table, passing
from privacy.survey import Frequencies
from privacy.wording import as_plural_message

EXAMPLE_TEXT: Final = "Set an alarm for 7:30 on Monday!"
RATES: Final = (0.01, 0.02, 0.03, 0.05, 0.07, 0.1, 0.15, 0.2, 0.25, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9)
FLOOR: Final = 2
SMALLEST_DELTA: Final = 1e-12
# Below this, finding the smallest k takes longer than a page may.
SMALLEST_EPSILON_PER_TEXT: Final = 0.05
ZIPF_EXPONENT: Final = 1.1
SYNTHETIC_RECORDS: Final = 1_000_000
SYNTHETIC_TEXTS: Final = 60_000


@dataclass(frozen=True, slots=True)
class Offer:
    """A gate at the wanted price; `needed` is about how often a text must be said to pass it."""

    settings: dict[str, str | int | float | None]
    gate: KAnonymityGate | ThresholdGate
    needed: int

    @property
    def is_threshold(self) -> bool:
        """Tell the kinds apart."""
        return isinstance(self.gate, ThresholdGate)


def offers(epsilon: float, delta: float, *, unit: Unit, texts_per_contributor: int | None) -> list[Offer]:
    """Return the gates at (epsilon, delta) that no other beats, by rising k, the threshold gate last.

    Parameters
    ----------
    epsilon, delta : float
        Price of one upload; `epsilon` is at least `SMALLEST_EPSILON_PER_TEXT` for each text of the cap.
    unit : {"record", "contributor"}
        Whose presence is hidden.
    texts_per_contributor : int, optional
        Cap m, for the unit `contributor`.

    Raises
    ------
    ValueError
        If an argument is out of range.
    """
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
    shared = {"privacy_unit": unit, "texts_per_contributor": texts_per_contributor, "normalizer": "L1"}
    found = []
    for choice in frontier(epsilon, delta, texts_per_contributor=cap, rates=RATES):
        settings: dict[str, str | int | float | None] = {
            "gate_kind": "k_anonymity",
            "gate_k": choice.k,
            "gate_sampling_rate": choice.sampling_rate,
            "gate_epsilon": epsilon / cap,
        }
        found.append(Offer(settings, gate_from(settings | shared), math.ceil(choice.records_needed)))
    settings = {"gate_kind": "threshold", "gate_epsilon": epsilon, "gate_delta": delta, "gate_floor": FLOOR}
    noisy = gate_from(settings | shared)
    assert isinstance(noisy, ThresholdGate)
    return [*found, Offer(settings, noisy, needed_by(noisy, cap))]


def settings_of_gate(settings: Mapping[str, Any]) -> str:
    """Return what `offers_like` takes of a project's settings."""
    fields = {"gate_kind", "gate_epsilon", *chain(*GATE_FIELDS.values())}
    fields |= {"privacy_unit", "texts_per_contributor", "normalizer"}
    return json.dumps({field: settings.get(field) for field in sorted(fields)})


@lru_cache(maxsize=64)
def offers_like(settings: str) -> tuple[Offer, list[Offer]]:
    """Return a project's own gate and the gates at its price, from its declared settings as JSON.

    Raises
    ------
    ValueError
        If epsilon is too small for gates to be compared.
    """
    declared = json.loads(settings)
    gate = gate_from(declared)
    price = gate_event(gate, declared["gate_epsilon"]).cost()
    contributor = declared["privacy_unit"] == "contributor"
    cap = declared["texts_per_contributor"] if contributor else None
    unit: Unit = "contributor" if contributor else "record"
    delta = max(price.delta, SMALLEST_DELTA)
    own = Offer(declared, gate, needed_by(gate, cap or 1))
    return own, offers(price.epsilon, delta, unit=unit, texts_per_contributor=cap)


def gates_like(settings: Mapping[str, Any]) -> dict[str, Offer] | None:
    """Return a project's own gate and the best at its price; None where epsilon is too small to compare."""
    try:
        own, others = offers_like(settings_of_gate(settings))
    except ValueError:
        return None
    sampled = recommended([offer for offer in others if not offer.is_threshold])
    return {"own": own, "sampled": sampled, "noisy": others[-1], "best": recommended(others)}


def needed_by(gate: KAnonymityGate | ThresholdGate, cap: int) -> int:
    """Return about how often a text must be said to pass a gate."""
    if isinstance(gate, ThresholdGate):
        # Somebody who says m texts counts 1 / sqrt(m) for each of them.
        weight = math.sqrt(cap) if gate.noise == "weighted_gaussian" else 1.0
        return max(gate.floor, math.ceil(gate.event().threshold * weight))
    return math.ceil(gate.k / gate.sampling_rate)


def recommended(found: list[Offer]) -> Offer:
    """Return the gate that lets the rarest texts pass; of equal ones the sampled gate, whose k is literally true."""
    return min(found, key=lambda offer: (offer.needed, offer.is_threshold))


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
    """Return the settings of a project's gate by its kind."""
    return {field: settings[field] for field in ("gate_kind", "gate_epsilon", *GATE_FIELDS[settings["gate_kind"]])}


def levels(settings: Mapping[str, Any]) -> list[LikenessLevel]:
    """Return every rule, from the text as typed to its content words, for the gate that `settings` describe."""
    own = own_settings(settings)
    return [
        LikenessLevel(rule, normalize_text(EXAMPLE_TEXT, rule), own | {"normalizer": rule.value}) for rule in Normalizer
    ]


@dataclass(frozen=True, slots=True)
class PaperRow:
    """One line of the source's table: delta by both accountings for each k."""

    sampling_rate: float
    epsilon: float
    cells: list[PaperCell]


@cache
def paper_rows() -> list[PaperRow]:
    """Return the source's table by sampling rate and epsilon, computed once."""
    grouped: dict[tuple[float, float], list[PaperCell]] = {}
    for cell in paper_table():
        grouped.setdefault((cell.sampling_rate, cell.epsilon), []).append(cell)
    return [PaperRow(rate, epsilon, cells) for (rate, epsilon), cells in grouped.items()]


def synthetic_log() -> Frequencies:
    """Return how often texts are said in a made-up log of Zipf's law, which is about nobody."""
    weights = np.arange(1, SYNTHETIC_TEXTS + 1, dtype=np.float64) ** -ZIPF_EXPONENT
    said = np.maximum(1, np.rint(weights / weights.sum() * SYNTHETIC_RECORDS)).astype(np.int64)
    counts, texts = np.unique(said, return_counts=True)
    return Frequencies(counts, texts.astype(np.float64), float(SYNTHETIC_TEXTS), int(said.sum()))
