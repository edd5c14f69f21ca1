"""Pages of a project's budget: spending, limits, statement, log, and limits over several projects."""

from typing import Any

from django.contrib import messages
from django.contrib.auth.decorators import login_required, permission_required
from django.core.paginator import Paginator
from django.forms import Form
from django.http import HttpRequest, HttpResponse, StreamingHttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.utils.translation import gettext as _
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_POST

from annotation import selectors
from annotation import selectors as annotation_selectors
from annotation.access import managed_project, may_open
from annotation.budget import population_sheets, presenters, words
from annotation.budget import services as budget_populations
from annotation.budget.action_words import action_sentence
from annotation.budget.downloads import csv_response, statement_response
from annotation.budget.forms import (
    AloneForm,
    AppointForm,
    CommonLimitForm,
    JoinForm,
    LimitForm,
    LogFilter,
    PopulationForm,
    StatementForm,
)
from annotation.budget.lines import statement_page
from annotation.budget.population_sheets import project_limit_words
from annotation.budget.services import verdicts
from annotation.budget.spending import statement_csv, table_csv
from annotation.budget.words import typed_words
from annotation.models import Dataset, DatasetRole, Project, Role
from annotation.models.limits import LimitRequest, RequestState
from annotation.people.identity import note_nothing, person_of
from annotation.people.services import limits
from annotation.work.polling import moving_page
from privacy.ledger.checkpoints import site_key
from privacy.ledger.models import BudgetAccount
from privacy.ledger.selectors import guarantee


@login_required
def budget(request: HttpRequest, slug: str) -> HttpResponse:
    allowed = selectors.projects_of(request.user, roles=(Role.MANAGER, Role.ENGINEER))
    project = get_object_or_404(selectors.seen_by(request.user, allowed), slug=slug)
    common_limit = project_limit_words(project)
    facts = (presenters.ledger_facts(project), common_limit)
    return moving_page(
        request,
        "annotation/budget/budget.html",
        facts,
        lambda: {
            "project": project,
            "sheets": presenters.detailed_sheets(project, compose="compose" in request.GET),
            "may_change": project.viewer_manages,
            "common_limit": common_limit,
        },
    )


SHOWN = 50


@login_required
def change_limit(request: HttpRequest, slug: str, account_id: int) -> HttpResponse:
    project = managed_project(request, slug)
    account = get_object_or_404(presenters.statement_accounts(project), pk=account_id)
    now = guarantee(account)
    initial = {
        "epsilon_limit": typed_words(account.epsilon_limit_nano, 9),
        "delta_limit": typed_words(account.delta_limit_atto, 18),
    }
    form = LimitForm(request.POST or None, initial=initial)
    if request.method == "POST" and form.is_valid():
        asked = limits.change_limit(project=project, account=account, actor=person_of(request), **form.limits())
        if asked is None:
            messages.success(request, _("Saved."))
            return redirect("annotation:budget", slug=slug)
        messages.info(request, _("Waiting for another manager's approval. Nothing has changed yet."))
        return redirect("annotation:limit_requests", slug=slug)
    rows = sum(Dataset.objects.filter(project=project, role=DatasetRole.POOL).values_list("row_count", flat=True))
    words.say_consequences(form, delta=now.delta_limit)
    context = {
        "project": project,
        "account": account,
        "guarantee": now,
        "form": form,
        "meaning": words.plain_meaning(now.epsilon_limit, now.delta_limit),
        "advice": words.delta_advice(now.delta_limit, rows) if rows else "",
    }
    return render(request, "annotation/budget/change_limit.html", context, status=422 if form.errors else 200)


@login_required
def limit_requests(request: HttpRequest, slug: str) -> HttpResponse:
    project = managed_project(request, slug)
    limits.expire_requests()
    found = LimitRequest.objects.filter(project=project).select_related(
        "account", "requested_by", "decided_by", "appointee"
    )
    rows: list[dict[str, Any]] = [
        {
            "request": one,
            "own": one.requested_by_id == request.user.pk,
            "epsilon": one.epsilon_limit,
            "delta": one.delta_limit,
        }
        for one in found.order_by("-pk")[:SHOWN]
    ]
    context = {
        "project": project,
        "waiting": [row for row in rows if row["request"].state == RequestState.OPEN],
        "decided": [row for row in rows if row["request"].state != RequestState.OPEN],
        "form": AloneForm(),
        "days": limits.LIFETIME.days,
    }
    return render(request, "annotation/budget/limit_requests.html", context)


@login_required
@require_POST
def decide_limit(request: HttpRequest, slug: str, request_id: int) -> HttpResponse:
    project = managed_project(request, slug)
    get_object_or_404(LimitRequest, pk=request_id, project=project)
    if request.POST.get("decision") == "approve":
        limits.approve_request(request_id=request_id, of=project, actor=person_of(request))
        messages.success(request, _("Saved."))
    else:
        limits.refuse_request(request_id=request_id, of=project, actor=person_of(request))
        messages.success(request, _("Nothing was changed."))
    return redirect("annotation:limit_requests", slug=slug)


@login_required
@require_POST
def second_manager(request: HttpRequest, slug: str) -> HttpResponse:
    project = managed_project(request, slug)
    if not project.second_manager:
        limits.demand_second_manager(project=project)
        messages.success(request, _("Saved."))
        return redirect("annotation:limit_requests", slug=slug)
    form = AloneForm(request.POST)
    if form.is_valid():
        limits.ask_to_decide_alone(project=project, actor=person_of(request), **form.cleaned_data)
        messages.info(request, _("Waiting for another manager's approval. Nothing has changed yet."))
    else:
        messages.error(request, _("Give a reason; it is kept."))
        note_nothing(request)
    return redirect("annotation:limit_requests", slug=slug)


