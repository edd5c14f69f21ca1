"""Channels: names that a manager points at released versions, moves, and rolls back, each time with a reason."""

import re

from django.contrib.auth.models import User
from django.db import transaction

from annotation.models import Project
from annotation.signals import project_event
from learner.errors import ChannelRefused, ReasonMissing
from learner.models import ChannelMove, ModelRelease, ReleaseState
from learner.pools import selectors
from learner.pools.selectors import CHANNEL
from privacy.wording import as_message, in_english


def move_channel(*, release: ModelRelease, channel: str, reason: str, actor: User) -> ChannelMove:
    with transaction.atomic():
        Project.objects.select_for_update(no_key=True).get(pk=release.project_id)
        return _moved(release, channel, reason, actor, rolled_back=False)


def roll_back_channel(*, project: Project, channel: str, reason: str, actor: User) -> ChannelMove:
    with transaction.atomic():
        Project.objects.select_for_update(no_key=True).get(pk=project.pk)
        before = _before(project, channel)
        if before is None:
            raise ChannelRefused(as_message("{channel} has no earlier version to roll back to.", channel=channel))
        return _moved(before, channel, reason, actor, rolled_back=True)


def _before(project: Project, channel: str) -> ModelRelease | None:
    """Follow the moves back: a roll back undoes the newest move that stands, and the next one the move before that."""
    standing: list[ModelRelease] = []
    moves = ChannelMove.objects.filter(project=project, channel=channel).select_related("release__project")
    for move in moves.order_by("pk"):
        if move.rolled_back:
            while standing and standing[-1] != move.release:
                standing.pop()
        else:
            standing.append(move.release)
    now = selectors.channel_release(project, channel)
    found = (one for one in reversed(standing) if one.state == ReleaseState.RELEASED and one != now)
    return next(found, None)


def _moved(release: ModelRelease, channel: str, reason: str, actor: User, *, rolled_back: bool) -> ChannelMove:
    if not re.fullmatch(CHANNEL, channel) or channel in selectors.OFFERED:
        raise ChannelRefused("A channel name has 2 to 30 lower-case letters and hyphens, and is not latest or main.")
    if not reason.strip():
        raise ReasonMissing("Give a reason; it is kept.")
    release.refresh_from_db(fields=["state"])
    if release.state != ReleaseState.RELEASED:
        raise ChannelRefused(in_english("Version {version} is not released.", version=release.version))
    move = ChannelMove.objects.create(
        project=release.project,
        channel=channel,
        release=release,
        reason=reason.strip()[:300],
        rolled_back=rolled_back,
        moved_by=actor,
    )
    project_event.send(
        sender=ChannelMove,
        project=release.project,
        event="channel",
        subject=f"move {move.pk}",
        facts={"channel": channel, "version": release.version, "reason": move.reason, "rolled_back": rolled_back},
    )
    return move
