"""Commands that change something at a site or look into its books: versions, labels, statements."""

import csv
import functools
import sys
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import click

from dpal import statement as statements
from dpal.errors import DpalError, NotGenuine
from dpal.files import write_whole
from dpal.site import Site, quoted
from dpal.team import follow

REASON = click.option("--reason", prompt=True, help="Stays with it, and webhooks are told.")


def add_to(
    group: click.Group,
    with_site: Callable[[Any], Any],
    shows: Callable[..., Callable[[Any], Any]],
    key_of: Callable[[str | None, str | None], str],
    key_option: Callable[[Any], Any],
) -> None:
    """Put the commands into a group."""
    for command in (move, rollback, retire, label, words, statement, labels):
        group.command(command.__name__)(with_site(command))
    none = "No channel points to a version yet; latest is the newest that is offered."
    group.command("channels")(with_site(shows(_channel_line, empty=none)(channels)))
    group.command("shares")(
        with_site(shows(_shares, empty="No shares were counted yet; see `dpal ask-shares`.")(shares))
    )
    group.command("ask-shares")(with_site(ask_shares))
    group.command("diff")(with_site(shows(_differences)(diff)))
    checked = click.option("--site", envvar="DPAL_SITE", help="Whose key is meant.")(key_option(audit))

    @functools.wraps(checked)
    def with_key(file: Path, public_key: str | None, site: str | None) -> None:
        audit(file, key_of(public_key, site))

    group.command("audit")(with_key)


@click.argument("file", type=click.Path(path_type=Path, exists=True, dir_okay=False))
def audit(file: Path, public_key: str) -> None:
    """Check a statement in FILE: signature, chain, sums, limits, checkpoints, and each cost as far as possible here."""
    done = statements.audit(file.read_bytes(), public_key=public_key)
    if done.faults:
        raise NotGenuine(f"{len(done.faults)} things are wrong with {file}: {'; '.join(done.faults[:20])}.")
    click.echo(f"sound: {done.entries} entries, signed by the key you trust")
    if done.recomputed:
        click.echo(f"computed anew from their parameters: the costs of {done.recomputed} entries")
    for scope, numbers in done.taken.items():
        click.echo(f"taken as they stand: the costs of {scope}, entries {', '.join(map(str, numbers))}")
    if done.taken:
        click.echo(
            "To compute these anew, name the folder of the site's program in PYTHONPATH, and run it with its Python."
        )


@click.argument("project")
def channels(project: str, site: Site) -> Iterator[Any]:
    """List which version each channel of PROJECT is."""
    return site.pages(f"projects/{quoted(project)}/channels")


def _channel_line(one: Mapping[str, Any]) -> str:
    back = " (rolled back)" if one["rolled_back"] else ""
    return f"{one['channel']:20}  {one['version']:4}{back}  {one['reason']}"


@click.argument("project")
@click.argument("channel")
@click.argument("version", type=int)
@REASON
def move(project: str, channel: str, version: int, reason: str, site: Site) -> None:
    """Make CHANNEL of PROJECT the VERSION."""
    path = f"projects/{quoted(project)}/channels/{quoted(channel)}"
    done = site.request("POST", path, body={"version": version, "reason": reason})
    click.echo(f"{done['channel']} is version {done['version']}.")


@click.argument("project")
@click.argument("channel")
@REASON
def rollback(project: str, channel: str, reason: str, site: Site) -> None:
    """Make CHANNEL of PROJECT the version it was before."""
    path = f"projects/{quoted(project)}/channels/{quoted(channel)}/rollback"
    done = site.request("POST", path, body={"reason": reason})
    click.echo(f"{done['channel']} is version {done['version']} again.")


@click.argument("project")
@click.argument("version", type=int)
@REASON
def retire(project: str, version: int, reason: str, site: Site) -> None:
    """Take a VERSION of PROJECT back."""
    done = site.request("POST", f"projects/{quoted(project)}/models/{version}/retire", body={"reason": reason})
    click.echo(f"Version {done['version']} is {done['state']}.")


