"""Page on which a project's retention is set."""

from typing import Any

from django import forms
from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from annotation.access import managed_project
from annotation.data.services import retention as data_retention
from annotation.models.retention import FEWEST_ACTION_DAYS, FEWEST_DAYS, Retention
from annotation.people.identity import person_of

LONGEST_DAYS = 36_500
KINDS = {
    "records": (
        _("Records"),
        _(
            "Counted from the upload, of a stream from the day a record came. Each becomes an empty slot: content and "
            "answers go, and no later model learns from it."
        ),
    ),
    "answers": (
        _("Answered questions"),
        _(
            "Counted from the last answer. The answers go, and in a project of experts the record behind the question, "
            "too; that somebody answered stays, because it was paid for. Later models no longer learn from them."
        ),
    ),
    "comments": (
        _("Comments and reports"),
        _("Counted from when they are settled; reasons for skipping, from when a question was skipped."),
    ),
    "uploads": (_("Reports about uploads"), _("The list of bad rows of each upload, and its file if one is left.")),
    "actions": (
        _("Log of actions"),
        _("Who did what. At least 90 days, so that nobody wipes away at once what they did."),
    ),
}


class RetentionForm(forms.Form):
    """Days for each kind; empty keeps it until the project is deleted."""

    def __init__(self, data: Any = None, *, retention: Retention) -> None:
        super().__init__(data, initial={f"{kind}_days": getattr(retention, f"{kind}_days") for kind in KINDS})
        for kind, (label, help_text) in KINDS.items():
            self.fields[f"{kind}_days"] = forms.IntegerField(
                required=False,
                min_value=FEWEST_ACTION_DAYS if kind == "actions" else FEWEST_DAYS,
                max_value=LONGEST_DAYS,
                label=_("%(kind)s: days") % {"kind": label},
                help_text=help_text,
            )


@login_required
def retention(request: HttpRequest, slug: str) -> HttpResponse:
    """Show what is due and when the next is, and change the periods."""
    project = managed_project(request, slug)
    form = RetentionForm(request.POST or None, retention=data_retention.retention_of(project))
    if request.method == "POST" and form.is_valid():
        data_retention.set_retention(project=project, actor=person_of(request).get_username(), **form.cleaned_data)
        messages.success(request, gettext("Saved. What is over its period goes within the hour."))
        return redirect("annotation:retention", slug=slug)
    due = [(KINDS[row.kind][0], row) for row in data_retention.what_is_due(project)]
    context = {"project": project, "form": form, "due": due}
    return render(request, "annotation/data/retention.html", context, status=422 if form.errors else 200)
