"""Catalogue of update policies; a further one joins by one line."""

from collections.abc import Mapping
from typing import Any

from annotation.choices.catalogue import chosen_of
from annotation.choices.policies.base import PolicyChoice
from annotation.choices.policies.fixed_batches import Batches
from annotation.choices.policies.hidden_windows import HiddenWindows
from annotation.choices.policies.per_round import PerRound
from privacy.choices import Kind

POLICIES: tuple[type[PolicyChoice], ...] = (PerRound, HiddenWindows, Batches)


def chosen_policy(settings: Mapping[str, Any]) -> type[PolicyChoice] | None:
    """Return the policy that settings name, per round where they name none; None where it is unknown."""
    found = chosen_of(Kind.POLICY, {Kind.POLICY.key: PerRound.name, **settings})
    return found if found is not None and issubclass(found, PolicyChoice) else None


def policy_choice_of(settings: Mapping[str, Any]) -> PolicyChoice:
    found = chosen_policy(settings)
    if found is None:
        raise ValueError(f"nothing is learned by {settings.get(Kind.POLICY.key)!r}")
    return found.of(settings)


def labels_of_first_model(settings: Mapping[str, Any]) -> int:
    """Return how many questions must be done before the first model of a pool is trained by itself."""
    policy, each = policy_choice_of(settings), settings["labels_per_release"]
    return policy.labels_needed(labels_now=0, labels_at_last_release=0, labels_per_release=each)


def policy_hides_selection(settings: Mapping[str, Any]) -> bool:
    """Say whether by its policy alone nobody outside learns what a project asks about."""
    policy = chosen_policy(settings)
    return policy is not None and policy.hides_selection
