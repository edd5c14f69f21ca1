"""Pages that list, open, pause and resume projects."""

from typing import Any

from django.contrib import messages
from django.contrib.auth.decorators import login_required, permission_required
from django.forms import BooleanField
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy
from django.views.decorators.http import require_POST

from annotation import selectors
from annotation.access import managed_project, may_open
from annotation.budget import words
from annotation.budget.forms import MembershipForm
from annotation.budget.population_sheets import membership_like
from annotation.choices.presets import PRESETS
from annotation.models import Arrival, DataKind, Oracle, Project, Role, Selection
from annotation.people.identity import note_about, note_nothing, person_of
from annotation.people.views import task_of
from annotation.projects import protection_words
from annotation.projects.forms.configuration import can_stand_beside_random, draft_of_random
from annotation.projects.forms.opening import ChoosingForm, PoolProjectForm, StreamProjectForm
from annotation.projects.forms.wizard import (
    FIELDS,
    OWN_LIMIT,
    TITLES,
    BudgetLevelForm,
    ProtectionForm,
    WizardStep,
    draft_form,
    errors_of,
    sharing_terms,
    shown_settings,
    step_fields,
    step_of,
    typed_in,
)
from annotation.projects.selectors import project_cards
from annotation.projects.services import opening


@login_required
def project_list(request: HttpRequest) -> HttpResponse:
    """Every project the person takes part in; who came by a crowd link has one task, and goes to that."""
    task = task_of(request)
    if task is not None:
        return redirect("annotation:label", slug=task.slug)
    closed = "closed" in request.GET
    cards = project_cards(user=request.user, closed=closed)
    context = {"cards": cards, "may_open": may_open(request), "closed": closed}
    return render(request, "annotation/projects/projects.html", context)


@login_required
def project(request: HttpRequest, slug: str) -> HttpResponse:
    found = get_object_or_404(selectors.projects_of(request.user), slug=slug)
    if selectors.projects_of(request.user, roles=(Role.MANAGER, Role.ENGINEER)).filter(pk=found.pk).exists():
        return redirect("learner:overview", slug=slug)
    if not selectors.projects_of(request.user, roles=(Role.ANNOTATOR,)).filter(pk=found.pk).exists():
        return redirect("annotation:review", slug=slug)
    return redirect("annotation:label", slug=slug)


@login_required
@permission_required("annotation.add_project", raise_exception=True)
def choose_preset(request: HttpRequest) -> HttpResponse:
    presets = [
        {
            "preset": preset,
            # What follows the colon is said by the preset itself.
            "oracle": str(Oracle(preset.oracle).label).partition(":")[0],
            "kinds": [DataKind(kind).label for kind in preset.data_kinds],
        }
        for preset in PRESETS.values()
    ]
    return render(request, "annotation/projects/choose_preset.html", {"presets": presets})


@login_required
@permission_required("annotation.add_project", raise_exception=True)
def new_project(request: HttpRequest, preset: str) -> HttpResponse:
    if preset not in PRESETS:
        raise Http404
    chosen = PRESETS[preset]
    form_class: type[ChoosingForm] = (
        StreamProjectForm if chosen.defaults.get("arrival") == Arrival.STREAM else PoolProjectForm
    )
    form = form_class(request.POST or None, preset=chosen)
    if request.method == "POST" and ("show" in request.POST or not form.settings_are_shown(request.POST)):
        note_nothing(request)
        form = form_class.shown_for(request.POST, preset=chosen)
        shown = MembershipForm(person=request.user, terms=sharing_terms(form), chosen=request.POST.dict())
        context = {"form": form, "membership": shown, "preset": chosen, "changed": True}
        return render(request, "annotation/projects/new_project.html", context)
    membership = MembershipForm(request.POST or None, person=request.user, terms=sharing_terms(form))
    if request.method == "POST" and form.is_valid() and membership.is_valid():
        values = form.project_values() | membership.cleaned_data
        project = opening.create_project(preset=preset, owner=person_of(request), **values)
        return _to_its_data(request, project)
    status = 422 if form.errors or membership.errors else 200
    context = {"form": form, "membership": membership, "preset": chosen}
    return render(request, "annotation/projects/new_project.html", context, status=status)


def _to_its_data(request: HttpRequest, project: Project) -> HttpResponse:
    note_about(request, project.pk)
    stream = project.arrival == Arrival.STREAM
    messages.success(
        request, _("Project opened. Post its records next.") if stream else _("Project opened. Upload a pool next.")
    )
    return redirect("annotation:data", slug=project.slug)


@login_required
@require_POST
def set_state(request: HttpRequest, slug: str) -> HttpResponse:
    project = managed_project(request, slug)
    change = opening.pause_project if request.POST.get("state") == "paused" else opening.resume_project
    change(project=project)
    return redirect("annotation:project", slug=slug)