LAST_PAGE = 1_000_000


def _project(request: HttpRequest, slug: str) -> Project:
    allowed = selectors.projects_of(request.user, roles=(Role.MANAGER, Role.ENGINEER))
    return get_object_or_404(selectors.seen_by(request.user, allowed), slug=slug)


@login_required
@never_cache
def statement(request: HttpRequest, slug: str) -> HttpResponse:
    project = _project(request, slug)
    accounts = list(presenters.statement_accounts(project))
    titles = {account.pk: presenters.account_title(project, account) for account in accounts}
    form = StatementForm(request.GET, accounts=accounts, titles=titles)
    form.is_valid()
    wanted = form.wanted()
    page = statement_page(accounts, titles, wanted, _page_number(request))
    context = {
        "project": project,
        "form": form,
        "open_answers": presenters.open_answers_words(project),
        "page": page,
        "asked_for": wanted.entry,
        "newer": _address(request, page.number - 1),
        "older": _address(request, page.number + 1),
        "heads": [(titles[account.pk], guarantee(account)) for account in accounts],
        "public_key": site_key().public_key,
        "verdicts": list(zip(titles.values(), verdicts(accounts), strict=True)) if "check" in request.GET else [],
    }
    return render(request, "annotation/budget/statement.html", context)


@login_required
def download_csv(request: HttpRequest, slug: str) -> StreamingHttpResponse:
    project = _project(request, slug)
    lines = statement_csv(list(presenters.statement_accounts(project)))
    return csv_response(lines, name=f"{project.slug}-statement")


@login_required
@never_cache
def download_json(request: HttpRequest, slug: str) -> StreamingHttpResponse:
    return statement_response(_project(request, slug))


def _page_number(request: HttpRequest) -> int:
    given = request.GET.get("page", "1")
    return min(LAST_PAGE, max(1, int(given))) if given.isascii() and given.isdigit() and len(given) < 8 else 1


def _address(request: HttpRequest, number: int) -> str:
    query = request.GET.copy()
    query.pop("check", None)
    query["page"] = str(number)
    return f"?{query.urlencode()}"


LINES_A_PAGE = 50


@login_required
def log(request: HttpRequest, slug: str) -> HttpResponse:
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
    project = managed_project(request, slug)
    found = LogFilter(request.GET, project=project).lines(project)
    rows = (
        (action.created_at, action.actor, action_sentence(action), action.route)
        for action in found.iterator(chunk_size=2000)
    )
    return csv_response(table_csv(["when", "who", "what", "route"], rows), name=f"{slug}-log")


@login_required
def populations(request: HttpRequest) -> HttpResponse:
    sheets = [population_sheets.sheet_of(each) for each in population_sheets.populations_of(request.user)]
    return render(request, "annotation/budget/populations.html", {"sheets": sheets, "may_open": may_open(request)})


@login_required
@permission_required("annotation.add_project", raise_exception=True)
def new_population(request: HttpRequest) -> HttpResponse:
    form = PopulationForm(request.POST or None)
    if request.method == "POST" and form.is_valid():
        opened = budget_populations.open_population(owner=person_of(request), **form.cleaned_data)
        return redirect("annotation:population", population=opened.slug)
    return render(request, "annotation/budget/new_population.html", {"form": form}, status=422 if form.errors else 200)


@login_required
def population(request: HttpRequest, population: str) -> HttpResponse:
    return _page(request, population_sheets.managed_population(request.user, population))


@login_required
@never_cache
def population_statement(request: HttpRequest, population: str) -> StreamingHttpResponse:
    return statement_response(population_sheets.managed_population(request.user, population))


@login_required
@require_POST
def join_population(request: HttpRequest, population: str) -> HttpResponse:
    found = population_sheets.managed_population(request.user, population)
    form = JoinForm(request.POST, projects=_joinable(request))
    if not form.is_valid():
        return _page(request, found, join=form)
    budget_populations.add_project(population=found, actor=person_of(request), **form.cleaned_data)
    messages.success(request, _("Saved."))
    return redirect("annotation:population", population=population)


@login_required
@require_POST
def population_limit(request: HttpRequest, population: str) -> HttpResponse:
    found = population_sheets.managed_population(request.user, population)
    form = CommonLimitForm(request.POST)
    if not form.is_valid():
        return _page(request, found, limit=form)
    asked = limits.change_limit(account=found, actor=person_of(request), **form.cleaned_data)
    if asked is None:
        messages.success(request, _("Saved."))
    else:
        messages.info(request, _("Waiting for another manager's approval. Nothing has changed yet."))
    return redirect("annotation:population", population=population)


@login_required
@require_POST
def population_managers(request: HttpRequest, population: str) -> HttpResponse:
    found = population_sheets.managed_population(request.user, population)
    form = AppointForm(request.POST)
    if not form.is_valid():
        return _page(request, found, appoint=form)
    limits.appoint_budget_manager(
        account=found, user=form.cleaned_data["manager"], reason=form.cleaned_data["reason"], actor=person_of(request)
    )
    messages.info(request, _("Waiting for another manager's approval. Nothing has changed yet."))
    return redirect("annotation:population", population=population)


@login_required
@require_POST
def decide_population(request: HttpRequest, population: str, wish_id: int) -> HttpResponse:
    found = population_sheets.managed_population(request.user, population)
    get_object_or_404(limits.requests_of(found), pk=wish_id)
    if request.POST.get("decision") == "approve":
        limits.approve_request(request_id=wish_id, of=found, actor=person_of(request))
        messages.success(request, _("Saved."))
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
