"""Who may do what: every address and API route of the site against every kind of person, row by row.

A row says what anonymous visitors, people outside the project, its annotators, its engineers, its managers, an
administrator who is no member, a participant whom a crowd platform sent, and its reviewers get, when they look or send:
`L` asked to log in, `-` it does not exist, `x` refused, `+` let in. A route without a row, or a row without a route,
fails. The pages of the sign-in library and of the administration are in `test_account_permissions.py`.
"""

import json
from typing import Any

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile
from django.test import Client
from django.urls import get_resolver, reverse

from annotation.models import Project
from annotation.people.services.tokens import Scope
from tests import learning
from tests.factories import make_user
from tests.permission_scene import PEOPLE, Scene, api_routes, letter, named_patterns, outcome, undone

pytestmark = pytest.mark.django_db(transaction=True)

MEMBERS, MANAGERS, INSIDE, ANNOTATORS = "L-+++-++", "L---+---", "L--++---", "L-+---+-"
REVIEWERS = "L---+--+"
# The same people, where a member in another role is told so.
ONLY_ANNOTATORS, ONLY_MANAGERS = "L-+xx-+x", "L--x+---"
PAGES = {
    "annotation:projects": "L+++++++",
    "annotation:choose_preset": "Lxxxx+xx",
    "annotation:new_project": "Lxxxx+xx",
    "annotation:wizard": "Lxxxx+xx",
    "annotation:open_beside": "Lxxxx-xx",
    "annotation:project": MEMBERS,
    "annotation:set_state": MANAGERS,
    "annotation:settings": MANAGERS,
    "annotation:log": MANAGERS,
    "annotation:log_csv": MANAGERS,
    "annotation:retention": MANAGERS,
    "annotation:configuration": MANAGERS,
    "annotation:configuration_file": MANAGERS,
    "annotation:copy_project": "Lxxxx-xx",
    "annotation:compare_configurations": MANAGERS,
    "annotation:from_file": "Lxxxx+xx",
    "annotation:classes": MANAGERS,
    "annotation:merge_class": MANAGERS,
    "annotation:take_back_merge": MANAGERS,
    "annotation:kind": MANAGERS,
    "annotation:people": MANAGERS,
    "annotation:remove_member": MANAGERS,
    "annotation:invitations": MANAGERS,
    "annotation:revoke_invitation": MANAGERS,
    "annotation:give_group_role": MANAGERS,
    "annotation:take_group_role": MANAGERS,
    "annotation:populations": "L+++++++",
    "annotation:new_population": "Lxxxx+xx",
    "annotation:population": MANAGERS,
    "annotation:population_statement": MANAGERS,
    "annotation:join_population": MANAGERS,
    "annotation:population_limit": MANAGERS,
    "annotation:population_managers": MANAGERS,
    "annotation:decide_population": MANAGERS,
    "annotation:groups": "Lxxxx+xx",
    "annotation:group": "Lxxxx+xx",
    "annotation:rename_group": "Lxxxx+xx",
    "annotation:delete_group": "Lxxxx+xx",
    "annotation:remove_from_group": "Lxxxx+xx",
    "annotation:group_invitations": "Lxxxx+xx",
    "annotation:revoke_group_invitation": "Lxxxx+xx",
    "annotation:crowd_links": MANAGERS,
    "annotation:revoke_crowd_link": MANAGERS,
    **dict.fromkeys(
        (
            *("annotation:studies", "annotation:connect_platform", "annotation:study", "annotation:change_study"),
            *("annotation:judge_submission", "annotation:give_bonuses", "annotation:settle_bonuses"),
        ),
        MANAGERS,
    ),
    "annotation:own_statistics": ANNOTATORS,
    "annotation:own_answers": ANNOTATORS,
    # Whoever was asked the question.
    "annotation:correct_answer": "L-+-----",
    "annotation:write_back": "L-+-----",
    "annotation:quality": MANAGERS,
    "annotation:add_checks": MANAGERS,
    "annotation:checks": MANAGERS,
    # Nothing is a check in the project.
    "annotation:check_image": "L-------",
    "annotation:retire_check": "L-------",
    "annotation:compare_answers": MANAGERS,
    "annotation:set_pause": MANAGERS,
    "annotation:review": REVIEWERS,
    "annotation:settle": REVIEWERS,
    # Nobody has decided anything, which whoever may is told.
    "annotation:undo_review": REVIEWERS,
    "annotation:review_image": "L-------",
    "annotation:payments": MANAGERS,
    "annotation:opinions": MANAGERS,
    "annotation:data": MANAGERS,
    "annotation:uploads": MANAGERS,
    # The look is the manager's own.
    "annotation:preview": MANAGERS,
    "annotation:dataset": MANAGERS,
    "annotation:bad_rows": MANAGERS,
    "annotation:start_gate": MANAGERS,
    "annotation:register_table": MANAGERS,
    "annotation:download_labels": MANAGERS,
    "annotation:exports": MANAGERS,
    "annotation:export_file": MANAGERS,
    "annotation:gate": MANAGERS,
    "annotation:survey": MANAGERS,
    "annotation:label_budget": MANAGERS,
    "annotation:budget": INSIDE,
    "annotation:statement": INSIDE,
    "annotation:statement_csv": INSIDE,
    "annotation:statement_json": INSIDE,
    "annotation:change_limit": MANAGERS,
    "annotation:limit_requests": MANAGERS,
    "annotation:decide_limit": MANAGERS,
    "annotation:second_manager": MANAGERS,
    "annotation:labelling": MANAGERS,
    "annotation:guidelines": MANAGERS,
    "annotation:add_guideline_picture": MANAGERS,
    "annotation:guideline_picture": REVIEWERS,
    "annotation:drop_guideline_picture": MANAGERS,
    "annotation:reported": MANAGERS,
    "annotation:questions": MANAGERS,
    "annotation:change_questions": MANAGERS,
    "annotation:keep_view": MANAGERS,
    # The view belongs to the manager.
    "annotation:drop_view": MANAGERS,
    "annotation:question": MANAGERS,
    "annotation:reply": MANAGERS,
    # Texts have no image, whoever asks.
    "annotation:asked_image": "L-------",
    "annotation:decide": MANAGERS,
    "annotation:resolve": MANAGERS,
    "annotation:tokens": "L+++++++",
    "annotation:mails": "L+++++++",
    # The token belongs to the manager.
    "annotation:revoke_token": MANAGERS,
    "annotation:label": ONLY_ANNOTATORS,
    "annotation:undo": ONLY_ANNOTATORS,
    "annotation:submit": ANNOTATORS,
    "annotation:skip": ANNOTATORS,
    "annotation:read_guidelines": ONLY_ANNOTATORS,
    "annotation:told_picture": ONLY_ANNOTATORS,
    "annotation:why": ONLY_ANNOTATORS,
    "annotation:flag": ANNOTATORS,
    "annotation:comment": ANNOTATORS,
    # Texts have no image, whoever asks.
    "annotation:question_image": "L-------",
    "learner:overview": INSIDE,
    "learner:dashboard": INSIDE,
    "learner:dashboard_plot": INSIDE,
    "learner:dashboard_csv": INSIDE,
    "learner:work_list": MANAGERS,
    "learner:compare_projects": MANAGERS,
    "learner:cancel_work": MANAGERS,
    "learner:retry_work": MANAGERS,
    "learner:standing": MANAGERS,
    "learner:next_step": MANAGERS,
    "learner:card": INSIDE,
    # No block is open in the project, which a manager is told like this.
    "learner:close_block": "L--x----",
    "learner:train_on_few": ONLY_MANAGERS,
    "learner:ranked_pool": MANAGERS,
    "learner:closing": MANAGERS,
    "learner:set_archived": MANAGERS,
    "learner:delete_project": MANAGERS,
    "learner:forget": MANAGERS,
    "learner:preview_forget": MANAGERS,
    "learner:forget_now": MANAGERS,
    "learner:releases": INSIDE,
    "learner:evaluation": INSIDE,
    "learner:evidence": INSIDE,
    "learner:download_evaluation": INSIDE,
    "learner:draft_plan": "Lxxxx+xx",
    "learner:draft_plan_plot": "Lxxxx-xx",
    "learner:plan": MANAGERS,
    "learner:use_plan": MANAGERS,
    "learner:use_draft_plan": "Lxxxx+xx",
    # Nobody has simulated under this name.
    "learner:plan_plot": "L-------",
    "learner:release": INSIDE,
    "learner:check_again": ONLY_MANAGERS,
    "learner:endorse": ONLY_MANAGERS,
    "learner:accuracy_plot": INSIDE,
    "learner:measure_plot": INSIDE,
    "learner:retire": ONLY_MANAGERS,
    "learner:release_file": INSIDE,
    "learner:channels": MANAGERS,
    "learner:webhooks": MANAGERS,
    "learner:change_webhook": MANAGERS,
    "learner:rotate_webhook_secret": MANAGERS,
    "learner:remove_webhook": MANAGERS,
    "learner:send_webhook_again": MANAGERS,
    "preferences": "++++++++",
    # Leads on whoever has a second factor or needs none.
    "second_factor": "L+++++++",
    "operations:work": "Lxxxx+xx",
    "operations:send_again": "Lxxxx+xx",
    "operations:cancel": "Lxxxx+xx",
}
# Open to whoever holds the address or knows a secret; each has tests of its own.
OPEN = {
    "first_account",
    "annotation:join",
    "annotation:crowd_start",
    "annotation:crowd_done",
    "healthz",
    "readyz",
    "metrics",
    "login",
    "logout",
    "api:openapi-json",
    "api:openapi-view",
    "api:api-root",
    "hub:model",
    "hub:revision",
    "hub:tree",
    "hub:file",
}
# The sign-in library's pages and the administration, which have tables of their own.
ELSEWHERE = ("account_", "mfa_", "socialaccount_", "openid_connect_", "usersessions_", "admin:")
# Routes of the API that share an address have a name each.
TWICE: frozenset[str] = frozenset()
# Of those, what a visitor and an outsider get without the secret in the address.
OPEN_ANSWERS = {
    # Somebody has an account by then.
    "first_account": [404, 404],
    "healthz": [200, 200],
    "metrics": [200, 200],
    "login": [200, 302],
    "logout": [405, 405],
    "api:openapi-json": [200, 200],
    "api:openapi-view": [200, 200],
    "api:api-root": [404, 404],
    # A token opens them, as tests/journeys/test_hub.py tells; being logged in does not.
    "hub:model": [401, 401],
    "hub:revision": [401, 401],
    "hub:tree": [401, 401],
    "hub:file": [401, 401],
    "annotation:crowd_done": [302, 404],
    "annotation:join": [410, 410],
    "annotation:crowd_start": [410, 410],
}
# What the roles get with a token of every scope, and the scope without which everybody is refused.
ROUTES: dict[str, tuple[str, Scope]] = {
    "list_projects": ("L+++++++", Scope.PROJECTS_READ),
    "get_project": (MEMBERS, Scope.PROJECTS_READ),
    "list_choices": ("L+++++++", Scope.PROJECTS_READ),
    "get_configuration": (MANAGERS, Scope.PROJECTS_READ),
    "get_configuration_file": (MANAGERS, Scope.PROJECTS_READ),
    "get_differences": (MANAGERS, Scope.PROJECTS_READ),
    "open_project": ("Lxxxx+xx", Scope.PROJECTS_WRITE),
    "change_configuration": (MANAGERS, Scope.PROJECTS_WRITE),
    "add_class": (MANAGERS, Scope.PROJECTS_WRITE),
    "merge_class": (MANAGERS, Scope.PROJECTS_WRITE),
    "take_back_merge": (MANAGERS, Scope.PROJECTS_WRITE),
    "upload_dataset": (MANAGERS, Scope.DATASETS_WRITE),
    "register_table": (MANAGERS, Scope.DATASETS_WRITE),
    "list_datasets": (MANAGERS, Scope.DATASETS_WRITE),
    "post_records": (MANAGERS, Scope.DATASETS_WRITE),
    "get_job": (MANAGERS, Scope.DATASETS_WRITE),
    "claim_assignment": (ANNOTATORS, Scope.LABELS_WRITE),
    "label_assignment": (ANNOTATORS, Scope.LABELS_WRITE),
    "skip_assignment": (ANNOTATORS, Scope.LABELS_WRITE),
    "undo_last": (ANNOTATORS, Scope.LABELS_WRITE),
    "flag_assignment": (ANNOTATORS, Scope.LABELS_WRITE),
    "list_own_answers": (ANNOTATORS, Scope.LABELS_WRITE),
    "correct_answer": (ANNOTATORS, Scope.LABELS_WRITE),
    "get_review": (REVIEWERS, Scope.LABELS_WRITE),
    "claim_review": (REVIEWERS, Scope.LABELS_WRITE),
    "undo_review": (REVIEWERS, Scope.LABELS_WRITE),
    "decide_review": (REVIEWERS, Scope.LABELS_WRITE),
    # Of records that are images, which this one is not.
    "get_assignment_image": ("L-------", Scope.LABELS_WRITE),
    "get_question_image": ("L-------", Scope.LABELS_READ),
    "get_review_image": ("L-------", Scope.LABELS_WRITE),
    "list_guideline_pictures": (MANAGERS, Scope.PROJECTS_READ),
    "get_guideline_picture": ("L-+-+-++", Scope.PROJECTS_READ),
    "add_guideline_picture": (MANAGERS, Scope.PROJECTS_WRITE),
    "delete_guideline_picture": (MANAGERS, Scope.PROJECTS_WRITE),
    "list_questions": (MANAGERS, Scope.LABELS_READ),
    "get_question": (MANAGERS, Scope.LABELS_READ),
    "change_questions": (MANAGERS, Scope.PROJECTS_WRITE),
    "list_views": (MANAGERS, Scope.LABELS_READ),
    "keep_view": (MANAGERS, Scope.PROJECTS_WRITE),
    "list_comments": (MANAGERS, Scope.LABELS_READ),
    "write_comment": (MANAGERS, Scope.PROJECTS_WRITE),
    "mark_comments_heard": (MANAGERS, Scope.PROJECTS_WRITE),
    "list_own_comments": (ANNOTATORS, Scope.LABELS_WRITE),
    "comment_on_assignment": (ANNOTATORS, Scope.LABELS_WRITE),
    "mark_comments_read": (ANNOTATORS, Scope.LABELS_WRITE),
    "drop_view": (MANAGERS, Scope.PROJECTS_WRITE),
    "export_labels": (MANAGERS, Scope.LABELS_READ),
    "start_export": (MANAGERS, Scope.LABELS_READ),
    "get_export": (MANAGERS, Scope.LABELS_READ),
    "list_accounts": (INSIDE, Scope.LEDGER_READ),
    "list_entries": (INSIDE, Scope.LEDGER_READ),
    "get_statement": (INSIDE, Scope.LEDGER_READ),
    "list_checkpoints": (INSIDE, Scope.LEDGER_READ),
    "get_consistency": (INSIDE, Scope.LEDGER_READ),
    "get_inclusion": (INSIDE, Scope.LEDGER_READ),
    "list_studies": (MANAGERS, Scope.PROJECTS_READ),
    "get_study": (MANAGERS, Scope.PROJECTS_READ),
    "get_platform": (MANAGERS, Scope.PROJECTS_READ),
    "connect_platform": (MANAGERS, Scope.STUDIES_WRITE),
    "disconnect_platform": (MANAGERS, Scope.STUDIES_WRITE),
    "open_study": (MANAGERS, Scope.STUDIES_WRITE),
    "change_study": (MANAGERS, Scope.STUDIES_WRITE),
    "decide_participation": (MANAGERS, Scope.STUDIES_WRITE),
    "give_bonuses": (MANAGERS, Scope.STUDIES_WRITE),
    "settle_bonuses": (MANAGERS, Scope.STUDIES_WRITE),
    "list_populations": ("L+++++++", Scope.LEDGER_READ),
    "get_population": (MANAGERS, Scope.LEDGER_READ),
    "list_population_checkpoints": (MANAGERS, Scope.LEDGER_READ),
    "get_population_consistency": (MANAGERS, Scope.LEDGER_READ),
    "get_population_statement": (MANAGERS, Scope.LEDGER_READ),
    "open_population": ("Lxxxx+xx", Scope.PROJECTS_WRITE),
    "join_population": (MANAGERS, Scope.PROJECTS_WRITE),
    "change_common_limit": (MANAGERS, Scope.PROJECTS_WRITE),
    "list_population_managers": (MANAGERS, Scope.LEDGER_READ),
    "ask_for_population_manager": (MANAGERS, Scope.PROJECTS_WRITE),
    "list_wishes": (MANAGERS, Scope.LEDGER_READ),
    "decide_wish": (MANAGERS, Scope.PROJECTS_WRITE),
    "list_members": (MANAGERS, Scope.PROJECTS_READ),
    "list_actions": (MANAGERS, Scope.PROJECTS_READ),
    "add_member": (MANAGERS, Scope.PROJECTS_WRITE),
    "remove_member": (MANAGERS, Scope.PROJECTS_WRITE),
    "list_group_roles": (MANAGERS, Scope.PROJECTS_READ),
    "give_group_role": (MANAGERS, Scope.PROJECTS_WRITE),
    "take_group_role": (MANAGERS, Scope.PROJECTS_WRITE),
    "list_invitations": (MANAGERS, Scope.PROJECTS_READ),
    "make_invitation": (MANAGERS, Scope.PROJECTS_WRITE),
    "revoke_invitation": (MANAGERS, Scope.PROJECTS_WRITE),
    "list_crowd_links": (MANAGERS, Scope.PROJECTS_READ),
    "make_crowd_link": (MANAGERS, Scope.PROJECTS_WRITE),
    "revoke_crowd_link": (MANAGERS, Scope.PROJECTS_WRITE),
    "list_checks": (MANAGERS, Scope.LABELS_READ),
    "add_checks": (MANAGERS, Scope.PROJECTS_WRITE),
    # Nothing is a check in the project, and nothing was compared.
    "retire_check": ("L-------", Scope.PROJECTS_WRITE),
    "get_check_image": ("L-------", Scope.LABELS_READ),
    "get_agreement": ("L-------", Scope.LABELS_READ),
    "compare_answers": (MANAGERS, Scope.PROJECTS_WRITE),
    "list_annotators": (MANAGERS, Scope.LABELS_READ),
    "list_payments": (MANAGERS, Scope.LABELS_READ),
    "list_opinions": (MANAGERS, Scope.LABELS_READ),
    "get_own_statistics": (ANNOTATORS, Scope.LABELS_WRITE),
    "pause_member": (MANAGERS, Scope.PROJECTS_WRITE),
    "resume_member": (MANAGERS, Scope.PROJECTS_WRITE),
    # Whoever writes them, and whoever is told.
    "get_guidelines": ("L-+-+-++", Scope.PROJECTS_READ),
    "write_guidelines": (MANAGERS, Scope.PROJECTS_WRITE),
    "read_guidelines": (ANNOTATORS, Scope.LABELS_WRITE),
    "list_set_aside": (MANAGERS, Scope.LABELS_READ),
    "decide_set_aside": (MANAGERS, Scope.PROJECTS_WRITE),
    "list_reports": (MANAGERS, Scope.LABELS_READ),
    "resolve_report": (MANAGERS, Scope.PROJECTS_WRITE),
    "get_gate": (MANAGERS, Scope.PROJECTS_READ),
    "choose_gate": (MANAGERS, Scope.PROJECTS_WRITE),
    "survey_dataset": (MANAGERS, Scope.DATASETS_WRITE),
    "list_models": (INSIDE, Scope.MODELS_READ),
    "get_model": (INSIDE, Scope.MODELS_READ),
    "get_file": (INSIDE, Scope.MODELS_READ),
    "predict": (INSIDE, Scope.MODELS_READ),
    "list_rounds": (INSIDE, Scope.MODELS_READ),
    "list_channels": (INSIDE, Scope.MODELS_READ),
    "move_channel": (MANAGERS, Scope.PROJECTS_WRITE),
    "roll_back_channel": (MANAGERS, Scope.PROJECTS_WRITE),
    "retire_model": (MANAGERS, Scope.PROJECTS_WRITE),
    "get_model_difference": (INSIDE, Scope.MODELS_READ),
    "get_next_step": (MANAGERS, Scope.PROJECTS_READ),
    "get_plan": (MANAGERS, Scope.LEDGER_READ),
    "get_plan_rows": (MANAGERS, Scope.LEDGER_READ),
    "simulate_plan": (MANAGERS, Scope.PROJECTS_WRITE),
    "use_plan": (MANAGERS, Scope.PROJECTS_WRITE),
    "get_evidence": (INSIDE, Scope.MODELS_READ),
    "get_evaluation": (INSIDE, Scope.MODELS_READ),
    "preview_forgetting_of": (MANAGERS, Scope.DATASETS_WRITE),
    "forget_contributor": (MANAGERS, Scope.DATASETS_WRITE),
    "list_forgettings": (MANAGERS, Scope.DATASETS_WRITE),
    "list_configuration_changes": (MANAGERS, Scope.PROJECTS_READ),
    "get_description": (MANAGERS, Scope.PROJECTS_READ),
    "change_description": (MANAGERS, Scope.PROJECTS_WRITE),
    "set_project_state": (MANAGERS, Scope.PROJECTS_WRITE),
    "list_retention": (MANAGERS, Scope.PROJECTS_READ),
    "change_retention": (MANAGERS, Scope.PROJECTS_WRITE),
    "preview_kind": (MANAGERS, Scope.PROJECTS_WRITE),
    "change_kind": (MANAGERS, Scope.PROJECTS_WRITE),
    "set_archived": (MANAGERS, Scope.PROJECTS_WRITE),
    "get_deletion": (MANAGERS, Scope.PROJECTS_READ),
    "delete_project": (MANAGERS, Scope.PROJECTS_WRITE),
    "list_limit_requests": (MANAGERS, Scope.LEDGER_READ),
    "change_limit": (MANAGERS, Scope.PROJECTS_WRITE),
    "decide_limit": (MANAGERS, Scope.PROJECTS_WRITE),
    "get_second_manager": (MANAGERS, Scope.LEDGER_READ),
    "set_second_manager": (MANAGERS, Scope.PROJECTS_WRITE),
    "start_gate": (MANAGERS, Scope.DATASETS_WRITE),
    # The manager of the scene may not open projects, and who may manages none.
    "open_beside": ("Lxxxx-xx", Scope.PROJECTS_WRITE),
    "list_work": (MANAGERS, Scope.PROJECTS_READ),
    "list_dashboard_rows": (INSIDE, Scope.LEDGER_READ),
    "cancel_work": (MANAGERS, Scope.PROJECTS_WRITE),
    "retry_work": (MANAGERS, Scope.PROJECTS_WRITE),
    "get_comparison": (MANAGERS, Scope.PROJECTS_READ),
    "compare_projects": (MANAGERS, Scope.PROJECTS_WRITE),
    "close_block": (MANAGERS, Scope.PROJECTS_WRITE),
    "train_on_few": (MANAGERS, Scope.PROJECTS_WRITE),
    "check_again": (MANAGERS, Scope.PROJECTS_WRITE),
    "endorse_model": (MANAGERS, Scope.PROJECTS_WRITE),
    "list_webhooks": (MANAGERS, Scope.PROJECTS_READ),
    "add_webhook": (MANAGERS, Scope.PROJECTS_WRITE),
    "list_deliveries": (MANAGERS, Scope.PROJECTS_READ),
    "send_webhook_again": (MANAGERS, Scope.PROJECTS_WRITE),
    "remove_webhook": (MANAGERS, Scope.PROJECTS_WRITE),
    "change_webhook": (MANAGERS, Scope.PROJECTS_WRITE),
    "rotate_webhook_secret": (MANAGERS, Scope.PROJECTS_WRITE),
    **dict.fromkeys(("list_groups", "get_group", "list_group_invitations"), ("Lxxxx+xx", Scope.GROUPS_READ)),
    **dict.fromkeys(
        (
            *("make_group", "rename_group", "delete_group", "add_group_people", "remove_group_people"),
            *("remove_from_group", "make_group_invitation", "revoke_group_invitation"),
        ),
        ("Lxxxx+xx", Scope.GROUPS_WRITE),
    ),
    "get_mails": ("L+++++++", Scope.MAILS_WRITE),
    "choose_mails": ("L+++++++", Scope.MAILS_WRITE),
    "get_operations": ("Lxxxx+xx", Scope.OPERATIONS_READ),
    "send_work_again": ("Lxxxx+xx", Scope.OPERATIONS_WRITE),
    "stop_work": ("Lxxxx+xx", Scope.OPERATIONS_WRITE),
}
KIND = {"oracle": "trusted", "arrival": "stream", "privacy_unit": "record"}
BODIES: dict[str, Any] = {
    "post_records": {"records": [{"text": "hello"}]},
    "label_assignment": {"choice": 0},
    "skip_assignment": {},
    "decide_review": {"decision": "settle", "choice": 0},
    "write_comment": {"annotator": "annotator", "text": "hello"},
    "mark_comments_heard": {"annotator": "annotator"},
    "comment_on_assignment": {"text": "hello"},
    "change_configuration": {"settings": {}},
    "simulate_plan": {"records": 300},
    "use_plan": {"records": 300, "fingerprint": "0" * 64, "row": 1},
    "add_class": {"name": "one more"},
    "merge_class": {"name": "yes", "into": "no"},
    "take_back_merge": {"name": "yes"},
    "change_questions": {"action": "tag", "questions": [1], "tag": "look"},
    "keep_view": {"name": "mine", "chosen": {"state": "open"}},
    "open_project": {"format": "dpal-configuration", "format_version": 1, "preset": "pool-experts", "settings": {}},
    "open_population": {
        "name": "more",
        "unit": "record",
        "filter": "pure",
        "epsilon_limit": 1.0,
        "delta_limit": 0.0,
        "second_manager": "annotator",
    },
    "connect_platform": {"token": "not-a-real-token", "fee_percent": "40"},
    "open_study": {"name": "n", "description": "d", "places": 1, "pay_per_place": "1", "minutes": 5},
    "change_study": {"change": "look"},
    "decide_participation": {"participation": 1, "decision": "return", "message": "it is not done"},
    "give_bonuses": {"key": "00000000-0000-4000-8000-000000000000", "bonuses": [{"participant": "p", "amount": "1"}]},
    "settle_bonuses": {"came": True},
    "join_population": {"population": "everybody", "records_per_person": 1},
    "change_common_limit": {"epsilon_limit": 1.0, "delta_limit": 0.0, "reason": "r"},
    "add_member": {"username": "annotator", "role": "engineer"},
    "give_group_role": {"group": "Night shift", "role": "engineer"},
    "make_invitation": {"role": "annotator"},
    "make_crowd_link": {"platform": "prolific"},
    "ask_for_population_manager": {"manager": "annotator", "reason": "r"},
    "decide_wish": {"decision": "refuse"},
    "add_checks": {"dataset": 1},
    "write_guidelines": {"text": "hello"},
    "decide_set_aside": {"decision": "ask"},
    "choose_gate": {"gate_kind": "k_anonymity", "gate_epsilon": 1.0, "gate_k": 20, "gate_sampling_rate": 0.1},
    "flag_assignment": {"kind": "broken"},
    "correct_answer": {"choice": 0},
    "predict": {"texts": ["hello"]},
    "move_channel": {"version": 1, "reason": "r"},
    "roll_back_channel": {"reason": "r"},
    "retire_model": {"reason": "r"},
    "register_table": {"address": "file:///srv/lake/log"},
    "preview_forgetting_of": {"contributor": "nobody"},
    "forget_contributor": {"contributor": "nobody"},
    "change_description": {"name": "another"},
    "set_project_state": {"state": "paused"},
    "change_retention": {"comments_days": 30},
    "preview_kind": KIND,
    "change_kind": KIND,
    "set_archived": {"archived": True},
    "delete_project": {"typed": "another"},
    "change_limit": {"epsilon_limit": 1.0, "delta_limit": 0.0, "reason": "r"},
    "decide_limit": {"decision": "refuse"},
    "set_second_manager": {"needed": True},
    "compare_projects": {"beside": None},
    "endorse_model": {"reason": "r"},
    "add_webhook": {"url": "https://hooks.example/", "events": ["round"]},
    "change_webhook": {"events": ["round"]},
    "make_group": {"name": "Day shift"},
    "rename_group": {"name": "Late shift"},
    "delete_group": {"typed": "another"},
    "add_group_people": {"people": ["annotator"]},
    "remove_group_people": {"people": ["annotator"]},
    "make_group_invitation": {},
    "choose_mails": {"often": "daily"},
}
# Routes that take a file instead, and what one of them asks for beside it.
FILES = {"upload_dataset": ("more.csv", b"text\nhello\n"), "add_guideline_picture": ("a.png", b"none")}
SENT = {"description": "blue"}


