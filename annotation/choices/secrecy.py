"""Settings under which what is asked is secret, and the limits that such a choice cannot have."""

from collections.abc import Mapping
from typing import Any, Final

# Whoever stops at one of these leaves one record unanswered because of another.
BINDING_LIMITS: Final = ("answers_per_person", "answers_per_day", "encounter_limit")


def hides_selection(settings: Mapping[str, Any]) -> bool:
    """Say whether ids, numbers and times of what is asked stay among those who see the records."""
    return settings.get("selection") == "secret_sample" or settings.get("update_policy") == "flsw_hidden"
