"""Progress of people who came by a crowd platform."""

from django.contrib.auth.models import User
from django.utils import timezone

from annotation.errors import NotMember
from annotation.models import Assignment, AssignmentState, Membership, Project, Role
from annotation.models.joining import CrowdParticipant
from annotation.questions.services import queue


def answers_of(participant: CrowdParticipant) -> int:
    answered = Assignment.objects.filter(
        annotator=participant.user_id,
        project=participant.link.project_id,
        state=AssignmentState.LABELLED,
        finished_at__gte=participant.created_at,
    )
    return answered.count()


def is_done(participant: CrowdParticipant) -> bool:
    return answers_of(participant) >= participant.link.answers_wanted


def complete(*, participant: CrowdParticipant) -> bool:
    if participant.completed_at is not None:
        return True
    project = participant.link.project
    member = Membership.objects.filter(project=project, user=participant.user_id, role=Role.ANNOTATOR).first()
    if member is None or member.paused_at is not None:
        return False
    if not is_done(participant) and queue.claim_next(project=project, user=participant.user) is not None:
        return False
    participant.completed_at = timezone.now()
    participant.save(update_fields=["completed_at"])
    return True


def own_participation(*, participant_id: int | None, user: User, project: Project) -> CrowdParticipant:
    """Return the participation this session began with, if it is the person's own."""
    found = CrowdParticipant.objects.select_related("link__project").filter(
        pk=participant_id or 0, user=user, link__project=project
    )
    participant = found.first()
    if participant is None:
        raise NotMember("Come by the platform's link first.")
    # The process of the label pages knows whoever asks, and nobody by their id.
    participant.user = user
    return participant
