"""Tags that managers put on questions and take off again: they tell managers something and change nothing else."""

from collections.abc import Sequence

from django.db import transaction

from annotation import access
from annotation.errors import InvalidConfiguration
from annotation.models import Project, Query, QueryState
from annotation.models.marks import Tag, Tagged
from privacy.wording import as_message

MAX_TAGS = 100
LONGEST_TAG = 40
# Checks hide among the questions, and what is unasked is not a question yet.
UNTAGGED = (QueryState.UNASKED, QueryState.GOLD)


def tag_chosen(*, project: Project, query_ids: Sequence[int], name: str) -> list[int]:
    """Put a tag on questions; return those that did not have it."""
    name = _readable(name)
    with transaction.atomic():
        # One after the other, so that the last question of a tag does not lose it while another gets it.
        access.refuse_if_closed(Project.objects.select_for_update(no_key=True).get(pk=project.pk))
        known = Tag.objects.filter(project=project)
        tag = known.filter(name=name).first()
        wanted = Query.objects.filter(project=project, pk__in=query_ids, emptied=False).exclude(state__in=UNTAGGED)
        # Whoever empties a question takes its row first, and its tags after that.
        asked = list(wanted.select_for_update(no_key=True).order_by("pk").values_list("pk", flat=True))
        had = set(Tagged.objects.filter(tag=tag, query__in=asked).values_list("query", flat=True)) if tag else set()
        new = [pk for pk in asked if pk not in had]
        if not new:
            return []
        if tag is None:
            if known.count() >= MAX_TAGS:
                raise InvalidConfiguration(as_message("A project has at most {most} tags.", most=MAX_TAGS))
            tag = Tag.objects.create(project=project, name=name)
        Tagged.objects.bulk_create([Tagged(tag=tag, query_id=pk) for pk in new])
    return new


def untag_chosen(*, project: Project, query_ids: Sequence[int], name: str) -> list[int]:
    """Take a tag off questions; return those that had it. A tag that no question has is gone."""
    name = _readable(name)
    with transaction.atomic():
        access.refuse_if_closed(Project.objects.select_for_update(no_key=True).get(pk=project.pk))
        having = Tagged.objects.filter(tag__project=project, tag__name=name, query__in=query_ids)
        found = sorted(having.values_list("query", flat=True))
        having.delete()
        Tag.objects.filter(project=project, questions=None).delete()
    return found


def _readable(name: str) -> str:
    name = " ".join(name.split())
    if not name or len(name) > LONGEST_TAG:
        raise InvalidConfiguration(as_message("A tag has 1 to {most} characters.", most=LONGEST_TAG))
    return name
