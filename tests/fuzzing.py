"""Length of fuzzing: a bounded, repeatable look in every test run, a long one with `make fuzz`."""

import os
from typing import Any

from hypothesis import HealthCheck, settings

# `make fuzz` sets it: how many times as many examples, drawn anew each time.
TIMES = int(os.environ.get("DPAL_FUZZ", "0"))


def fuzz(examples: int, **more: Any) -> settings:
    """Return the settings of a fuzz with so many examples in an ordinary run."""
    return settings(
        max_examples=examples * max(1, TIMES),
        derandomize=not TIMES,
        deadline=None,
        database=None,
        suppress_health_check=list(HealthCheck),
        **more,
    )
