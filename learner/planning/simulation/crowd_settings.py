"""What a simulated crowd's project is set to: the preset's own values, and those given in their place."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Self

import pyarrow as pa

from annotation.choices.catalogue import default_of, parameter_names
from annotation.choices.gates import gate_from, run_event
from annotation.choices.presets import PRESETS
from privacy.accounting.cost import Cost, Unit
from privacy.accounting.events import RandomizedAnswersEvent
from privacy.choices import Kind
from privacy.gate import KAnonymityGate
from privacy.normalizers import Normalizer, normalize_texts
from privacy.threshold_gate import ThresholdGate

PRESET = "voice-crowd"
# What the preset does not say of answers that are said at random. Training again costs nothing, and the sooner the
# model learns from what was said, the better are the next questions and the priors of their responses.
ANSWERS: Mapping[str, Any] = {
    "round_size": 20,
    "label_randomizer": "top_k",
    "labels_epsilon": 4.0,
    "labels_unit": "answer",
    "randomizations": 1,
    "questions_per_annotator": 1,
}


@dataclass(frozen=True, slots=True)
class CrowdSettings:
    """All settings of one simulation, by the names a project stores them under."""

    preset: Mapping[str, Any]

    @classmethod
    def of(cls, given: Mapping[str, str]) -> Self:
        """Return the preset with `given` in place of its own.

        Raises
        ------
        ValueError
            If a name is unknown, or a value cannot be read or is out of range.
        """
        values = _of_preset() | dict(ANSWERS)
        if unknown := sorted(set(given) - set(values)):
            raise ValueError(f"unknown settings {', '.join(unknown)}; there are {', '.join(sorted(values))}")
        for name, text in given.items():
            kind = type(values[name])
            try:
                values[name] = kind(text)
            except ValueError as error:
                raise ValueError(f"{name} must be of type {kind.__name__}, got {text!r}") from error
        settings = cls(values)
        settings._check()
        return settings

    def _check(self) -> None:
        if self.round_size < 1 or self.overlap < 1:
            raise ValueError(f"round_size and overlap must be >= 1, got {self.round_size} and {self.overlap}")
        if self.preset["label_randomizer"] not in ("top_k", "uniform"):
            raise ValueError(f"label_randomizer must be top_k or uniform, got {self.preset['label_randomizer']!r}")
        self.answers_event(2)
        self.gate(named=True)

    @property
    def round_size(self) -> int:
        """Questions of one round."""
        return int(self.preset["round_size"])

    @property
    def overlap(self) -> int:
        """Answers to one question."""
        return int(self.preset["overlap"])

    @property
    def randomizations(self) -> int:
        """How often one consensus is said."""
        return int(self.preset["randomizations"])

    @property
    def uses_prior(self) -> bool:
        """Whether what is said is drawn among the likeliest classes only."""
        return bool(self.preset["label_randomizer"] == "top_k")

    @property
    def epsilon_once(self) -> float:
        """What one randomisation may cost, so that all a unit can move stay within the account."""
        times = self.randomizations * int(self.preset["questions_per_annotator"])
        return float(self.preset["labels_epsilon"]) / times

    def answers_event(self, n_classes: int) -> RandomizedAnswersEvent:
        """Return the series event that pays for all answers."""
        return RandomizedAnswersEvent(
            self.epsilon_once,
            n_classes,
            self.preset["label_randomizer"],
            self.preset["labels_unit"],
            self.randomizations,
            int(self.preset["questions_per_annotator"]),
        )

    def gate(self, *, named: bool) -> KAnonymityGate | ThresholdGate:
        """Return the gate, for records where no contributors are named."""
        return gate_from(self._gate_settings(named=named))

    def _gate_settings(self, *, named: bool) -> Mapping[str, Any]:
        return self.preset if named else {**self.preset, "privacy_unit": "record"}

    def gate_cost(self, *, named: bool) -> tuple[Cost, Unit]:
        """Return what one upload costs through the gate, and for whom."""
        return run_event(self._gate_settings(named=named)).cost(), self.gate(named=named).unit

    def normalized(self, texts: Sequence[str]) -> list[str]:
        """Return texts in the form in which they are counted and shown."""
        normal = normalize_texts(pa.array(texts, pa.large_string()), Normalizer(self.preset["normalizer"]))
        return [str(text) for text in normal.to_pylist()]


def _of_preset() -> dict[str, Any]:
    """Return those of the preset's settings that a simulation reads: what describes its gate, and how many answer."""
    names = ("privacy_unit", Kind.GATE.key, *parameter_names(Kind.GATE), "overlap")
    values = {name: PRESETS[PRESET].defaults.get(name, default_of(name)) for name in names}
    return {name: value for name, value in values.items() if value is not None}
