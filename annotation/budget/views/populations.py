"""Pages of populations: all of one's own, a new one, and one with its projects, limit and managers."""

from django.contrib import messages
from django.contrib.auth.decorators import login_required, permission_required
from django.forms import Form
from django.http import HttpRequest, HttpResponse, StreamingHttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.utils.translation import gettext as _
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_POST

from annotation import selectors as annotation_selectors
from annotation.access import may_open
from annotation.budget import population_sheets
from annotation.budget.downloads import statement_response
from annotation.budget.forms import AppointForm, CommonLimitForm, JoinForm, PopulationForm
from annotation.budget.services import populations as budget_populations
from annotation.budget.words import typed_words
from annotation.models import Role
from annotation.people.identity import person_of
from annotation.people.services import limits
from privacy.ledger.models import BudgetAccount


@login_required
def populations(request: HttpRequest) -> HttpResponse:
    """List the populations the person manages."""
    sheets = [population_sheets.sheet_of(each) for each in population_sheets.populations_of(request.user)]
    return render(request, "annotation/budget/populations.html", {"sheets": sheets, "may_open": may_open(request)})


@login_required
@permission_required("annotation.add_project", raise_exception=True)
def new_population(request: HttpRequest) -> HttpResponse:
    """Open a population."""
    form = PopulationForm(request.POST or None)
    if request.method == "POST" and form.is_valid():
        opened = budget_populations.open_population(owner=person_of(request), **form.cleaned_data)
        return redirect("annotation:population", population=opened.slug)
    return render(request, "annotation/budget/new_population.html", {"form": form}, status=422 if form.errors else 200)


@login_required
def population(request: HttpRequest, population: str) -> HttpResponse:
    """One population: what is spent of its limit by which project, and what may be changed."""
    return _page(request, population_sheets.managed_population(request.user, population))


@login_required
@never_cache
def population_statement(request: HttpRequest, population: str) -> StreamingHttpResponse:
    """Every entry of the common account with its hash and the audit's verdict, for an auditor's program."""
    return statement_response(population_sheets.managed_population(request.user, population))


@login_required
@require_POST
def join_population(request: HttpRequest, population: str) -> HttpResponse:
    """Let a project of one's own join for good."""
    found = population_sheets.managed_population(request.user, population)
    form = JoinForm(request.POST, projects=_joinable(request))
    if not form.is_valid():
        return _page(request, found, join=form)
    budget_populations.add_project(population=found, actor=person_of(request), **form.cleaned_data)
    messages.success(request, _("The project belongs to the population now, with what it had spent."))
    return redirect("annotation:population", population=population)


@login_required
@require_POST
def population_limit(request: HttpRequest, population: str) -> HttpResponse:
    """Lower the common limit, or ask another manager for a higher one."""
    found = population_sheets.managed_population(request.user, population)
    form = CommonLimitForm(request.POST)
    if not form.is_valid():
        return _page(request, found, limit=form)
    asked = limits.change_limit(account=found, actor=person_of(request), **form.cleaned_data)
    if asked is None:
        messages.success(request, _("The limit is changed; the ledger says by whom and why."))
    else:
        messages.info(request, _("Another manager has to approve this. Nothing has changed yet."))
    return redirect("annotation:population", population=population)


@login_required
@require_POST
def population_managers(request: HttpRequest, population: str) -> HttpResponse:
    """Ask another manager to agree to a further one."""
    found = population_sheets.managed_population(request.user, population)
    form = AppointForm(request.POST)
    if not form.is_valid():
        return _page(request, found, appoint=form)
    limits.appoint_budget_manager(
        account=found,
        user=form.cleaned_data["manager"],
        reason=form.cleaned_data["reason"],
        actor=person_of(request),
    )
    messages.info(request, _("Another manager has to approve this. Nothing has changed yet."))
    return redirect("annotation:population", population=population)


@login_required
@require_POST
def decide_population(request: HttpRequest, population: str, wish_id: int) -> HttpResponse:
    """Approve, refuse or withdraw."""
    found = population_sheets.managed_population(request.user, population)
    get_object_or_404(limits.requests_of(found), pk=wish_id)
    if request.POST.get("decision") == "approve":
        limits.approve_request(request_id=wish_id, of=found, actor=person_of(request))
        messages.success(request, _("Approved and done; the ledger names both of you."))
    else:
        limits.refuse_request(request_id=wish_id, of=found, actor=person_of(request))
        messages.success(request, _("Nothing was changed."))
    return redirect("annotation:population", population=population)


def _joinable(request: HttpRequest) -> object:
    mine = annotation_selectors.projects_of(request.user, roles=(Role.MANAGER,))
    return population_sheets.projects_outside(mine)


def _page(request: HttpRequest, found: BudgetAccount, **forms: Form) -> HttpResponse:
    limits.expire_requests()
    sheet = population_sheets.sheet_of(found)
    stands = {
        "epsilon_limit": typed_words(found.epsilon_limit_nano, 9),
        "delta_limit": typed_words(found.delta_limit_atto, 18),
    }
    context = {
        "sheet": sheet,
        "waiting": [(one, one.requested_by_id == request.user.pk) for one in population_sheets.requests_of(found)],
        "managers": found.managers.select_related("user").order_by("user__username"),
        "join": JoinForm(projects=_joinable(request)),
        "limit": CommonLimitForm(initial=stands),
        "appoint": AppointForm(),
    } | forms
    return render(request, "annotation/budget/population.html", context, status=422 if forms else 200)
