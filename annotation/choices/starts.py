"""Features that are found in the pool's records, at a price that the pool pays before anything else."""

from collections.abc import Mapping
from typing import Any, ClassVar, Protocol, runtime_checkable

from annotation.choices.catalogue import chosen_of
from privacy.choices import Kind


@runtime_checkable
class FoundInPool(Protocol):
    """A choice of features that are found in the pool; its price is declared as `features_epsilon`.

    Attributes
    ----------
    no_start : str
        Refusal of a start from labelled examples, which would come before the features.
    """

    no_start: ClassVar[str]

    def finding(self, shape: Any) -> Any:
        """Return the `Finding` of the features in records of a shape."""

    def found(self, shape: Any, released: list[Any]) -> Any:
        """Return the featuriser with what was found."""


def no_start_before(settings: Mapping[str, Any]) -> str:
    """Say why nothing can start before a project's features are found in its pool; empty where they are not."""
    choice = chosen_of(Kind.FEATURES, settings)
    return choice.no_start if isinstance(choice, FoundInPool) else ""
