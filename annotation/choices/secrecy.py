"""Settings under which what is asked is secret, and the limits that such a choice cannot have."""

from collections.abc import Mapping
from typing import Any, Final

from annotation.choices.policies.catalogue import policy_hides_selection
from annotation.choices.selections import asks_in_secret

# Whoever stops at one of these leaves one record unanswered because of another.
BINDING_LIMITS: Final = ("answers_per_person", "answers_per_day", "encounter_limit")


def hides_selection(settings: Mapping[str, Any]) -> bool:
    """Say whether ids, numbers and times of what is asked stay among those who see the records."""
    return asks_in_secret(settings) or policy_hides_selection(settings)
