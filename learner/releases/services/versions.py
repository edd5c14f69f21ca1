"""Taking a released version back, and a manager's word for one that a constant beats."""

from django.contrib.auth.models import User
from django.db import transaction

from annotation.signals import project_event
from learner.errors import NotReleased, ReasonMissing
from learner.models import Endorsement, ModelRelease, ReleaseState
from privacy.wording import in_english


def retire_release(*, release: ModelRelease, reason: str) -> ModelRelease:
    if not reason.strip():
        raise ReasonMissing("Give a reason; it is kept.")
    with transaction.atomic():
        if ModelRelease.objects.select_for_update(no_key=True).get(pk=release.pk).state == ReleaseState.RETIRED:
            raise NotReleased(in_english("Version {version} is retired already.", version=release.version))
        release.state = ReleaseState.RETIRED
        release.retired_reason = reason.strip()[:300]
        release.save(update_fields=["state", "retired_reason"])
        project_event.send(
            sender=ModelRelease,
            project=release.project,
            event="retired",
            subject=f"version {release.version}",
            facts={"version": release.version, "reason": release.retired_reason},
        )
    return release


def endorse_release(*, release: ModelRelease, reason: str, actor: User) -> Endorsement:
    """Offer a release as `latest` although it does not beat a constant on public examples."""
    if not reason.strip():
        raise ReasonMissing("Give a reason; it is kept.")
    return Endorsement.objects.get_or_create(
        release=release, defaults={"reason": reason.strip()[:300], "endorsed_by": actor}
    )[0]
