"""Gates a project could have at one price, compared by the price alone: no record is looked at here."""

import math
from dataclasses import dataclass
from typing import Final

import numpy as np

from annotation.presets import gate_from
from privacy.accounting.cost import Unit
from privacy.gate import KAnonymityGate, ThresholdGate
from privacy.planning import Passing, frontier, passing
from privacy.survey import Frequencies

RATES: Final = (0.01, 0.02, 0.03, 0.05, 0.07, 0.1, 0.15, 0.2, 0.25, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9)
FLOOR: Final = 2
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
        raise ValueError(f"epsilon must be at least {SMALLEST_EPSILON_PER_TEXT} for each of {cap} texts, got {epsilon}")
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
    # Somebody who says m texts counts 1 / sqrt(m) for each of them.
    weight = math.sqrt(cap) if noisy.noise == "weighted_gaussian" else 1.0
    return [*found, Offer(settings, noisy, math.ceil(noisy.event().threshold * weight))]


def recommended(found: list[Offer]) -> Offer:
    """Return the gate that lets the rarest texts pass; of equal ones the sampled gate, whose k is literally true."""
    return min(found, key=lambda offer: (offer.needed, offer.is_threshold))


def passing_shares(found: list[Offer], frequencies: Frequencies) -> list[Passing]:
    """Return what each gate would let pass; as private as what the frequencies were counted from."""
    return [passing(frequencies, offer.gate) for offer in found]


def synthetic_log() -> Frequencies:
    """Return how often texts are said in a made-up log of Zipf's law, which is about nobody."""
    weights = np.arange(1, SYNTHETIC_TEXTS + 1, dtype=np.float64) ** -ZIPF_EXPONENT
    said = np.maximum(1, np.rint(weights / weights.sum() * SYNTHETIC_RECORDS)).astype(np.int64)
    counts, texts = np.unique(said, return_counts=True)
    return Frequencies(counts, texts.astype(np.float64), float(SYNTHETIC_TEXTS), int(said.sum()))
