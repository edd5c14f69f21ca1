"""Pages on which a project is archived or deleted."""

from django import forms
from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy
from django.views.decorators.http import require_POST

from annotation.access import managed_project
from annotation.models import Project, ProjectState
from annotation.models.retention import Deletion
from annotation.people.identity import person_of
from annotation.projects.services import lifecycle
from learner.rounds.services.closing import what_stays


class DeletionForm(forms.Form):
    releases = forms.ChoiceField(
        label=gettext_lazy("Released models"),
        choices=[
            ("keep", gettext_lazy("keep them for engineers and managers")),
            ("bury", gettext_lazy("delete their files; version, digests, guarantee and origin stay")),
        ],
        widget=forms.RadioSelect,
        initial="keep",
    )
    typed = forms.CharField(
        max_length=60,
        label=gettext_lazy("Short name of the project"),
        widget=forms.TextInput(attrs={"autocomplete": "off"}),
    )

    def __init__(self, data: object = None, *, project: Project) -> None:
        super().__init__(data)  # type: ignore[arg-type]
        self.project = project
        self.fields["typed"].help_text = _("Type %(slug)s to confirm.") % {"slug": project.slug}

    def clean_typed(self) -> str:
        typed = str(self.cleaned_data["typed"]).strip()
        if typed != self.project.slug:
            raise forms.ValidationError(_("This is not the project's short name."))
        return typed


@login_required
def closing(request: HttpRequest, slug: str) -> HttpResponse:
    project = managed_project(request, slug, closed_too=True)
    return _page(request, project, DeletionForm(project=project))


@login_required
@require_POST
def set_archived(request: HttpRequest, slug: str) -> HttpResponse:
    project = managed_project(request, slug, closed_too=True)
    if request.POST.get("archived") == "yes":
        lifecycle.archive_project(project=project)
        messages.success(request, _("The project is archived."))
    else:
        lifecycle.unarchive_project(project=project)
        messages.success(request, _("The project is restored and paused."))
    return redirect("learner:closing", slug=slug)


@login_required
@require_POST
def delete_project(request: HttpRequest, slug: str) -> HttpResponse:
    project = managed_project(request, slug, closed_too=True)
    form = DeletionForm(request.POST, project=project)
    if not form.is_valid():
        return _page(request, project, form, status=422)
    lifecycle.request_deletion(
        project=project,
        typed=form.cleaned_data["typed"],
        keep_releases=form.cleaned_data["releases"] == "keep",
        actor=person_of(request).get_username(),
    )
    messages.success(request, _("The project is being deleted."))
    return redirect("learner:closing", slug=slug)


def _page(request: HttpRequest, project: Project, form: DeletionForm, *, status: int = 200) -> HttpResponse:
    context = {
        "project": project,
        "form": form,
        "archived": project.state == ProjectState.ARCHIVED,
        "deletion": Deletion.objects.filter(project=project).select_related("job").first(),
        **what_stays(project),
    }
    return render(request, "learner/rounds/closing.html", context, status=status)
