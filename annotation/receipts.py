"""The privacy receipt of a question: why somebody is shown it, and what protects whom, in plain numbers."""

import math
from dataclasses import dataclass

from annotation.models import Project
from privacy.selectors import guarantee

# Above this a factor says nothing to anybody that its epsilon does not.
LARGEST_FACTOR_SHOWN = 1000.0


@dataclass(frozen=True, slots=True)
class Receipt:
    """What the project's pool is promised: the limit of its account, not what is spent so far."""

    epsilon: float
    delta: float
    factor: float | None
    sampling_percent: float | None


def receipt_of(project: Project) -> Receipt:
    """Return the numbers behind every question of a project."""
    promised = guarantee(project.pool_account)
    factor = math.exp(min(promised.epsilon_limit, 700.0))
    rate = project.gate_sampling_rate
    return Receipt(
        epsilon=promised.epsilon_limit,
        delta=promised.delta_limit,
        factor=factor if factor <= LARGEST_FACTOR_SHOWN else None,
        sampling_percent=None if rate is None else 100 * rate,
    )
