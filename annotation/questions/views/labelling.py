"""How a project labels, for its managers."""

from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.utils.translation import gettext as _

from annotation.access import managed_project
from annotation.people.identity import person_of
from annotation.questions.forms.labelling import LabellingForm
from annotation.questions.services.labelling import set_labelling
from annotation.reports.selectors import waiting


@login_required
def labelling(request: HttpRequest, slug: str) -> HttpResponse:
    """How questions are handed out and answered."""
    project = managed_project(request, slug)
    form = LabellingForm(request.POST or None, project=project)
    if request.method == "POST" and form.is_valid():
        set_labelling(project=project, actor=person_of(request), **form.cleaned_data)
        messages.success(request, _("Saved. Annotators notice it at their next question."))
        return redirect("annotation:labelling", slug=slug)
    context = {"project": project, "form": form, "waiting": waiting.count_for_managers(project)}
    return render(request, "annotation/questions/labelling.html", context, status=422 if form.errors else 200)
