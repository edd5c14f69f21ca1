"""Whether a project's model may start from labelled examples, as what is chosen says."""

from collections.abc import Mapping
from typing import Any

from annotation.choices.catalogue import chosen_of
from privacy.choices import Kind


def no_start_before(settings: Mapping[str, Any]) -> str:
    """Say why nothing can start before a project's features are found in its pool; empty where they are not."""
    choice = chosen_of(Kind.FEATURES, settings)
    return "" if choice is None else choice.no_start
