"""Sentences of the log of actions: one for each page and route that changes something."""

from collections.abc import Iterable

from django.utils.functional import Promise
from django.utils.text import format_lazy
from django.utils.translation import gettext_lazy as _

from annotation.models.history import Action

# Objects and what was done to them, with the pages, REST routes and commands that do it; each add-on adds its own.
_ACTIONS: tuple[tuple[str | Promise, str | Promise, str], ...] = (
    (
        _("Project"),
        _("created"),
        "annotation:opening api:open_draft annotation:from_file api:open_project",
    ),
    (_("Project"), _("created"), "annotation:copy_project"),
    (_("Project"), _("changed"), "annotation:settings api:change_description"),
    (_("Project"), _("paused or resumed"), "annotation:set_state api:set_project_state"),
    (_("Project"), _("archived or restored"), "learner:set_archived api:set_archived"),
    (_("Project"), _("deleted"), "learner:delete_project api:delete_project"),
    (_("Settings"), _("changed"), "annotation:configuration api:change_configuration"),
    (_("How long things are kept"), _("changed"), "annotation:retention api:change_retention"),
    (_("Class"), _("added"), "annotation:classes api:add_class"),
    (_("Class"), _("renamed"), "annotation:rename_class api:rename_class"),
    (_("Class"), _("merged"), "annotation:merge_class api:merge_class"),
    (_("Class"), _("merge undone"), "annotation:take_back_merge api:take_back_merge"),
    (_("Role"), _("given or asked for"), "annotation:people api:add_member"),
    (_("Role"), _("removed"), "annotation:remove_member api:remove_member"),
    (_("Invitation"), _("created"), "annotation:invitations api:make_invitation"),
    (_("Invitation"), _("revoked"), "annotation:revoke_invitation api:revoke_invitation"),
    (_("Invitation"), _("accepted"), "annotation:join"),
    (_("Role"), _("given or asked for"), "annotation:give_group_role api:give_group_role"),
    (_("Role"), _("removed"), "annotation:take_group_role api:take_group_role"),
    (_("Group"), _("members joined"), "group:joined"),
    (_("Group"), _("members left"), "group:left"),
    (_("Crowd link"), _("created"), "annotation:crowd_links api:make_crowd_link"),
    (_("Crowd link"), _("revoked"), "annotation:revoke_crowd_link api:revoke_crowd_link"),
    (_("Mail"), _("changed"), "api:choose_mails"),
    (_("Token"), _("created"), "annotation:tokens"),
    (_("Token"), _("revoked"), "annotation:revoke_token"),
    (_("Quality"), _("changed"), "annotation:quality"),
    (_("Hidden checks"), _("added"), "annotation:add_checks api:add_checks"),
    (_("Hidden checks"), _("retired"), "annotation:retire_check api:retire_check"),
    (_("Agreement"), _("measured"), "annotation:compare_answers api:compare_answers"),
    (_("Annotator"), _("paused or resumed"), "annotation:set_pause"),
    (_("Annotator"), _("paused"), "api:pause_member"),
    (_("Annotator"), _("paused or resumed"), "api:resume_member"),
    (_("Question"), _("reviewed"), "annotation:settle api:decide_review"),
    (_("Question"), _("review undone"), "annotation:undo_review api:undo_review"),
    (_("Report"), _("answered"), "api:reply_to_report"),
    (_("Report"), _("resolved"), "annotation:resolve api:resolve_report"),
    (_("Question"), _("decided"), "annotation:decide api:decide_set_aside"),
    (_("Question"), _("changed"), "annotation:change_questions api:change_questions"),
    (_("Question"), _("assigned"), "question:assign"),
    (_("Question"), _("unassigned"), "question:unassign"),
    (_("Question"), _("set aside"), "question:set_aside"),
    (_("Question"), _("sent back"), "question:send_back"),
    (_("Labelling"), _("changed"), "annotation:labelling"),
    (_("Guidelines"), _("changed"), "annotation:guidelines api:write_guidelines"),
    (_("Picture"), _("added"), "annotation:add_guideline_picture api:add_guideline_picture"),
    (_("Picture"), _("deleted"), "annotation:drop_guideline_picture api:delete_guideline_picture"),
    (_("File"), _("previewed"), "annotation:data"),
    (_("File"), _("uploaded"), "api:upload_dataset"),
    (_("File"), _("accepted or discarded"), "annotation:preview"),
    (_("Table"), _("added"), "annotation:register_table api:register_table"),
    (_("Gate"), _("changed"), "annotation:gate api:choose_gate"),
    (_("Gate"), _("run again"), "annotation:start_gate api:start_gate"),
    (_("File"), _("counted"), "annotation:survey api:survey_dataset"),
    (_("Labels"), _("exported"), "annotation:exports api:start_export"),
    (_("Annotation budget"), _("changed"), "annotation:label_budget"),
    (_("Limit"), _("changed or asked for"), "annotation:change_limit api:change_limit"),
    (_("Limit"), _("decided"), "annotation:decide_limit api:decide_limit"),
    (_("Second manager"), _("changed"), "annotation:second_manager api:set_second_manager"),
    (_("Population"), _("created"), "annotation:new_population api:open_population"),
    (_("Population"), _("project added"), "annotation:join_population api:join_population"),
    (
        _("Population"),
        _("changed or asked for"),
        "annotation:population_limit api:change_common_limit annotation:population_managers"
        " api:ask_for_population_manager",
    ),
    (_("Population"), _("decided"), "annotation:decide_population api:decide_wish"),
    (_("Secret block"), _("closed"), "learner:close_block api:close_block"),
    (_("Model"), _("trained on fewer questions"), "learner:train_on_few api:train_on_few"),
    (_("Job"), _("cancelled"), "learner:cancel_work api:cancel_work operations:cancel api:stop_work"),
    (_("Job"), _("run again"), "learner:retry_work api:retry_work operations:send_again api:send_work_again"),
    (_("Budget"), _("simulated"), "learner:draft_plan learner:plan api:simulate_plan"),
    (_("Contributor"), _("previewed"), "learner:preview_forget api:preview_forgetting_of"),
    (_("Contributor"), _("erased"), "learner:forget_now api:forget_contributor command:forget_contributor"),
    (_("Release"), _("checked again"), "learner:check_again api:check_again"),
    (_("Release"), _("approved"), "learner:endorse api:endorse_model"),
    (_("Release"), _("retired"), "learner:retire api:retire_model"),
    (_("Class shares"), _("measured"), "learner:shares api:ask_shares"),
    (_("Channel"), _("changed"), "learner:channels"),
    (_("Channel"), _("changed"), "api:move_channel"),
    (_("Channel"), _("rolled back"), "api:roll_back_channel"),
    (_("Expired data"), _("erased"), "retention"),
)
_DOORS = {"api": " (REST)", "command": " (command line)"}


