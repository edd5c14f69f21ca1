"""What annotation asks of whatever makes vectors of a project's records; the learner's featurisers answer."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from annotation.choices.catalogue import chosen_of
from privacy.choices import Choice, Kind


@dataclass(frozen=True)
class MakesVectors(Choice):
    """What makes vectors of records.

    Attributes
    ----------
    no_start : str
        Of what is found in the pool's records, at a price that the pool pays before anything else: what is said to a
        private start, which would come before it. Empty where each vector is made of its own record alone, for free.
    """

    kind: ClassVar[Kind] = Kind.FEATURES
    no_start: ClassVar[str] = ""


def no_start_before(settings: Mapping[str, Any]) -> str:
    """Say why nothing can start before a project's features are found in its pool; empty where they are not."""
    choice = chosen_of(Kind.FEATURES, settings)
    # The catalogue takes no other.
    assert choice is None or issubclass(choice, MakesVectors)
    return "" if choice is None else choice.no_start
