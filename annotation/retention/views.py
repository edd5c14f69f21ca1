"""How long a project keeps what it holds, and what goes when."""

from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.utils.translation import gettext as _

from annotation.access import managed_project
from annotation.people.identity import person_of
from annotation.retention.forms import KINDS, RetentionForm
from annotation.retention.services import periods


@login_required
def retention(request: HttpRequest, slug: str) -> HttpResponse:
    """Show what is due and when the next is, and change the periods."""
    project = managed_project(request, slug)
    form = RetentionForm(request.POST or None, retention=periods.retention_of(project))
    if request.method == "POST" and form.is_valid():
        periods.set_retention(project=project, actor=person_of(request).get_username(), **form.cleaned_data)
        messages.success(request, _("Saved. What is over its period goes within the hour."))
        return redirect("annotation:retention", slug=slug)
    due = [(KINDS[row.kind][0], row) for row in periods.what_is_due(project)]
    context = {"project": project, "form": form, "due": due}
    return render(request, "annotation/retention/retention.html", context, status=422 if form.errors else 200)