DRAFTS = "new_projects"
# Where the button under the budget leads, which is no step of its own.
PLAN = "plan"
# What pages of their own ask for once a project stands, and what may be said of it before.
LATER = {
    WizardStep.QUESTIONS: gettext_lazy("How people label"),
    WizardStep.BUDGET: gettext_lazy("What answers may cost"),
}


@login_required
@permission_required("annotation.add_project", raise_exception=True)
def wizard(request: HttpRequest, preset: str, step: str) -> HttpResponse:
    if preset not in PRESETS or step not in set(WizardStep):
        raise Http404
    if step != WizardStep.CHECK or "go" in request.POST or "forget" in request.POST:
        # What was typed waits in the session; nothing is opened before the last step.
        note_nothing(request)
    if "forget" in request.POST:
        keep_draft(request, preset, {})
        return redirect("annotation:wizard", preset=preset, step=WizardStep.PROTECTION)
    if step == WizardStep.PROTECTION:
        return _protection(request, preset)
    return _check(request, preset) if step == WizardStep.CHECK else _settings(request, preset, WizardStep(step))


@require_POST
@login_required
@permission_required("annotation.add_project", raise_exception=True)
def open_beside(request: HttpRequest, slug: str) -> HttpResponse:
    project = managed_project(request, slug)
    if not can_stand_beside_random(project):
        raise Http404
    # What is under one limit beside it stays under it: whose records are in both loses the sum.
    keep_draft(request, project.preset, draft_of_random(project) | membership_like(project, person_of(request)))
    return redirect("annotation:wizard", preset=project.preset, step=WizardStep.CHECK)


def _protection(request: HttpRequest, key: str) -> HttpResponse:
    draft = draft_of(request, key)
    form = ProtectionForm(request.POST or None, preset=PRESETS[key], draft=draft)
    if request.method == "POST" and form.is_valid():
        chosen = form.chosen_preset()
        if chosen.key != key:
            task = {name: draft[name] for name in FIELDS[WizardStep.TASK] if name in draft}
            if task.get("data_kind") not in (None, *chosen.data_kinds):
                del task["data_kind"]
            draft = draft_of(request, chosen.key) | task
        draft |= {"privacy_unit": form.cleaned_data["privacy_unit"]}
        keep_draft(request, chosen.key, draft)
        return redirect("annotation:wizard", preset=chosen.key, step=_wanted(request, WizardStep.TASK))
    context = {"fields": list(form), "forms_with_errors": [form] if form.errors else []}
    return _page(request, key, WizardStep.PROTECTION, context, status=422 if form.errors else 200)


def _settings(request: HttpRequest, key: str, step: WizardStep) -> HttpResponse:
    draft = draft_of(request, key)
    level = BudgetLevelForm(request.POST or None, draft=draft) if step == WizardStep.BUDGET else None
    if request.method != "POST":
        form = draft_form(PRESETS[key], draft, assumed=True)
        asked = {"level": level, "membership": _membership(request, form, draft, asked=level)}
        return _page(request, key, step, {"fields": _unchecked(key, draft, step), "form": form} | asked)
    shown = {bound.name for bound in step_fields(draft_form(PRESETS[key], draft), step)}
    draft = draft | typed_in(draft_form(PRESETS[key], draft), step, request.POST)
    if level is not None:
        draft |= {name: request.POST.get(name) for name in (*level.fields, *MembershipForm.base_fields)}
        named = next((named for named in words.LEVELS if named.key == draft["level"]), None)
        if named is not None:
            draft["pool_epsilon"] = f"{named.epsilon:g}"
    keep_draft(request, key, draft)
    if request.POST.get("go") == PLAN:
        return redirect("learner:draft_plan", preset=key)
    if "go" in request.POST:
        return redirect("annotation:wizard", preset=key, step=_wanted(request, step))
    # Without JavaScript a new choice brings its settings with the next page, which must be seen before going on.
    if {bound.name for bound in step_fields(draft_form(PRESETS[key], draft), step)} - shown:
        messages.info(request, _("These are the settings of your choices. Nothing is opened yet."))
        return redirect("annotation:wizard", preset=key, step=step)
    form = draft_form(PRESETS[key], draft, assumed=step != WizardStep.TASK)
    membership = _membership(request, form, draft, asked=level, typed=True)
    wrong = [part for part in (level, membership) if part is not None and not part.is_valid()]
    if errors_of(form, step) or wrong:
        context: dict[str, Any] = {
            "fields": step_fields(form, step),
            "level": level,
            "membership": membership,
            "form": form,
            "forms_with_errors": wrong,
            "errors": errors_of(form, step),
        }
        return _page(request, key, step, context, status=422)
    return redirect("annotation:wizard", preset=key, step=_after(step))


