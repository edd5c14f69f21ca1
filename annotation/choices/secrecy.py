"""Settings under which what is asked is secret, and the limits that such a choice cannot have."""

from collections.abc import Mapping
from typing import Any, Final

from annotation.choices.catalogue import chosen_of
from privacy.choices import Kind

# Whoever stops at one of these leaves one record unanswered because of another.
BINDING_LIMITS: Final = ("answers_per_person", "answers_per_day", "encounter_limit")


def hides_selection(settings: Mapping[str, Any]) -> bool:
    """Say whether ids, numbers and times of what is asked stay among those who see the records."""
    chosen = (chosen_of(kind, settings) for kind in (Kind.STRATEGY, Kind.POLICY))
    return any(choice is not None and choice.hides_selection for choice in chosen)
