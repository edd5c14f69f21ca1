"""What is pressed for a project's next step: the address and the price of each act, the same wherever it stands."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from django.contrib.auth.models import AbstractBaseUser, AnonymousUser, PermissionsMixin
from django.urls import reverse

from annotation.models import Project
from annotation.statement import charges
from learner.guidance.blockers import Act, ActKind, annotators_of
from learner.guidance.waiting import Guidance, guidance_for
from learner.next_step import Step
from privacy.accounting.cost import Cost

# Where questions are about to come, whoever answers them may wait on the page on which they appear.
QUESTIONS_COMING = (Step.ASK, Step.CHOOSING, Step.WAITING_FOR_POOL, Step.READING, Step.AT_GATE)
# Where each act that is a page of the project is, and the part of the page.
PAGES = {
    ActKind.LOOK_AT_WORK: ("learner:dashboard", "#jobs"),
    ActKind.UPLOAD: ("annotation:data", "#upload"),
    ActKind.POST_RECORDS: ("annotation:data", ""),
    ActKind.SEE_WHAT_PASSES: ("annotation:data", "#nothing-passed"),
    ActKind.ADD_PEOPLE: ("annotation:people", ""),
    ActKind.LET_PEOPLE_GO_ON: ("annotation:quality", ""),
    ActKind.CHANGE_LIMITS: ("annotation:configuration", ""),
    ActKind.CHANGE_HOURS: ("annotation:configuration", ""),
    ActKind.ASSIGN_ANEW: ("annotation:questions", ""),
    ActKind.SET_ASIDE: ("annotation:questions", ""),
    ActKind.LABEL: ("annotation:label", ""),
    ActKind.CLOSE_BLOCK: ("learner:close_block", ""),
    ActKind.RAISE_ANSWERS: ("annotation:label_budget", ""),
    ActKind.PLAN_MORE_VERSIONS: ("annotation:configuration", ""),
}
# Pages of something in the project.
PAGES_OF = {
    ActKind.SEE_UPLOAD: "annotation:dataset",
    ActKind.RAISE_LIMIT: "annotation:change_limit",
    ActKind.SEE_RELEASE: "learner:release",
    ActKind.SEE_VERSION_0: "learner:release",
}


@dataclass(frozen=True, slots=True)
class Button:
    """A button or a link: where it leads, what it sends if it sends anything, and what that has charged."""

    kind: str
    label: str
    address: str
    price: Cost | None
    sends: bool = False
    fields: dict[str, str] = field(default_factory=dict)


def next_step_context(project: Project, viewer: AbstractBaseUser | AnonymousUser) -> dict[str, Any]:
    """Return what the next step's part of a page shows to a manager."""
    guidance = guidance_for(project)
    answers = annotators_of(project).filter(user=viewer.pk, paused_at=None).exists()
    return {
        "project": project,
        "guidance": guidance,
        "buttons": buttons(project, guidance, viewer=viewer, answers=answers),
    }


def buttons(
    project: Project, guidance: Guidance, *, viewer: AbstractBaseUser | AnonymousUser, answers: bool
) -> list[Button]:
    """Return what the viewer can press, the first first; none that the viewer may not take."""
    opens = isinstance(viewer, PermissionsMixin) and viewer.has_perm("annotation.add_project")
    may = {ActKind.LABEL: answers, ActKind.BEGIN_WITH_EXPERTS: opens}
    acts = [act for act in guidance.acts if may.get(act.kind, True)]
    if answers and guidance.status.step in QUESTIONS_COMING:
        acts.append(Act(ActKind.LABEL))
    return [button_of(project, act, viewer) for act in acts]


def button_of(project: Project, act: Act, viewer: AbstractBaseUser | AnonymousUser) -> Button:
    """Return the button or the link of an act."""
    label = str(act.kind.label)
    if act.kind in PAGES:
        name, part = PAGES[act.kind]
        return Button(act.kind, label, reverse(name, args=[project.slug]) + part, act.price)
    if act.kind in PAGES_OF:
        return Button(act.kind, label, reverse(PAGES_OF[act.kind], args=[project.slug, act.subject]), act.price)
    if act.kind == ActKind.SEE_POPULATION:
        return Button(act.kind, label, reverse("annotation:population", args=[act.subject]), act.price)
    if act.kind == ActKind.BEGIN_WITH_EXPERTS:
        return Button(act.kind, label, reverse("annotation:new_project", args=["pool-experts"]), act.price)
    address, fields = SENT[act.kind](project.slug, act.subject, viewer)
    if act.price is not None:
        fields = fields | {charges.AGREED: charges.token_of(act.price)}
    return Button(act.kind, label, address, act.price, sends=True, fields=fields)


def _to(name: str, *more: object) -> tuple[str, dict[str, str]]:
    return reverse(name, args=more), {}


# What is sent by a button: where to, and with which fields.
SENT: dict[ActKind, Callable[[str, str, AbstractBaseUser | AnonymousUser], tuple[str, dict[str, str]]]] = {
    ActKind.TAKE_OUT_OF_ARCHIVE: lambda slug, _s, _v: (_to("learner:set_archived", slug)[0], {"archived": "no"}),
    ActKind.RESUME: lambda slug, _s, _v: (_to("annotation:set_state", slug)[0], {"state": "active"}),
    ActKind.GATE_AGAIN: lambda slug, dataset, _v: _to("annotation:start_gate", slug, dataset),
    ActKind.START_ANEW: lambda slug, row, _v: _to("learner:retry_work", slug, *row.split(" ")),
    ActKind.ANSWER_MYSELF: lambda slug, _s, viewer: (
        _to("annotation:people", slug)[0],
        {"username": viewer.get_username(), "role": "annotator"},
    ),
    ActKind.TRAIN_ON_FEW: lambda slug, _s, _v: _to("learner:train_on_few", slug),
    ActKind.CHECK_AGAIN: lambda slug, version, _v: _to("learner:check_again", slug, version),
}
