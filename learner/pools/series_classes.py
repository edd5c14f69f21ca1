"""Other classes for a project with secret blocks: its series goes on, or the classes stay."""

from collections.abc import Sequence
from typing import Any

from annotation.choices.refusals import refuse_broken
from annotation.models import Project
from learner.pools import secret_selectors
from privacy.accounting.events import SecretBlockEvent
from privacy.wording import say


def refuse_leaving_series(*, project: Project, before: Sequence[str], **_signal: Any) -> None:
    """Refuse classes with which the next block costs more than the series gives it; nothing without a series.

    Such a training would be charged as if nobody had kept its block secret.
    """
    if not secret_selectors.labels_in_secret(project) or len(before) == len(project.classes):
        return
    if not secret_selectors.has_series(project):
        return
    # A series gives each of its blocks the same, so the last one speaks for those to come.
    last = secret_selectors.n_blocks(project)
    if not isinstance(secret_selectors.release_event(project, block=last), SecretBlockEvent):
        refuse_broken(
            {
                "classes": say(
                    "The series of secret blocks was paid for with {n} classes, and a training on another number would "
                    "cost more than it gives a block. A slightly smaller epsilon of one training makes room.",
                    n=len(before),
                )
            }
        )