def _check(request: HttpRequest, key: str) -> HttpResponse:
    form = draft_form(PRESETS[key], draft_of(request, key))
    if request.method == "POST" and "go" in request.POST:
        return redirect("annotation:wizard", preset=key, step=_wanted(request, WizardStep.CHECK))
    membership = MembershipForm(draft_of(request, key), person=request.user, terms=sharing_terms(form))
    if request.method == "POST" and form.is_valid() and membership.is_valid():
        values = form.project_values() | membership.cleaned_data
        project = opening.create_project(preset=key, owner=person_of(request), **values)
        if (compared := _compared(request, key)) is not None and project.selection == Selection.RANDOM:
            opening.compare_with(project=compared, other=project)
        keep_draft(request, key, {})
        return _to_its_data(request, project)
    form.is_valid()
    wrong = [
        {"step": step_of(name), "label": form[name].label, "errors": errors}
        for name, errors in form.errors.items()
        if name in form.fields
    ]
    wrong += [
        {"step": WizardStep.BUDGET, "label": membership[name].label, "errors": errors}
        for name, errors in membership.errors.items()
    ]
    context = {
        "form": form,
        "membership": membership,
        "groups": [
            {"step": step, "title": TITLES[step], "settings": list(shown_settings(form, step))}
            for step in (WizardStep.TASK, WizardStep.QUESTIONS, WizardStep.MODEL, WizardStep.BUDGET)
        ],
        "wrong": wrong,
        "other_errors": form.non_field_errors(),
    }
    return _page(request, key, WizardStep.CHECK, context, status=422 if request.method == "POST" else 200)


def _page(
    request: HttpRequest, key: str, step: WizardStep, context: dict[str, Any], *, status: int = 200
) -> HttpResponse:
    draft, preset = draft_of(request, key), PRESETS[key]
    form = draft_form(preset, draft, assumed=True)
    steps = list(WizardStep)
    place = steps.index(step)
    settings = form.values() if form.is_valid() else None
    if (level := context.get("level")) is not None:
        words.say_consequences(level, delta=form.cleaned_data.get("pool_delta") or 0.0 if settings else 0.0)
    return render(
        request,
        "annotation/projects/wizard.html",
        context
        | {
            "preset": preset,
            "step": step,
            "title": TITLES[step],
            "number": place + 1,
            "steps": [{"key": one, "title": TITLES[one], "done": number < place} for number, one in enumerate(steps)],
            "before": steps[place - 1] if place else None,
            "who": protection_words.who_is_protected(preset, draft.get("privacy_unit"), settings),
            "compared": _compared(request, key),
            "later": LATER.get(step, ""),
            "cost": protection_words.what_it_costs(step, settings),
            "meaning": _meaning(form, draft)
            if step in (WizardStep.BUDGET, WizardStep.CHECK) and form.is_valid()
            else None,
        },
        status=status,
    )


def _membership(
    request: HttpRequest, form: ChoosingForm, draft: dict[str, Any], *, asked: Any, typed: bool = False
) -> MembershipForm | None:
    if asked is None:
        return None
    return MembershipForm(draft if typed else None, person=request.user, terms=sharing_terms(form), chosen=draft)


def _compared(request: HttpRequest, key: str) -> Project | None:
    """Return the project that this one is opened to stand beside, if the person still manages it."""
    mine = selectors.projects_of(request.user, roles=(Role.MANAGER,))
    return mine.filter(pk=draft_of(request, key).get("beside", 0)).first()


def _meaning(form: Any, draft: dict[str, Any]) -> dict[str, str]:
    epsilon, delta = form.cleaned_data["pool_epsilon"], form.cleaned_data["pool_delta"]
    people = str(draft.get("people") or "")
    return {
        "words": words.plain_meaning(epsilon, delta),
        "delta": words.delta_advice(delta, int(people)) if people.isdecimal() and int(people) else "",
    }


def _unchecked(key: str, draft: dict[str, Any], step: WizardStep) -> list[Any]:
    """Return the fields of a step with what was typed, and nothing marked wrong before it was looked at."""
    bound = draft_form(PRESETS[key], draft)
    blank = type(bound)(preset=PRESETS[key], initial={name: bound.data[name] for name in bound.fields})
    for name, field in blank.fields.items():
        if isinstance(field, BooleanField):
            blank.initial[name] = bound.data[name] == "on"
    return step_fields(blank, step)


def _after(step: WizardStep) -> WizardStep:
    steps = list(WizardStep)
    return steps[steps.index(step) + 1]


def _wanted(request: HttpRequest, default: WizardStep) -> WizardStep:
    go = request.POST.get("go", "")
    return WizardStep(go) if go in set(WizardStep) else default


def draft_of(request: HttpRequest, key: str) -> dict[str, Any]:
    return dict(request.session.get(DRAFTS, {}).get(key, {"level": OWN_LIMIT}))


def keep_draft(request: HttpRequest, key: str, draft: dict[str, Any]) -> None:
    drafts = request.session.get(DRAFTS, {})
    request.session[DRAFTS] = drafts | {key: draft}
