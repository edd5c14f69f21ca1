import inspect
import re
from collections.abc import Iterator
from pathlib import Path

from django.conf import settings
from django.urls import get_resolver

from dpal_site.api import api
from tests.permission_scene import api_routes, named_patterns

TOKENS = (
    "a token neither makes nor ends tokens: who found a narrow one would make a wide one, or one that outlives it, "
    "and no second factor would be asked for"
)
NO_TOKEN_YET = "who comes here has no account, and so no token: whoever shows the secret of the address gets a session"
CONSENT = (
    "joining widens what all tokens of the person reach, so a person agrees to it in a session that asked for their "
    "factors; who invites has routes, and managers and administrators add people by name"
)
DRAFT = (
    "a draft is one person's until a project is opened from it; a program simulates and uses a plan by the "
    "project's routes"
)
# Routes that are not called as the page is.
ROUTES = {
    "annotation:classes": "add_class",
    "annotation:comment": "comment_on_assignment",
    "annotation:configuration": "change_configuration",
    "prolific:connect_platform": "connect_platform disconnect_platform",
    "annotation:copy_project": "open_project",
    "annotation:crowd_links": "make_crowd_link",
    "annotation:data": "upload_dataset",
    "annotation:decide": "decide_set_aside",
    "annotation:decide_population": "decide_wish",
    "annotation:drop_guideline_picture": "delete_guideline_picture",
    "annotation:exports": "start_export",
    "annotation:flag": "flag_assignment",
    "annotation:from_file": "open_project",
    "annotation:gate": "choose_gate",
    "annotation:guidelines": "write_guidelines",
    "annotation:invitations": "make_invitation",
    "prolific:judge_submission": "decide_participation",
    "annotation:label_budget": "change_configuration",
    "annotation:labelling": "change_configuration",
    "annotation:mails": "choose_mails",
    "annotation:new_population": "open_population",
    "annotation:new_project": "open_project draft_project",
    "annotation:opening": "open_draft discard_draft",
    "annotation:people": "add_member",
    "annotation:population_limit": "change_common_limit",
    "annotation:population_managers": "ask_for_population_manager",
    "annotation:preview": "upload_dataset",
    "annotation:quality": "change_configuration",
    "annotation:resolve": "resolve_report reply_to_report",
    "annotation:retention": "change_retention",
    "annotation:second_manager": "set_second_manager",
    "annotation:set_pause": "pause_member resume_member",
    "annotation:set_state": "set_project_state",
    "annotation:settings": "change_description",
    "annotation:settle": "decide_review claim_review",
    "annotation:skip": "skip_assignment",
    "prolific:studies": "open_study",
    "annotation:submit": "claim_assignment claim_batch label_assignment answer_batch",
    "annotation:survey": "survey_dataset",
    "annotation:undo": "undo_last",
    "annotation:write_back": "comment_on_assignment mark_comments_read",
    "learner:shares": "ask_shares",
    "learner:channels": "move_channel roll_back_channel",
    "learner:endorse": "endorse_model",
    "learner:forget_now": "forget_contributor",
    "learner:plan": "simulate_plan",
    "learner:preview_forget": "preview_forgetting_of",
    "learner:retire": "retire_model",
    "language_models:draft_for_project": "draft_words",
    "language_models:words_draft": "change_configuration",
    "webhooks:webhooks": "add_webhook",
    "operations:cancel": "stop_work",
    "operations:send_again": "send_work_again",
    # The cookies are one browser's; what mails follow of them has the route.
    "preferences": "choose_mails",
}
WITHOUT = {
    "annotation:crowd_start": NO_TOKEN_YET,
    "annotation:join": CONSENT,
    "annotation:revoke_token": TOKENS,
    "annotation:tokens": TOKENS,
    "first_account": NO_TOKEN_YET,
    "language_models:draft_for_opening": DRAFT,
    "learner:draft_plan": DRAFT,
}
# Files that pages give away, and the numbers that they show one person.
READING = {
    "annotation:bad_rows": "list_datasets",
    "annotation:configuration_file": "get_configuration_file",
    "annotation:log_csv": "list_actions",
    "annotation:opinions": "list_opinions",
    "annotation:own_statistics": "get_own_statistics",
    "annotation:payments": "list_payments",
    "annotation:population_statement": "get_population_statement",
    "annotation:settings": "list_configuration_changes get_description list_actions",
    "annotation:statement_csv": "list_entries",
    "annotation:statement_json": "get_statement",
    # The table of work is a list of its own.
    "learner:dashboard_csv": "list_dashboard_rows list_work",
    "learner:shares_csv": "list_shares",
}
A_FILE = re.compile(r"\.(csv|json|md)$")
# Buttons of a page that send one view another value each, and where its route takes the same.
BUTTON = re.compile(r'name="(?:action|decision|do)"\s+value="(\w+)"')
SEVERAL_BUTTONS = {
    "annotation/budget/limit_requests.html": ("LimitDecisionIn", "decision"),
    "annotation/budget/population.html": ("LimitDecisionIn", "decision"),
    "annotation/review/questions.html": ("ChangeIn", "action"),
    "annotation/questions/reported.html": ("SetAsideDecisionIn", "decision"),
    "annotation/review/review.html": ("DecisionIn", "decision"),
    "prolific/study.html": ("StudyChangeIn", "change"),
}
CALLED = {"leave": "leave_out"}
# Pages of the sign-in library and of the administration, and what is no page.
OTHERS = ("admin:", "api:", "hub:", "wheel:", "account_", "mfa_", "socialaccount_", "openid")


