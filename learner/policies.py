"""When the next training is due, decided from public counts of labels alone."""

from enum import StrEnum


class UpdatePolicy(StrEnum):
    """The schedules that exist.

    PER_ROUND: whenever a fixed number of new labels has come in.
    DOUBLING: whenever labels have doubled since the last release, so that T releases need 2**(T-1) times the first's
    labels and an account that pays for every training lasts long.
    """

    PER_ROUND = "per_round"
    DOUBLING = "doubling"


def labels_for_next_release(policy: UpdatePolicy, *, labels_at_last_release: int, labels_per_release: int) -> int:
    """Return how many labels in total make the next release due.

    Parameters
    ----------
    policy : UpdatePolicy
        The schedule.
    labels_at_last_release : int
        Labels the last release was trained on, 0 where there is none.
    labels_per_release : int
        Labels of the first release and, per round, of every further one, >= 1.

    Raises
    ------
    ValueError
        If a count is out of range.
    """
    if labels_at_last_release < 0:
        raise ValueError(f"labels_at_last_release must be >= 0, got {labels_at_last_release}")
    if labels_per_release < 1:
        raise ValueError(f"labels_per_release must be >= 1, got {labels_per_release}")
    if UpdatePolicy(policy) is UpdatePolicy.DOUBLING:
        return max(labels_per_release, 2 * labels_at_last_release)
    return labels_at_last_release + labels_per_release


def labels_needed(
    policy: UpdatePolicy, *, labels_now: int, labels_at_last_release: int, labels_per_release: int
) -> int:
    """Return how many more labels make the next release due, 0 where it is due already."""
    target = labels_for_next_release(
        policy, labels_at_last_release=labels_at_last_release, labels_per_release=labels_per_release
    )
    return max(0, target - labels_now)


def next_release_due(
    policy: UpdatePolicy, *, labels_now: int, labels_at_last_release: int, labels_per_release: int
) -> bool:
    """Say whether enough labels have come in for the next release."""
    missing = labels_needed(
        policy,
        labels_now=labels_now,
        labels_at_last_release=labels_at_last_release,
        labels_per_release=labels_per_release,
    )
    return missing == 0


def releases_within(policy: UpdatePolicy, *, labels: int, labels_per_release: int) -> int:
    """Return how many releases `labels` labels, coming in one by one, lead to; for planning a budget."""
    releases, used = 0, 0
    while True:
        used = labels_for_next_release(policy, labels_at_last_release=used, labels_per_release=labels_per_release)
        if used > labels:
            return releases
        releases += 1
