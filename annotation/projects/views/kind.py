"""Who is protected from whom, chosen anew while nothing rests on it: shown with what follows, then changed."""

from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.utils.translation import ngettext

from annotation.access import managed_project
from annotation.choices.kinds import hindrances
from annotation.choices.presets import PRESETS
from annotation.errors import ConfigurationFrozen, InvalidConfiguration
from annotation.people.identity import note_nothing, person_of
from annotation.projects import protection_words
from annotation.projects.forms.kinds import KindForm, setting_changes
from annotation.projects.forms.wizard import arrival_of
from annotation.projects.services import kinds
from annotation.wording import localized


@login_required
def kind(request: HttpRequest, slug: str) -> HttpResponse:
    """Choose; look at what else that changes and what stands in the way; only then change it."""
    project = managed_project(request, slug)
    form = KindForm(request.POST or None, project=project)
    context = {"project": project, "form": form, "preset": PRESETS[project.preset]}
    if request.method != "POST" or not form.is_valid():
        return render(request, "annotation/projects/kind.html", context, status=422 if form.errors else 200)
    chosen, unit = form.cleaned_data["found"], form.cleaned_data["privacy_unit"]
    labels_epsilon = form.cleaned_data.get("labels_epsilon")
    proposal = kinds.propose_kind(project=project, preset=chosen, unit=unit, labels_epsilon=labels_epsilon)
    stuck = hindrances(project, oracle=chosen.oracle, arrival=arrival_of(chosen), preset=chosen.key)
    wrong = [*stuck, *(localized(rule) for rule in proposal.broken.values())]
    if "confirm" in request.POST and not wrong:
        try:
            changed = kinds.change_kind(
                project=project, preset=chosen.key, unit=unit, labels_epsilon=labels_epsilon, actor=person_of(request)
            )
        except (ConfigurationFrozen, InvalidConfiguration) as error:
            wrong = [localized(str(error))]
        else:
            said = ngettext("%(n)d setting changed.", "%(n)d settings changed.", len(changed)) % {"n": len(changed)}
            messages.success(request, said)
            return redirect("annotation:configuration", slug=slug)
    note_nothing(request)
    context |= {
        "wrong": wrong,
        "limits_wrong": any(field in proposal.broken for field in ("pool_epsilon", "pool_delta", "labels_epsilon")),
        "looked": True,
        "who": protection_words.who_is_protected(chosen, unit),
        "changes": setting_changes(project, proposal.changes),
        "chosen": chosen,
        "sent": form.cleaned_data | {"preset": chosen.key},
    }
    return render(request, "annotation/projects/kind.html", context, status=422 if wrong else 200)