def by_action(rows: Iterable[tuple[str | Promise, str]]) -> dict[str, str | Promise]:
    """Return the sentence of each action; `rows` pair a sentence with its actions."""
    return {
        action: format_lazy("{}{}", sentence, _DOORS.get(action.partition(":")[0], ""))
        for sentence, actions in rows
        for action in actions.split()
    }


SENTENCES = by_action((format_lazy("{}: {}", thing, done), actions) for thing, done, actions in _ACTIONS)
# Names of the numbers that a line carries.
NUMBERS: dict[str, str | Promise] = {
    "version": _("Version"),
    "dataset_id": _("Upload"),
    "query_id": _("Question"),
    "report_id": _("Report"),
    "account_id": _("Account"),
    "request_id": _("request"),
    "wish_id": _("request"),
    "membership_id": _("membership"),
    "group_id": _("Group"),
    "given_id": _("Group"),
    "people": _("people"),
    "records": _("records"),
    "answers": _("Answers"),
    "comments": _("comments"),
    "uploads": _("Reports about uploads"),
    "actions": _("Log of actions"),
}


def action_sentence(action: Action) -> str:
    words = SENTENCES.get(action.route)
    said = str(words) if words is not None else action.route
    numbers = ", ".join(f"{NUMBERS.get(name, name)} {value}" for name, value in action.target.items())
    return f"{said} ({numbers})" if numbers else said
