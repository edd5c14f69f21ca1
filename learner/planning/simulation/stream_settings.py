"""What a simulated stream is set to: the preset's own values, and those given in their place."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Self, cast

from annotation.choices.catalogue import chosen_of
from annotation.choices.label_types.catalogue import label_type_of
from annotation.choices.label_types.choose import ChooseOne
from annotation.choices.label_types.learning import learns_each_answer
from annotation.choices.policies.catalogue import policy_choice_of
from annotation.choices.policies.updates import BatchPolicy
from annotation.choices.presets import PRESETS, broken_rules
from learner.estimators.choice import INTERCEPT_SCALING, EstimatorChoice, Shape
from learner.estimators.online_choices import OnlineChoice
from learner.estimators.streaming import StreamingLinearClassifier
from learner.features.base import Featurizer
from learner.features.choice import FeaturesChoice, RecordShape
from learner.planning.simulation.given import names_of, with_given
from learner.strategies.screen import Screen, ScreenChoice
from privacy.accounting.event import Event
from privacy.accounting.events import StreamEvent
from privacy.choices import Kind
from privacy.mechanisms.randomness import RandomSource
from privacy.wording import joined_rules

# What is played as it is chosen.
PLAYED = (Kind.STRATEGY, Kind.ESTIMATOR, Kind.POLICY, Kind.FEATURES, Kind.STREAM, Kind.RELEASES)
# Prices of one update, and the limits they are part of.
PRICE: Mapping[str, str] = {"training_epsilon": "pool_epsilon", "training_delta": "pool_delta"}
# What a rounding may add to a price that is planned to be the whole limit.
WHOLE = 1 - 1e-9


@dataclass(frozen=True, slots=True)
class StreamSettings:
    """All settings of one simulated stream, by the names a project stores them under.

    Attributes
    ----------
    values : mapping of str to object
        What a project of the preset would hold.
    n_classes : int
        Declared classes.
    """

    values: Mapping[str, Any]
    n_classes: int

    @classmethod
    def of(cls, preset: str, given: Mapping[str, str], *, classes: tuple[str, ...], data_kind: str) -> Self:
        """Return the preset with `given` in place of its own; what is given as nothing is left out.

        Raises
        ------
        ValueError
            If a name is unknown, a value cannot be read, or the whole breaks a rule.
        """
        values = dict(PRESETS[preset].defaults) | {"oracle": PRESETS[preset].oracle}
        values |= {"classes": list(classes), "data_kind": data_kind}
        values = with_given(values, given, {"normalizer", *PRICE.values(), *names_of(*PLAYED)})
        if broken := broken_rules(values):
            raise ValueError(str(joined_rules(broken)))
        return cls(values, len(classes))

    @property
    def asks_all(self) -> bool:
        """Whether every record is asked about, so that there is nothing to choose."""
        return self.screen(0) is None

    @property
    def confirms(self) -> bool:
        """Whether people confirm or reject guesses, and sums learn from that."""
        kind = label_type_of(self.values.get("question_kind", ChooseOne.name), self.values)
        return kind.about_guess and self._by_batches

    @property
    def ahead(self) -> int:
        """Batches that may wait for answers."""
        return int(self.values.get("windows_ahead", 1))

    @property
    def _by_batches(self) -> bool:
        return not learns_each_answer(self.values)

    def featurizer(self) -> Featurizer:
        """Return what makes vectors of texts."""
        choice = chosen_of(Kind.FEATURES, {"features": "standard", **self.values})
        assert choice is not None
        shape = RecordShape("text", int(self.values["feature_dimension"]), self.values.get("normalizer") or "L1")
        return cast(FeaturesChoice, choice.of(self.values)).featurizer(shape)

    def screen(self, updates: int) -> Screen | None:
        """Return what decides about a record after so many updates, None where all are asked about."""
        choice = chosen_of(Kind.STRATEGY, self.values)
        assert choice is not None
        found = choice.of(self.values)
        return found.in_stream(updates) if isinstance(found, ScreenChoice) else None

    def policy(self) -> BatchPolicy:
        """Return when answers become an update."""
        return policy_choice_of(self.values).batches()

    def learner(self, rng: RandomSource, *, whole: bool = False) -> StreamingLinearClassifier:
        """Return the learner, not started; where batches make updates, one may cost the `whole` of the limit."""
        classes = list(range(self.n_classes))
        price = {name: self.values[name] for name in PRICE if name in self.values}
        if whole:
            price = {name: self.values[PRICE[name]] * WHOLE for name in price}
        choice = chosen_of(Kind.ESTIMATOR, self.values)
        assert choice is not None
        if not issubclass(choice, OnlineChoice):
            shape = Shape(classes, 1.0, INTERCEPT_SCALING)
            learner = cast(EstimatorChoice, choice.of({**self.values, **price})).estimator(shape)
            if not isinstance(learner, StreamingLinearClassifier):
                raise ValueError(f"{Kind.ESTIMATOR.key}: {choice.name} makes no updates of batches")
            learner.set_params(random_state=rng)
            return learner
        return choice.of(self.values).learner(classes, random_state=rng)

    def event(self, learner: StreamingLinearClassifier, *, n_features: int, chosen: bool = True) -> Event:
        """Return what the whole stream is charged; without being `chosen` records are asked about by chance alone.

        Raises
        ------
        ValueError
            If it costs more than the account holds.
        """
        update = learner.event_for(n_features)
        event: Event = update
        if self._by_batches:
            screen, policy = (self.screen(0) if chosen else None), self.policy()
            high, low = (1.0, 1.0) if screen is None else screen.rates
            event = StreamEvent(high, low, update, policy.selection_visible, policy.schedule)
        cost = event.cost()
        if cost.epsilon > self.values["pool_epsilon"] or cost.delta > self.values["pool_delta"]:
            raise ValueError(f"the stream costs ({cost.epsilon}, {cost.delta}), more than the account holds")
        return event
