"""Receipt of a question: why somebody is shown it, and what protects whom, in plain numbers."""

import math
from dataclasses import dataclass

from annotation.choices.gates import gate_choice, unit_of
from annotation.models import Oracle, Project
from privacy.ledger.selectors import promise

# Above this a factor says nothing to anybody that its epsilon does not.
LARGEST_FACTOR_SHOWN = 1000.0


@dataclass(frozen=True, slots=True)
class Receipt:
    """Promise to the project's pool: the limit of its account, not what is spent so far."""

    epsilon: float
    delta: float
    factor: float | None
    # Why a text of a crowd passed; empty where annotators see records.
    why: str
    # Whose answers the account of a crowd's answers protects; empty where they are declared not to be secret.
    answers_unit: str = ""


def receipt_of(project: Project) -> Receipt:
    epsilon, delta = promise(project.pool_account)
    factor = math.exp(min(epsilon, 700.0))
    gated = project.oracle == Oracle.CROWD
    return Receipt(
        epsilon=epsilon,
        delta=delta,
        factor=factor if factor <= LARGEST_FACTOR_SHOWN else None,
        why=gate_choice(project.settings).why(unit_of(project.settings)) if gated else "",
        answers_unit=project.labels_account.unit if project.labels_account is not None else "",
    )
