"""Chance that repeats: tests draw the same coins and noise in every run, so none fails by bad luck.

Tests under `tests/statistical`, and those marked `real_chance`, draw from the operating system and state how often
they fail by chance. So do the processes that journeys and faults start.
"""

import threading
import zlib
from collections.abc import Callable

import numpy as np
import pytest

from privacy.mechanisms import discrete
from privacy.mechanisms.randomness import SecureRandom, SimulationRandom


def let_chance_repeat(patch: pytest.MonkeyPatch, name: str) -> None:
    """Seed the coins, the gate's keys and the noise of this process by the test's name."""
    source, lock = SimulationRandom(zlib.crc32(name.encode())), threading.Lock()

    def words(_secure: SecureRandom, count: int) -> np.ndarray:
        with lock:
            return source.words(count)

    def seeded(
        noise: type[discrete.DiscreteLaplace] | type[discrete.DiscreteGaussian],
    ) -> Callable[[float], Callable[[list[int]], list[int]]]:
        def measurement(scale: float) -> Callable[[list[int]], list[int]]:
            def draw(counts: list[int]) -> list[int]:
                with lock:
                    return noise(scale).release(np.array(counts, dtype=np.int64), rng=source).tolist()

            return draw

        return measurement

    patch.setattr(SecureRandom, "words", words)
    patch.setattr(discrete, "_exact_laplace", seeded(discrete.DiscreteLaplace))
    patch.setattr(discrete, "_exact_gaussian", seeded(discrete.DiscreteGaussian))
