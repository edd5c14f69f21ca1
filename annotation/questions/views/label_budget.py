"""How many answers may be asked for, and at what price."""

from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.utils.translation import gettext as _

from annotation.access import managed_project
from annotation.budget.label_budget import label_budget as budget_of_labels
from annotation.people.identity import person_of
from annotation.questions import label_forecast
from annotation.questions.forms.label_budget import LabelBudgetForm
from annotation.questions.services import labelling


@login_required
def label_budget(request: HttpRequest, slug: str) -> HttpResponse:
    """How many answers may be asked for, and what they cost."""
    project = managed_project(request, slug)
    form = LabelBudgetForm(request.POST or None, project=project)
    if request.method == "POST" and form.is_valid():
        labelling.set_label_budget(project=project, actor=person_of(request), **form.cleaned_data)
        messages.success(request, _("The annotation budget is changed."))
        return redirect("annotation:data", slug=slug)
    context = {
        "project": project,
        "form": form,
        "labels": budget_of_labels(project),
        "forecast": label_forecast.label_budget_forecast(project),
    }
    return render(request, "annotation/questions/label_budget.html", context, status=422 if form.errors else 200)