@click.argument("project")
def shares(project: str, site: Site) -> Iterator[Any]:
    """Show shares of classes of PROJECT in percent with 95 % intervals, the newest first."""
    return site.pages(f"projects/{quoted(project)}/shares")


def _shares(one: Mapping[str, Any]) -> str:
    lines = [f"count {one['number']}, block {one['block']}, {one['state']}"]
    for row in one["shares"]:
        moved = "  moved" if row["moved"] else ""
        name = " ".join(filter(None, [row["group"], row["name"] or "(no agreed label)"]))
        lines.append(f"  {name:30}  {row['percent']:6.1f}  {row['low']:.1f} to {row['high']:.1f}{moved}")
    return "\n".join(lines)


@click.argument("project")
@click.argument("block", type=int)
@click.option("--by", type=click.Choice(["whole", "upload", "month"]), default="whole", show_default=True)
@click.option("--yes", is_flag=True, help="Do not ask whether the price is right.")
def ask_shares(project: str, block: int, by: str, yes: bool, site: Site) -> None:
    """Have classes of PROJECT counted on the labels of secret BLOCK, once the price is agreed to."""
    path = f"projects/{quoted(project)}/shares"
    offers = site.request("GET", f"{path}/offers?grouping={by}")
    offer = next((one for one in offers if one["block"] == block), None)
    if offer is None:
        raise DpalError(f"There is no block {block} with a model.")
    click.echo(f"epsilon {offer['epsilon']:.4g} for intervals of about {offer['width']:.1f} points on either side")
    if not yes:
        click.confirm("Ask?", abort=True)
    done = site.request("POST", path, body={"block": block, "grouping": by})
    click.echo(f"Count {done['number']} is {done['state']}.")


@click.argument("project")
@click.argument("before")
@click.argument("after")
def diff(project: str, before: str, after: str, site: Site) -> Any:
    """Show what differs between two versions of PROJECT: numbers or channels."""
    return site.request("GET", f"projects/{quoted(project)}/models/{quoted(after)}/differences/{quoted(before)}")


def _differences(found: Mapping[str, Any]) -> str:
    lines = [f"version {found['before']} and version {found['after']}"]
    for mark, names in (("+", found["classes_added"]), ("-", found["classes_removed"])):
        lines += [f"class {mark}{name}" for name in names]
    for one in found["accuracy"]:
        lines.append(f"accuracy on {one['dataset']}: {_interval(one['before'])} -> {_interval(one['after'])}")
    for change in (*found["guarantee"], *found["configuration"], *found["environment"]):
        lines.append(f"{change['name']}: {_value(change['before'])} -> {_value(change['after'])}")
    return "\n".join(lines)


def _value(value: Any) -> str:
    # Amounts are counted to nine digits; what a float has beyond them is no part of them.
    return f"{value:.9g}" if isinstance(value, float) else str(value)


def _interval(ends: list[Any] | None) -> str:
    return "not measured" if ends is None else f"{ends[0]:.3f} ({ends[1]:.3f} to {ends[2]:.3f})"


@click.argument("project")
@click.argument("file", type=click.Path(path_type=Path, exists=True, dir_okay=False))
@click.option("--source", required=True, help="Who wrote them, for the card: drafted by MODEL, edited by PERSON.")
def words(project: str, file: Path, source: str, site: Site) -> None:
    """Say what belongs to each class of PROJECT: FILE has columns class and example, an example a row.

    Words cost no epsilon and are public: write them without looking at the records.
    """
    with file.open(encoding="utf-8-sig", newline="") as table:
        rows = csv.DictReader(table)
        if not {"class", "example"} <= set(rows.fieldnames or ()):
            raise DpalError(f"{file}: the first line must name the columns class and example.")
        lines = [f'{row["class"]}: "{" ".join(row["example"].split())}"' for row in rows if row["example"]]
    changes = {"class_descriptions": lines, "words_source": source}
    site.request("PATCH", f"projects/{quoted(project)}/configuration", body={"settings": changes})
    click.echo(f"{len(lines)} examples stored; version 0 is made of them.")


