"""Commands of whoever runs a project: people, limits, its state, tables, and work in hand."""

import operator
import sys
import time
from collections.abc import Callable, Mapping
from typing import Any

import click

from dpal.errors import DpalError
from dpal.site import Site, quoted

POLL_SECONDS = 1.0


def follow(site: Site, job: str) -> Any:
    """Wait for the end of a job and return how it ended; a failed one is an error."""
    click.echo(f"job {job}", err=True)
    with click.progressbar(length=1, label="waiting", file=sys.stderr) as bar:
        while True:
            status = site.request("GET", f"jobs/{quoted(job)}")
            bar.label, bar.length = status["state"], status["progress_total"] or 1
            bar.update(status["progress_done"] - bar.pos)
            if status["state"] not in ("waiting", "running"):
                break
            time.sleep(POLL_SECONDS)
    if status["state"] != "done":
        raise DpalError(f"The job {status['state']}: {status['error'] or status['message'] or 'no reason given'}")
    return status


def ended(job: Mapping[str, Any]) -> str:
    return str(job["message"] or "done")


def follow_upload(site: Site, project: str, sent: Mapping[str, Any]) -> Any:
    """Wait until what was sent is read and, in front of a crowd, has gone through the gate."""
    job = follow(site, sent["job"]["id"])
    uploads = site.pages(f"projects/{quoted(project)}/datasets")
    found = next((one for one in uploads if one["id"] == sent["id"]), {**sent, "job": job})
    if gate := found.get("gate_job"):
        found["gate_job"] = follow(site, gate["id"])
    return found


def sent_line(sent: Mapping[str, Any]) -> str:
    charge, jobs = sent.get("charge"), [one for one in (sent["job"], sent.get("gate_job")) if one]
    lines = [f"charged: epsilon {charge['epsilon']:g}, delta {charge['delta']:g}"] if charge else []
    lines += [f"job {one['id']}" for one in jobs]
    return "\n".join([*lines, *(ended(one) for one in jobs if one["state"] == "done")])


ROLES = click.Choice(["annotator", "reviewer", "engineer", "manager"])


def add_to(group: click.Group, with_site: Callable[[Any], Any], shows: Callable[..., Callable[[Any], Any]]) -> None:
    """Put the commands into a group."""
    for command, line in (
        (people, _person_line),
        (work, _work_line),
        (state, operator.itemgetter("state")),
        (invite, operator.itemgetter("link")),
        (limit, _limited),
        (decide, lambda done: f"Request {done['request']} is {done['state']}."),
        (table, sent_line),
    ):
        group.command(command.__name__)(with_site(shows(line)(command)))


@click.argument("project")
def people(project: str, site: Site) -> Any:
    """List who takes part in PROJECT, role by role."""
    return site.request("GET", f"projects/{quoted(project)}/members")


def _person_line(one: Mapping[str, Any]) -> str:
    by = ", ".join(one["groups"])
    return f"{one['username']:30}  {one['role']:10}  {one['labels']:8} labels{f'  by {by}' if by else ''}"


@click.argument("project")
@click.argument("role", type=ROLES)
@click.option("--uses", default=1, show_default=True, type=click.IntRange(1, 1000), help="People at most.")
@click.option("--days", default=7, show_default=True, type=click.IntRange(1, 90), help="Until it ends.")
@click.option("--mail", default="", help="Send it there as well.")
@click.option("--note", default="", help="For managers: whom it is for.")
def invite(project: str, role: Any, uses: int, days: int, mail: str, note: str, site: Site) -> Any:
    """Print a link by which somebody joins PROJECT with a ROLE; it is told this once."""
    wanted = {"role": role, "maximum_uses": uses, "days": days, "address": mail, "note": note}
    return site.request("POST", f"projects/{quoted(project)}/invitations", body=wanted)


@click.argument("project")
@click.argument("epsilon", type=float, required=False)
@click.argument("delta", type=float, required=False)
@click.option("--account", default="", help="Which account, as `dpal budget` names it; by default the first.")
@click.option("--reason", default="", help="Stays in the ledger with a change.")
def limit(project: str, epsilon: float | None, delta: float | None, account: str, reason: str, site: Site) -> Any:
    """Set the limit of an account of PROJECT to EPSILON and DELTA, or without them list what was asked for."""
    path = f"projects/{quoted(project)}/ledger/limits"
    if epsilon is None:
        return site.pages(path)
    if delta is None or not reason:
        raise DpalError("A change needs EPSILON, DELTA and --reason.")
    wanted = {"account": account, "epsilon_limit": epsilon, "delta_limit": delta, "reason": reason}
    done = site.request("POST", path, body=wanted)
    return {**done, "project": project, "epsilon_limit": epsilon, "delta_limit": delta}


def _limited(one: Mapping[str, Any]) -> str:
    if "project" in one:
        decide_it = f"dpal decide {one['project']} {one['request']} approve"
        waits = f"Request {one['request']} waits for another manager: {decide_it}"
        amounts = f"({one['epsilon_limit']:g}, {one['delta_limit']:g})"
        return waits if one["state"] == "waiting" else f"The limit is {amounts}."
    amounts = "" if one["epsilon_limit"] is None else f"({one['epsilon_limit']:g}, {one['delta_limit']:g})  "
    return f"{one['request']:6}  {one['state']:10}  {one['kind']:10}  {amounts}{one['requested_by']}: {one['reason']}"


@click.argument("project")
@click.argument("request", type=int)
@click.argument("decision", type=click.Choice(["approve", "refuse"]))
def decide(project: str, request: int, decision: Any, site: Site) -> Any:
    """Decide about a REQUEST of another manager of PROJECT; refusing one's own takes it back."""
    path = f"projects/{quoted(project)}/ledger/limits/{request}"
    return site.request("POST", path, body={"decision": decision})


@click.argument("project")
@click.argument("wanted", type=click.Choice(["active", "paused"]), required=False)
def state(project: str, wanted: Any, site: Site) -> Any:
    """Show whether PROJECT is active, or pause it, or let it go on."""
    path = f"projects/{quoted(project)}"
    return site.request("POST", f"{path}/state", body={"state": wanted}) if wanted else site.request("GET", path)


@click.argument("project")
def work(project: str, site: Site) -> Any:
    """List jobs, rounds and trainings of PROJECT, newest first, and how far they are."""
    return site.request("GET", f"projects/{quoted(project)}/work")


def _work_line(one: Mapping[str, Any]) -> str:
    said = one["error"] or (f"{one['done']} of {one['total']}" if one["total"] else "")
    return f"{one['kind']:8}  {one['id']:36}  {one['state']:10}  {one['title']}{f': {said}' if said else ''}"


@click.argument("project")
@click.argument("address")
@click.option("--name", default="", help="What the site calls it; by default the end of ADDRESS.")
@click.option("--text-column", default="text", show_default=True, help="Column of the texts.")
@click.option("--contributor-column", help="Column that tells who a row is from.")
@click.option("--most-epsilon", type=float, help="Refuse the table if its gate is charged more than this.")
@click.option("--watch", is_flag=True, help="Wait until it has gone through the gate.")
def table(project: str, address: str, contributor_column: str | None, site: Site, watch: bool, **given: Any) -> Any:
    """Register the table at ADDRESS for PROJECT, where it lies: file:///folder/table or s3://bucket/table."""
    wanted = {"address": address, "contributor_column": contributor_column, **given}
    answer = site.request("POST", f"projects/{quoted(project)}/tables", body=wanted)
    return follow_upload(site, project, answer) if watch else answer
