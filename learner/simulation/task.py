"""One labelled public task to simulate a project on: records, answers, a held-out test set and what was declared."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType

import numpy as np
from numpy.typing import NDArray

from learner.estimators.descriptions import ClassDescription

HELD_OUT_SHARE = 0.2


@dataclass(frozen=True, slots=True)
class SimulationTask:
    texts: tuple[str, ...]
    labels: NDArray[np.int64]
    test_texts: tuple[str, ...]
    test_labels: NDArray[np.int64]
    classes: tuple[str, ...]
    contributors: tuple[str, ...] | None = None
    rows: NDArray[np.generic] | None = None
    test_rows: NDArray[np.generic] | None = None
    descriptions: Mapping[str, ClassDescription] = field(default_factory=lambda: MappingProxyType({}))
    settings: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}))
    label_counts: tuple[int, ...] = (100,)
    seeds: int = 1
    first_seed: int = 0

    def __post_init__(self) -> None:
        if len(self.classes) < 2 or len(set(self.classes)) != len(self.classes):
            raise ValueError(f"classes must be distinct, at least two, got {len(self.classes)}")
        for records, rows, labels in (
            (self.texts, self.rows, self.labels),
            (self.test_texts, self.test_rows, self.test_labels),
        ):
            if (len(records) if rows is None else len(rows)) != len(labels):
                raise ValueError(f"records and labels differ in number: {len(records)} and {len(labels)}")
            if len(labels) and not 0 <= labels.min() <= labels.max() < len(self.classes):
                raise ValueError("labels must be places in classes")
        if self.contributors is not None and len(self.contributors) != len(self.labels):
            raise ValueError(f"contributors must be one a record, got {len(self.contributors)}")
        if unknown := sorted(set(self.descriptions) - set(self.classes)):
            raise ValueError(f"descriptions of classes that do not exist: {unknown}")
        if self.seeds < 1 or not self.label_counts or list(self.label_counts) != sorted(set(self.label_counts)):
            raise ValueError("seeds must be >= 1 and label_counts rising, at least one")

    @property
    def repetitions(self) -> range:
        return range(self.first_seed, self.first_seed + self.seeds)

    @property
    def n_records(self) -> int:
        return len(self.labels)


def held_out(n_records: int, *, seed: int = 0) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    if n_records < 2:
        raise ValueError(f"at least two records are needed to hold some out, got {n_records}")
    drawn = np.random.default_rng(seed).permutation(n_records)
    n_test = max(1, round(HELD_OUT_SHARE * n_records))
    return np.sort(drawn[n_test:]), np.sort(drawn[:n_test])
