"""Views of the table of questions that managers keep under a name, for themselves or for all managers."""

from collections.abc import Mapping

from django.contrib.auth.models import User
from django.db import transaction
from django.db.models import Q, QuerySet

from annotation import access
from annotation.errors import InvalidConfiguration
from annotation.models import Project
from annotation.models.marks import SavedView
from privacy.wording import as_message

MAX_VIEWS = 50
LONGEST_NAME = 60
# What was searched for may stand in a record; an address may hold it, a row that outlives the record may not.
NOT_KEPT = ("text", "before")


def views_for(project: Project, user_id: int | None) -> QuerySet[SavedView]:
    """Return the views a manager may choose: their own, and what others share."""
    mine = Q(owner=user_id) | Q(shared=True)
    return SavedView.objects.filter(mine, project=project).select_related("owner").order_by("name", "pk")


def keep_view(*, project: Project, owner: User, name: str, chosen: Mapping[str, str], shared: bool) -> SavedView:
    """Keep what was chosen under a name; the same name again takes the place of the earlier view."""
    name = " ".join(name.split())
    if not name or len(name) > LONGEST_NAME:
        raise InvalidConfiguration(as_message("A view's name has 1 to {most} characters.", most=LONGEST_NAME))
    kept = {key: value for key, value in chosen.items() if key not in NOT_KEPT and value}
    with transaction.atomic():
        access.refuse_if_closed(Project.objects.select_for_update(no_key=True).get(pk=project.pk))
        own = SavedView.objects.filter(project=project, owner=owner)
        if not own.filter(name=name).exists() and own.count() >= MAX_VIEWS:
            raise InvalidConfiguration(
                as_message("One person keeps at most {most} views of a project.", most=MAX_VIEWS)
            )
        view, _created = SavedView.objects.update_or_create(
            project=project, owner=owner, name=name, defaults={"chosen": kept, "shared": shared}
        )
    return view


def drop_view(*, view: SavedView) -> None:
    """Forget a view; its address still works for whoever has it."""
    view.delete()