def test_every_page_lets_in_whom_its_row_says() -> None:
    scene = Scene()
    clients = {person: scene.client(person) for person in PEOPLE}
    got = {}
    for name, pattern in named_patterns(get_resolver().url_patterns):
        if name in PAGES:
            letters = [letter(clients[person], scene.address(name, pattern, person)) for person in PEOPLE]
            got[name] = "".join(letters) if max(map(len, letters)) == 1 else " ".join(letters)
    assert [f"{name} {row}" for name, row in got.items() if row != PAGES[name]] == []
    assert got.keys() == PAGES.keys()


def test_every_address_has_a_row() -> None:
    names = {name for name, _ in named_patterns(get_resolver().url_patterns)}
    elsewhere = {name for name in names if name == "" or name.startswith(ELSEWHERE)}
    routes = {f"api:{name}" for name in ROUTES}
    assert names - elsewhere == set(PAGES) | OPEN | routes
    # One name, one address: a second one under the name of a page with a row would hide behind it.
    told_apart = [name for name, _ in named_patterns(get_resolver().url_patterns) if name not in elsewhere]
    assert len(told_apart) == len(names - elsewhere) + len(TWICE)


def test_every_route_of_the_api_lets_in_whom_its_row_says() -> None:
    scene = Scene()
    routes = dict(api_routes())
    patterns = dict(named_patterns(get_resolver().url_patterns))
    everything = list(Scope)
    needs = {needed for _row, needed in ROUTES.values()}
    # The one scope alone is enough, and all the others together are not.
    alone = {needed: {person: scene.with_token(person, [needed]) for person in PEOPLE} for needed in needs}
    lacking = {
        needed: {person: scene.with_token(person, [each for each in everything if each != needed]) for person in PEOPLE}
        for needed in needs
    }
    got, scoped = {}, {}
    for name, method in routes.items():
        pattern = patterns[f"api:{name}"]
        addresses = {person: scene.address(f"api:{name}", pattern, person) for person in PEOPLE}

        def sent(client: Client, person: str, name: str = name, method: str = method, to: Any = addresses) -> str:
            address = to[person]
            if name in FILES:
                return outcome(undone(lambda: client.post(address, SENT | {"file": SimpleUploadedFile(*FILES[name])})))
            return outcome(
                undone(lambda: client.generic(method, address, json_body(name), content_type="application/json"))
            )

        needed = ROUTES[name][1]
        got[name] = ("".join(sent(alone[needed][person], person) for person in PEOPLE), needed)
        scoped[name] = {sent(lacking[needed][person], person) for person in PEOPLE[1:]}
    assert got == ROUTES
    assert scoped == {name: {"x"} for name in scoped}


def json_body(name: str) -> str:
    return json.dumps(BODIES.get(name, {}))


def test_addresses_that_need_no_login_give_nothing_away() -> None:
    """Whoever comes without the secret in the address, and whoever has no part in a project, gets one and the same."""
    project: Project = learning.open_crowd(make_user("owner"))
    outsider = make_user("outsider")
    values = {"secret": "s" * 43, "token": "t" * 43, "slug": project.slug, "revision": "main", "name": "weights.json"}
    got = {}
    for name, pattern in named_patterns(get_resolver().url_patterns):
        if name not in OPEN:
            continue
        address = reverse(name, kwargs={argument: values[argument] for argument in pattern.pattern.converters})
        for person in (None, outsider):
            client = Client(raise_request_exception=False)
            if person is not None:
                client.force_login(person)
            answer = client.get(address)
            body = b"" if answer.streaming else answer.content
            assert project.name.encode() not in body, name
            if name == "readyz":  # depends on workers and disk
                assert answer.status_code in (200, 503)
                continue
            got.setdefault(name, []).append(answer.status_code)
    assert got == OPEN_ANSWERS
