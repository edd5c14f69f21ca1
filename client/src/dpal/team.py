"""Commands of whoever runs a project: people, limits, its state, tables, and work in hand."""

import uuid
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import click

from dpal.errors import DpalError
from dpal.rest import Rest
from dpal.site import Site
from dpal.watching import follow

if TYPE_CHECKING:
    from dpal.rest_documents import InvitationIn, LimitIn, LimitRequestOut

ROLES = click.Choice(["annotator", "reviewer", "engineer", "manager"])


def add_to(group: click.Group, with_site: Callable[[Any], Any]) -> None:
    """Put the commands into a group."""
    for command in (people, invite, limit, decide, state, table, work):
        group.command(command.__name__)(with_site(command))


@click.argument("project")
def people(project: str, site: Site) -> None:
    """List who takes part in PROJECT, role by role."""
    for one in Rest(site).list_members(project):
        by = ", ".join(one["groups"])
        click.echo(f"{one['username']:30}  {one['role']:10}  {one['labels']:8} labels{f'  by {by}' if by else ''}")


@click.argument("project")
@click.argument("role", type=ROLES)
@click.option("--uses", default=1, show_default=True, type=click.IntRange(1, 1000), help="People at most.")
@click.option("--days", default=7, show_default=True, type=click.IntRange(1, 90), help="Until it ends.")
@click.option("--mail", default="", help="Send it there as well.")
@click.option("--note", default="", help="For managers: whom it is for.")
def invite(project: str, role: Any, uses: int, days: int, mail: str, note: str, site: Site) -> None:
    """Print a link by which somebody joins PROJECT with a ROLE; it is told this once."""
    wanted: InvitationIn = {"role": role, "maximum_uses": uses, "days": days, "address": mail, "note": note}
    click.echo(Rest(site).make_invitation(project, wanted)["link"])


@click.argument("project")
@click.argument("epsilon", type=float, required=False)
@click.argument("delta", type=float, required=False)
@click.option("--account", default="", help="Which account, as `dpal budget` names it; by default the first.")
@click.option("--reason", default="", help="Stays in the ledger with a change.")
def limit(project: str, epsilon: float | None, delta: float | None, account: str, reason: str, site: Site) -> None:
    """Set the limit of an account of PROJECT to EPSILON and DELTA, or without them list what was asked for."""
    rest = Rest(site)
    if epsilon is None:
        for one in rest.list_limit_requests(project):
            click.echo(_requested(one))
        return
    if delta is None or not reason:
        raise DpalError("A change needs EPSILON, DELTA and --reason.")
    wanted: LimitIn = {"account": account, "epsilon_limit": epsilon, "delta_limit": delta, "reason": reason}
    done = rest.change_limit(project, wanted, key=str(uuid.uuid4()))
    waits = f"Request {done['request']} waits for another manager: dpal decide {project} {done['request']} approve"
    click.echo(waits if done["state"] == "waiting" else f"The limit is ({epsilon:g}, {delta:g}).")


def _requested(one: "LimitRequestOut") -> str:
    amounts = "" if one["epsilon_limit"] is None else f"({one['epsilon_limit']:g}, {one['delta_limit']:g})  "
    return f"{one['request']:6}  {one['state']:10}  {one['kind']:10}  {amounts}{one['requested_by']}: {one['reason']}"


@click.argument("project")
@click.argument("request", type=int)
@click.argument("decision", type=click.Choice(["approve", "refuse"]))
def decide(project: str, request: int, decision: Any, site: Site) -> None:
    """Decide about a REQUEST of another manager of PROJECT; refusing one's own takes it back."""
    done = Rest(site).decide_limit(project, str(request), {"decision": decision}, key=str(uuid.uuid4()))
    click.echo(f"Request {done['request']} is {done['state']}.")


@click.argument("project")
@click.argument("wanted", type=click.Choice(["active", "paused"]), required=False)
def state(project: str, wanted: Any, site: Site) -> None:
    """Show whether PROJECT is active, or pause it, or let it go on."""
    rest = Rest(site)
    found = rest.set_project_state(project, {"state": wanted}, key=str(uuid.uuid4())) if wanted else None
    click.echo((found or rest.get_project(project))["state"])


@click.argument("project")
def work(project: str, site: Site) -> None:
    """List jobs, rounds and trainings of PROJECT, newest first, and how far they are."""
    for one in Rest(site).list_work(project):
        far = f"{one['done']} of {one['total']}" if one["total"] else ""
        said = one["error"] or far
        click.echo(f"{one['kind']:8}  {one['id']:36}  {one['state']:10}  {one['title']}{f': {said}' if said else ''}")


@click.argument("project")
@click.argument("address")
@click.option("--name", default="", help="What the site calls it; by default the end of ADDRESS.")
@click.option("--text-column", default="text", show_default=True, help="Column of the texts.")
@click.option("--contributor-column", help="Column that tells who a row is from.")
@click.option("--most-epsilon", type=float, help="Refuse the table if its gate is charged more than this.")
@click.option("--watch", is_flag=True, help="Wait until it has gone through the gate.")
def table(project: str, address: str, contributor_column: str | None, site: Site, watch: bool, **given: Any) -> None:
    """Register the table at ADDRESS for PROJECT, where it lies: file:///folder/table or s3://bucket/table."""
    wanted: Any = {"address": address, "contributor_column": contributor_column, **given}
    answer = Rest(site).register_table(project, wanted, key=str(uuid.uuid4()))
    if charge := answer.get("charge"):
        click.echo(f"charged: epsilon {charge['epsilon']:g}, delta {charge['delta']:g}")
    click.echo(f"job {answer['job']['id']}")
    if watch:
        follow(site, answer["job"]["id"])