@click.argument("project")
def label(project: str, site: Site) -> None:
    """Answer the questions of PROJECT, one after another: a number, s to give a question back, q to end.

    Where a record may have several classes, their numbers with commas between them, or a hyphen for none of them.
    """
    answered = 0
    while (asked := site.request("POST", f"projects/{quoted(project)}/assignments")) is not None:
        path = f"assignments/{quoted(asked['id'])}"
        if asked["text"] is None and asked["fields"] is None:
            site.request("POST", f"{path}/skip", body={})
            raise DpalError("Images are labelled in a browser: open the project there.")
        click.echo(f"\n{asked['question']}")
        if asked["text"] is not None:
            click.echo(f"  {asked['text']}")
        for name, value in (asked["fields"] or {}).items():
            click.echo(f"  {name}: {value}")
        for number, name in enumerate(asked["classes"], start=1):
            click.echo(f"  {number} {name}")
        answer = click.prompt("Answer", value_proc=lambda typed: _answer(typed, asked))
        if isinstance(answer, str):
            site.request("POST", f"{path}/skip", body={})
            if answer == "q":
                break
            continue
        site.request("POST", f"{path}/label", body=answer)
        answered += 1
    else:
        click.echo("No question is waiting for you.")
    click.echo(f"{answered} answered.", file=sys.stdout)


def _answer(typed: str, asked: Mapping[str, Any]) -> str | dict[str, Any]:
    """Return what was typed as an answer, or `s` or `q`; what it cannot be is asked for again."""
    words = typed.strip()
    if words in ("s", "q"):
        return words
    most = asked.get("most_classes")
    if most is not None and words == "-" and asked.get("none_allowed"):
        return {"choices": []}
    chosen = [part.strip() for part in words.split(",")]
    known = {str(number): number - 1 for number in range(1, len(asked["classes"]) + 1)}
    if not all(part in known for part in chosen) or len(set(chosen)) != len(chosen):
        raise click.UsageError(f"Type numbers from 1 to {len(known)}, s or q.")
    if len(chosen) > (most or 1):
        raise click.UsageError(f"At most {most or 1} of the classes.")
    places = [known[part] for part in chosen]
    return {"choice": places[0]} if most is None else {"choices": places}


@click.argument("project")
@click.argument("file", type=click.Path(path_type=Path, dir_okay=False))
@click.option("--format", "form", default="jsonl", show_default=True, help="As the page Exports names them.")
@click.option("--history", is_flag=True, help="Changed and withdrawn answers, too.")
@click.option("--plain", is_flag=True, help="CSV for programs: no apostrophe before what a spreadsheet could run.")
def labels(project: str, file: Path, form: str, history: bool, plain: bool, site: Site) -> None:
    """Write all answers of PROJECT into FILE."""
    form = "csv_plain" if plain else form
    job = site.request("POST", f"projects/{quoted(project)}/exports", body={"format": form, "history": history})
    follow(site, job["id"])
    made = site.request("GET", f"jobs/{quoted(job['id'])}")["export"]
    write_whole(file, b"".join(site.file(f"/api/v1/{made['file']}")))
    click.echo(f"The answers of {project} are in {file}.")


@click.argument("project")
@click.argument("file", type=click.Path(path_type=Path, dir_okay=False))
def statement(project: str, file: Path, site: Site) -> None:
    """Write the whole statement of PROJECT into FILE, for `dpal audit`."""
    write_whole(file, b"".join(site.file(f"/api/v1/projects/{quoted(project)}/ledger/statement")))
    click.echo(f"The statement of {project} is in {file}.")
