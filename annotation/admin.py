"""Administration pages: roles of people can be changed here; records, texts and answers are not shown."""

from django.contrib import admin
from django.db.models import Model, QuerySet
from django.http import HttpRequest

from annotation.models import ApiToken, Dataset, GateRun, Job, Label, Membership, Project, Role
from annotation.models.history import Action, ProjectChange
from annotation.models.retention import Deletion, Forgetting, Retention
from annotation.people.identity import person_of
from annotation.people.services import limits, members
from privacy.ledger.admin import show


@admin.register(Membership)
class MembershipAdmin(admin.ModelAdmin):  # type: ignore[type-arg]  # as above
    list_display = ("user", "role", "project", "created_at")
    list_filter = ("role", "project")
    list_select_related = ("user", "project")
    autocomplete_fields = ("user",)
    fields = ("project", "user", "role")

    def has_change_permission(self, request: HttpRequest, obj: Model | None = None) -> bool:
        """A role is given and taken, never turned into somebody else's."""
        return False

    def save_model(self, request: HttpRequest, obj: Membership, form: object, change: bool) -> None:
        """Give the role as the people page does; to what a manager has asked for, this is another person's word."""
        asked = limits.waiting_appointment(project=obj.project, user=obj.user) if obj.role == Role.MANAGER else None
        if asked is not None:
            limits.approve_request(request_id=asked.pk, of=obj.project, actor=person_of(request))
        given = members.add_member(project=obj.project, user=obj.user, role=obj.role)
        obj.pk = given.pk

    def delete_model(self, request: HttpRequest, obj: Membership) -> None:
        """Take the role as the people page does: what is held goes back, and what a group gives stays."""
        members.remove_member(project=obj.project, user=obj.user, role=obj.role)

    def delete_queryset(self, request: HttpRequest, queryset: "QuerySet[Membership]") -> None:
        for membership in queryset:
            self.delete_model(request, membership)


OF_PROJECTS = {"list_select_related": ("project",)}
show(
    Project,
    *("name", "oracle", "data_kind", "state", "created_by", "created_at"),
    list_filter=("oracle", "state"),
    search_fields=("name", "slug"),
)
show(
    Dataset,
    *("name", "project", "role", "state", "row_count", "bad_row_count", "created_at"),
    list_filter=("role", "state"),
    exclude=("upload", "pixels"),
)
show(GateRun, "id", "project", "dataset", "state", "passed_count", "created_at", list_filter=("state",))
show(
    Job,
    *("id", "kind", "project", "state", "attempt", "progress_done", "progress_total", "created_at"),
    list_filter=("kind", "state"),
)
# Their digest stays hidden; one ends on its owner's page, or when the owner is deactivated.
show(
    ApiToken,
    *("name", "user", "scopes", "expires_at", "revoked_at", "last_used_at"),
    list_select_related=("user",),
    exclude=("digest",),
)
# That somebody answered and when; never what.
ANSWERED = ("annotator", "created_at", "superseded_at")
show(Label, "id", *ANSWERED, list_select_related=("annotator",), show_full_result_count=False, fields=ANSWERED)
show(
    Action,
    *("created_at", "actor", "route", "project"),
    search_fields=("actor", "route"),
    show_full_result_count=False,
    **OF_PROJECTS,
)
show(ProjectChange, "created_at", "actor", "project", **OF_PROJECTS)
show(Forgetting, "project", "reference", "actor", "created_at", "finished_at", exclude=("contributor",), **OF_PROJECTS)
show(Deletion, "project", "keep_releases", "actor", "created_at", **OF_PROJECTS)
show(
    Retention,
    *("project", "records_days", "answers_days", "comments_days", "uploads_days", "actions_days"),
    **OF_PROJECTS,
)
