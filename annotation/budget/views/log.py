"""Who did what in a project, as sentences, narrowed down and as a file."""

from django import forms
from django.contrib.auth.decorators import login_required
from django.core.paginator import Paginator
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse, StreamingHttpResponse
from django.shortcuts import render
from django.utils.translation import gettext_lazy as _

from annotation.access import managed_project
from annotation.budget.action_words import SENTENCES, action_sentence
from annotation.budget.downloads import csv_response
from annotation.budget.history import actions_in
from annotation.budget.spending import table_csv
from annotation.models import Project
from annotation.models.history import Action

LINES_A_PAGE = 50


class LogFilter(forms.Form):
    """Whose lines, of what, from when to when; an empty field narrows nothing."""

    actor = forms.ChoiceField(required=False, label=_("Who"))
    route = forms.ChoiceField(required=False, label=_("What"))
    since = forms.DateField(required=False, label=_("From"), widget=forms.DateInput(attrs={"type": "date"}))
    until = forms.DateField(required=False, label=_("Until"), widget=forms.DateInput(attrs={"type": "date"}))

    def __init__(self, data: object, *, project: Project) -> None:
        super().__init__(data)  # type: ignore[arg-type]
        found = project.actions.order_by()
        actors = sorted(found.exclude(actor="").values_list("actor", flat=True).distinct())
        routes = found.values_list("route", flat=True).distinct()
        named = sorted(((route, str(SENTENCES.get(route, route))) for route in routes), key=lambda choice: choice[1])
        for name, choices in (("actor", [(actor, actor) for actor in actors]), ("route", named)):
            field = self.fields[name]
            assert isinstance(field, forms.ChoiceField)
            field.choices = [("", _("all")), *choices]

    def lines(self, project: Project) -> QuerySet[Action]:
        """Return what fits, newest first; what cannot be read narrows nothing."""
        return actions_in(project, **(self.cleaned_data if self.is_valid() else {}))


@login_required
def log(request: HttpRequest, slug: str) -> HttpResponse:
    """Show the lines that fit, in pages."""
    project = managed_project(request, slug)
    form = LogFilter(request.GET, project=project)
    page = Paginator(form.lines(project), LINES_A_PAGE).get_page(request.GET.get("page"))
    query = request.GET.copy()
    query.pop("page", None)
    lines = [(action, action_sentence(action)) for action in page]
    context = {"project": project, "form": form, "page": page, "lines": lines, "query": query.urlencode()}
    return render(request, "annotation/budget/log.html", context)


@login_required
def log_csv(request: HttpRequest, slug: str) -> StreamingHttpResponse:
    """Send the lines that fit as a file."""
    project = managed_project(request, slug)
    found = LogFilter(request.GET, project=project).lines(project)
    rows = (
        (action.created_at, action.actor, action_sentence(action), action.route)
        for action in found.iterator(chunk_size=2000)
    )
    return csv_response(table_csv(["when", "who", "what", "route"], rows), name=f"{slug}-log")