def pages_that_change() -> Iterator[str]:
    for name, pattern in named_patterns(get_resolver().url_patterns):
        view = inspect.unwrap(pattern.callback)
        if not name.startswith(OTHERS) and inspect.isfunction(view) and "POST" in inspect.getsource(view):
            yield name


def routes_of(page: str) -> set[str]:
    return set(ROUTES.get(page, page.partition(":")[2]).split())


def test_each_page_that_changes_something_has_a_route_or_says_why_not():
    pages = set(pages_that_change())
    known = {name for name, method in api_routes() if method != "GET"}
    assert ROUTES.keys() | WITHOUT.keys() <= pages
    assert [page for page in sorted(pages - WITHOUT.keys()) if not routes_of(page) <= known] == []


def test_each_file_has_a_route_that_reads_the_same():
    files = {
        name
        for name, pattern in named_patterns(get_resolver().url_patterns)
        if not name.startswith(OTHERS) and A_FILE.search(str(pattern.pattern))
    }
    assert len(files) > 8
    assert files <= READING.keys()
    assert {name for names in READING.values() for name in names.split()} <= {
        name for name, method in api_routes() if method == "GET"
    }


def test_a_page_without_a_row_is_noticed():
    assert "learner:close_block" in set(pages_that_change())
    assert "learner:releases" not in set(pages_that_change())


def buttons_by_template() -> dict[str, set[str]]:
    apps = ("annotation", "learner", *(f"addons/{name}" for name in settings.ADDONS))
    found = {
        str(path.relative_to(folder)): set(BUTTON.findall(path.read_text()))
        for folder in (Path(settings.BASE_DIR) / app / "templates" for app in apps)
        for path in folder.rglob("*.html")
    }
    return {name: values for name, values in found.items() if values}


def test_every_button_of_a_page_that_has_several_is_a_value_of_its_route():
    schemas = api.get_openapi_schema()["components"]["schemas"]
    buttons = buttons_by_template()
    assert buttons.keys() == SEVERAL_BUTTONS.keys()
    for page, (schema, field) in SEVERAL_BUTTONS.items():
        declared = schemas[schema]["properties"][field]
        taken = schemas[declared["$ref"].rsplit("/")[-1]] if "$ref" in declared else declared
        assert {CALLED.get(value, value) for value in buttons[page]} <= set(taken["enum"]), page


def test_a_button_is_noticed():
    assert {"ask", "leave", "skip", "set_aside", "return"} <= buttons_by_template()["annotation/review/review.html"]
