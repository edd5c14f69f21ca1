"""What a line of the log of actions says to a person: one sentence for each page and route that changes something."""

from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from annotation.history_models import Action

SENTENCES = {
    "annotation:new_project": _("Opened a project"),
    "annotation:wizard": _("Took a step in opening a project"),
    "annotation:open_beside": _("Prepared a project that asks at random beside this one"),
    "annotation:set_state": _("Paused or resumed the project"),
    "annotation:settings": _("Changed name, question or time for one"),
    "annotation:retention": _("Changed how long things are kept"),
    "annotation:configuration": _("Changed settings of the project"),
    "annotation:kind": _("Looked at another kind of project, or chose one"),
    "annotation:people": _("Gave somebody a role"),
    "annotation:remove_member": _("Took a role from somebody"),
    "annotation:invitations": _("Made an invitation"),
    "annotation:revoke_invitation": _("Revoked an invitation"),
    "annotation:join": _("Joined by an invitation"),
    "annotation:give_group_role": _("Gave a group a role"),
    "annotation:take_group_role": _("Took a role from a group"),
    "annotation:groups": _("Made a group"),
    "annotation:group": _("Put people into a group or took them out"),
    "annotation:rename_group": _("Gave a group another name"),
    "annotation:delete_group": _("Deleted a group"),
    "annotation:remove_from_group": _("Took somebody out of a group"),
    "annotation:group_invitations": _("Made an invitation into a group"),
    "annotation:revoke_group_invitation": _("Revoked an invitation into a group"),
    "group:joined": _("People came in by a group"),
    "group:left": _("People went with a group"),
    "annotation:crowd_links": _("Made a crowd link"),
    "annotation:revoke_crowd_link": _("Revoked a crowd link"),
    "annotation:quality": _("Changed how answers are checked"),
    "annotation:add_checks": _("Made hidden checks"),
    "annotation:retire_check": _("Retired a hidden check"),
    "annotation:compare_answers": _("Had the answers compared"),
    "annotation:set_pause": _("Paused an annotator or let one go on"),
    "annotation:settle": _("Settled a disputed question"),
    "annotation:data": _("Sent a file, to look at it first"),
    "annotation:preview": _("Decided about a file after a look at it"),
    "annotation:start_gate": _("Sent an upload through the gate again"),
    "annotation:gate": _("Chose the gate"),
    "annotation:survey": _("Had an upload counted for the plan of the gate"),
    "annotation:label_budget": _("Changed the annotation budget"),
    "annotation:change_limit": _("Changed the limit of an account, or asked a second manager to"),
    "annotation:decide_limit": _("Decided about another limit of an account"),
    "annotation:second_manager": _("Changed whether a limit needs a second manager"),
    "annotation:labelling": _("Changed how questions are handed out"),
    "annotation:guidelines": _("Wrote a version of the guidelines"),
    "annotation:decide": _("Decided about a question that was set aside"),
    "annotation:resolve": _("Settled a report"),
    "annotation:tokens": _("Made a token"),
    "annotation:revoke_token": _("Revoked a token"),
    "learner:compare_projects": _("Chose which project stands beside this one"),
    "learner:close_block": _("Closed a secret block"),
    "learner:cancel_work": _("Cancelled work"),
    "learner:retry_work": _("Started work anew"),
    "learner:draft_plan": _("Simulated what a budget would buy, before opening a project"),
    "learner:plan": _("Simulated what a budget buys"),
    "learner:set_archived": _("Archived the project or took it out of the archive"),
    "learner:delete_project": _("Deleted the project"),
    "learner:preview_forget": _("Looked at what is there of a contributor"),
    "learner:forget_now": _("Had a contributor forgotten"),
    "learner:webhooks": _("Added a webhook"),
    "learner:remove_webhook": _("Removed a webhook"),
    "learner:send_webhook_again": _("Sent a message to a webhook again"),
    "learner:check_again": _("Had a held-back release checked again"),
    "learner:retire": _("Retired a release"),
    "operations:send_again": _("Sent work to a worker again"),
    "operations:cancel": _("Cancelled work"),
    "api:upload_dataset": _("Uploaded a file by REST"),
    "api:preview_forgetting_of": _("Looked at what is there of a contributor, by REST"),
    "api:forget_contributor": _("Had a contributor forgotten, by REST"),
    "command:forget_contributor": _("Had a contributor forgotten, by command"),
    "retention": _("What was over its period was erased"),
}
# What the numbers of a line are numbers of.
NUMBERS = {
    "version": _("version"),
    "dataset_id": _("upload"),
    "query_id": _("question"),
    "report_id": _("report"),
    "account_id": _("account"),
    "membership_id": _("membership"),
    "group_id": _("group"),
    "given_id": _("role of a group"),
    "place_id": _("place in a group"),
    "people": _("people"),
    "records": _("records"),
    "answers": _("answers"),
    "comments": _("comments"),
    "uploads": _("reports about uploads"),
    "actions": _("lines of the log"),
}


def sentence_of(action: Action) -> str:
    """Return what somebody did, in the reader's language, with the numbers it was done to."""
    words = SENTENCES.get(action.route)
    said = str(words) if words is not None else gettext("Used %(route)s") % {"route": action.route}
    numbers = ", ".join(f"{NUMBERS.get(name, name)} {value}" for name, value in action.target.items())
    return f"{said} ({numbers})" if numbers else said
