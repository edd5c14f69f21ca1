"""What a simulated crowd's project is set to: the preset's own values, and those given in their place."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Self, cast

import pyarrow as pa

from annotation.choices.answers_unit import chosen_randomizer
from annotation.choices.catalogue import chosen_of
from annotation.choices.gates import gate_from, run_event
from annotation.choices.presets import PRESETS
from learner.planning.simulation.given import names_of, with_given
from learner.strategies.base import QueryStrategy, StrategyChoice
from privacy.accounting.cost import Cost, Unit
from privacy.accounting.events import AnswersEvent
from privacy.choices import Kind
from privacy.gate.counting import CountingGate
from privacy.gate.normalizers import Normalizer, normalize_texts
from privacy.wording import joined_rules

PRESET = "voice-crowd"
# What is played as it is chosen; how answers are learned from, the preset says.
PLAYED = (Kind.GATE, Kind.RANDOMIZER, Kind.STRATEGY)
# Of these as much is there as everything costs.
LIMITS = ("pool_epsilon", "pool_delta", "labels_epsilon")


@dataclass(frozen=True, slots=True)
class CrowdSettings:
    """All settings of one simulation, by the names a project stores them under."""

    values: Mapping[str, Any]

    @classmethod
    def of(cls, given: Mapping[str, str]) -> Self:
        """Return the preset with `given` in place of its own.

        Raises
        ------
        ValueError
            If a name is unknown, a value cannot be read, or one breaks a rule of what is chosen.
        """
        preset = PRESETS[PRESET]
        values = {name: value for name, value in preset.defaults.items() if name not in LIMITS}
        values |= {"oracle": preset.oracle, "data_kind": preset.data_kinds[0]}
        values = with_given(values, given, {"privacy_unit", "overlap", "round_size", *names_of(*PLAYED)})
        broken: dict[str, str] = {}
        for kind in PLAYED:
            choice = chosen_of(kind, values)
            assert choice is not None
            broken |= choice.broken_by(values)
        if broken:
            raise ValueError(str(joined_rules(broken)))
        settings = cls(values)
        settings.answers_event(2)
        if values.get("repeat_votes"):
            raise ValueError("repeat_votes: no question is asked again here")
        return settings

    @property
    def round_size(self) -> int:
        """Questions of one round."""
        return int(self.values["round_size"])

    @property
    def overlap(self) -> int:
        """Answers to one question."""
        return int(self.values["overlap"])

    @property
    def uses_prior(self) -> bool:
        """Whether what is said is drawn among the likeliest classes only."""
        return self.answers_event(2).uses_prior

    @property
    def epsilon_once(self) -> float:
        """What one randomisation may cost, so that all a unit can move stay within the account."""
        return self.answers_event(2).epsilon

    def answers_event(self, n_classes: int) -> AnswersEvent:
        """Return the series event that pays for all answers.

        Raises
        ------
        ValueError
            If answers are declared to be no secret.
        """
        randomizer = chosen_randomizer(self.values)
        event = None if randomizer is None else randomizer.of(self.values).event(n_classes=n_classes)
        if event is None:
            raise ValueError(f"{Kind.RANDOMIZER.key}: only answers that are randomised are simulated")
        return event

    def strategy(self, *, private: bool) -> QueryStrategy:
        """Return what chooses the questions, whose answers are randomised where they are `private`."""
        choice = chosen_of(Kind.STRATEGY, self.values)
        assert choice is not None
        chosen = cast(StrategyChoice, choice.of(self.values))
        return chosen.behind_randomness(self.epsilon_once) if private else chosen.strategy()

    def gate(self, *, named: bool) -> CountingGate:
        """Return the gate, for records where no contributors are named."""
        return gate_from(self._gate_settings(named=named))

    def _gate_settings(self, *, named: bool) -> Mapping[str, Any]:
        return self.values if named else {**self.values, "privacy_unit": "record"}

    def gate_cost(self, *, named: bool) -> tuple[Cost, Unit]:
        """Return what one upload costs through the gate, and for whom."""
        return run_event(self._gate_settings(named=named)).cost(), self.gate(named=named).unit

    def normalized(self, texts: Sequence[str]) -> list[str]:
        """Return texts in the form in which they are counted and shown."""
        normal = normalize_texts(pa.array(texts, pa.large_string()), Normalizer(self.values["normalizer"]))
        return [str(text) for text in normal.to_pylist()]
