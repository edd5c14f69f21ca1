"""Settings of a project as its rows are read: each by its name, typed, out of the configuration that stands."""

import uuid
from datetime import time
from decimal import Decimal
from typing import Any, ClassVar, Generic, NoReturn, TypeVar

from annotation.models.configurations import settings_in
from annotation.models.kinds import Aggregation
from privacy.json_values import read

T = TypeVar("T")


class Setting(Generic[T]):
    """A setting in the configuration document; `absent` is read without it, `wanted` is its type if JSON has none."""

    def __init__(self, absent: T, wanted: type | None = None) -> None:
        self.absent = absent
        self.type = wanted
        self.name = ""

    def __set_name__(self, owner: type["Settings"], name: str) -> None:
        self.name = name
        owner.absent = {**owner.absent, name: self.absent}

    def __get__(self, project: "Settings | None", owner: type[Any]) -> T:
        if project is None:
            return self  # type: ignore[return-value]  # Django looks at the class; nothing else does
        value: T = settings_in(project.configuration_id).get(self.name, self.absent)
        return value if self.type is None else read(value, self.type)

    def __set__(self, project: "Settings", value: T) -> NoReturn:
        raise AttributeError(f"{self.name} stands in the configuration document: store another version of it")


class Settings:
    absent: ClassVar[dict[str, Any]] = {}
    configuration_id: uuid.UUID

    gate_kind = Setting("")
    gate_k = Setting[int | None](None)
    gate_sampling_rate = Setting[float | None](None)
    gate_epsilon = Setting[float | None](None)
    gate_delta = Setting[float | None](None)
    gate_floor = Setting[int | None](None)
    texts_per_contributor = Setting[int | None](None)
    gate_window = Setting[int | None](None)
    normalizer = Setting("")

    selection = Setting("")
    repeat_votes = Setting(False)
    selection_epsilon = Setting(0.0)
    selection_rate = Setting[float | None](None)
    block_growth = Setting(7.0)
    block_hours = Setting(168)

    features = Setting("standard")
    feature_dimension = Setting(64)
    image_colours = Setting("grey")

    estimator = Setting("logistic")
    training_delta = Setting(0.0)

    update_policy = Setting("per_round")
    window_length = Setting[int | None](None)
    window_denominator = Setting[int | None](None)
    window_hours = Setting(24)
    windows_ahead = Setting(1)
    updates_per_release = Setting(1)
    drop_unselected = Setting(False)

    labels_per_record = Setting(1)
    none_allowed = Setting(False)

    labels_per_release = Setting(40)
    maximum_releases = Setting[int | None](None)

    question_kind = Setting("choose")
    round_size = Setting(40)
    overlap = Setting(1)
    overlap_limit = Setting[int | None](None)
    lease_seconds = Setting(600)
    confirm_answers = Setting(False)
    skips_to_set_aside = Setting(3)

    answers_per_person = Setting[int | None](None)
    answers_per_day = Setting[int | None](None)
    encounter_limit = Setting[int | None](None)
    quiet_from = Setting[time | None](None, time)
    quiet_until = Setting[time | None](None, time)

    gold_share = Setting(0.0)
    gold_minimum = Setting(10)
    gold_warn_below = Setting[float | None](None)
    gold_pause_below = Setting[float | None](None)
    aggregation = Setting(Aggregation.MAJORITY.value)
    reviewed = Setting("disputed")
    review_share = Setting(0.0)

    labels_limit = Setting[int | None](None)
    price_per_label = Setting[Decimal | None](None, Decimal)
    money_limit = Setting[Decimal | None](None, Decimal)
    currency = Setting("")
