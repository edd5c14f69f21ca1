"""Commands that change something at a site or look into its books: versions, labels, statements."""

import csv
import functools
import json
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import click

from dpal import statement as statements
from dpal.errors import DpalError, NotGenuine
from dpal.files import write_whole
from dpal.site import Site, quoted
from dpal.team import POLL_SECONDS, follow, follow_upload, sent_line
from dpal.uploading import upload as send_files

REASON = click.option("--reason", prompt=True, help="Stays with it, and webhooks are told.")


def add_to(
    group: click.Group,
    with_site: Callable[[Any], Any],
    shows: Callable[..., Callable[[Any], Any]],
    key_of: Callable[[str | None, str | None], str],
    key_option: Callable[[Any], Any],
) -> None:
    """Put the commands into a group."""
    group.command("label")(with_site(label))
    for command, line in (
        (move, lambda done: f"{done['channel']} is version {done['version']}."),
        (rollback, lambda done: f"{done['channel']} is version {done['version']} again."),
        (retire, lambda done: f"Version {done['version']} is {done['state']}."),
        (words, lambda done: f"{done['examples']} examples stored; version 0 is made of them."),
        (statement, lambda done: f"The statement of {done['project']} is in {done['file']}."),
        (labels, lambda done: f"The answers of {done['project']} are in {done['file']}."),
        (simulate, _simulated),
    ):
        group.command(command.__name__)(with_site(shows(line)(command)))
    group.command("open")(with_site(shows(_opened)(open_project)))
    none = "No channel points to a version yet; latest is the newest that is offered."
    group.command("channels")(with_site(shows(_channel_line, empty=none)(channels)))
    group.command("shares")(
        with_site(shows(_shares, empty="No shares were counted yet; see `dpal ask-shares`.")(shares))
    )
    group.command("ask-shares")(
        with_site(shows(lambda done: f"Count {done['number']} is {done['state']}.")(ask_shares))
    )
    group.command("diff")(with_site(shows(_differences)(diff)))
    checked = click.option("--site", envvar="DPAL_SITE", help="Whose key is meant.")(key_option(audit))

    @shows(_audited)
    @functools.wraps(checked)
    def with_key(file: Path, public_key: str | None, site: str | None) -> Any:
        return audit(file, key_of(public_key, site))

    group.command("audit")(with_key)


@click.argument("file", type=click.Path(path_type=Path, exists=True, dir_okay=False))
def audit(file: Path, public_key: str) -> Any:
    """Check a statement in FILE: signature, chain, sums, limits, checkpoints, and each cost as far as possible here."""
    done = statements.audit(file.read_bytes(), public_key=public_key)
    if done.faults:
        raise NotGenuine(f"{len(done.faults)} things are wrong with {file}: {'; '.join(done.faults[:20])}.")
    return {"entries": done.entries, "recomputed": done.recomputed, "taken": done.taken}


def _audited(done: Mapping[str, Any]) -> str:
    lines = [f"sound: {done['entries']} entries, signed by the key you trust"]
    if done["recomputed"]:
        lines.append(f"computed anew from their parameters: the costs of {done['recomputed']} entries")
    for scope, numbers in done["taken"].items():
        lines.append(f"taken as they stand: the costs of {scope}, entries {', '.join(map(str, numbers))}")
    if done["taken"]:
        lines.append(
            "To compute these anew, name the folder of the site's program in PYTHONPATH, and run it with its Python."
        )
    return "\n".join(lines)


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
def move(project: str, channel: str, version: int, reason: str, site: Site) -> Any:
    """Make CHANNEL of PROJECT the VERSION."""
    path = f"projects/{quoted(project)}/channels/{quoted(channel)}"
    return site.request("POST", path, body={"version": version, "reason": reason})


@click.argument("project")
@click.argument("channel")
@REASON
def rollback(project: str, channel: str, reason: str, site: Site) -> Any:
    """Make CHANNEL of PROJECT the version it was before."""
    path = f"projects/{quoted(project)}/channels/{quoted(channel)}/rollback"
    return site.request("POST", path, body={"reason": reason})


@click.argument("project")
@click.argument("version", type=int)
@REASON
def retire(project: str, version: int, reason: str, site: Site) -> Any:
    """Take a VERSION of PROJECT back."""
    return site.request("POST", f"projects/{quoted(project)}/models/{version}/retire", body={"reason": reason})


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
    for row in one["thresholds"]:
        least = "none found" if row["threshold"] is None else f"{row['threshold']:.3f}, answers {row['answered']:.0%}"
        lines.append(f"  right at least {row['precision']:.0%} from probability {least}")
    return "\n".join(lines)


@click.argument("project")
@click.argument("block", type=int)
@click.option(
    "--by", default="whole", show_default=True, help="whole, upload, month, column:NAME, or confidence to abstain."
)
@click.option("--yes", is_flag=True, help="Do not ask whether the price is right.")
def ask_shares(project: str, block: int, by: str, yes: bool, site: Site) -> Any:
    """Have classes of PROJECT counted on the labels of secret BLOCK, once the price is agreed to."""
    path = f"projects/{quoted(project)}/shares"
    grouping, _, column = by.partition(":")
    offers = site.request("GET", f"{path}/offers?grouping={quoted(grouping)}&column={quoted(column)}")
    offer = next((one for one in offers if one["block"] == block), None)
    if offer is None:
        raise DpalError(f"There is no block {block} with a model.")
    bought = (
        "thresholds" if offer["width"] is None else f"intervals of about {offer['width']:.1f} points on either side"
    )
    click.echo(f"epsilon {offer['epsilon']:.4g} for {bought}", err=True)
    if not yes:
        click.confirm("Ask?", abort=True, err=True)
    return site.request("POST", path, body={"block": block, "grouping": grouping, "column": column})


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
        lines.append(f"{_measure(one)} on {one['dataset']}: {_interval(one['before'])} -> {_interval(one['after'])}")
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
def words(project: str, file: Path, source: str, site: Site) -> Any:
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
    return {"examples": len(lines)}


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
def labels(project: str, file: Path, form: str, history: bool, plain: bool, site: Site) -> Any:
    """Write all answers of PROJECT into FILE."""
    form = "csv_plain" if plain else form
    job = site.request("POST", f"projects/{quoted(project)}/exports", body={"format": form, "history": history})
    made = follow(site, job["id"])["export"]
    write_whole(file, b"".join(site.file(f"/api/v1/{made['file']}")))
    return {"project": project, "file": str(file), "sha256": made["sha256"]}


@click.argument("project")
@click.argument("file", type=click.Path(path_type=Path, dir_okay=False))
def statement(project: str, file: Path, site: Site) -> Any:
    """Write the whole statement of PROJECT into FILE, for `dpal audit`."""
    write_whole(file, b"".join(site.file(f"/api/v1/projects/{quoted(project)}/ledger/statement")))
    return {"project": project, "file": str(file)}


FILE = click.Path(path_type=Path, exists=True, dir_okay=False)


@click.argument("file", type=FILE)
@click.option("--public", type=FILE, help="Public examples with labels: they give the classes and measure models.")
@click.option("--preset", default="pool-experts", show_default=True, help="Kind of project.")
@click.option("--name", help="By default that of FILE.")
@click.option("--question", help="What people are asked.")
@click.option("--class", "classes", multiple=True, help="A class; by default those of the public examples.")
@click.option("--epsilon", type=float, help="Limit of the pool; by default the preset's.")
@click.option("--set", "further", multiple=True, metavar="NAME=VALUE", help="Any other setting.")
@click.option("--text-column", default="", help="Column of the texts.")
@click.option("--label-column", default="", help="Column of the classes in the public examples.")
@click.option("--contributor-column", default="", help="Column that tells who a record is from.")
@click.option("--id-column", default="", help="Column of your own ids.")
@click.option("--confirm-few", is_flag=True, help="Send a crowd's pool through the gate however few texts pass.")
@click.option("--yes", is_flag=True, help="Do not ask whether settings and price are right.")
@click.option("--watch", is_flag=True, help="Wait until the site has read the files.")
def open_project(
    file: Path,
    public: Path | None,
    preset: str,
    classes: Sequence[str],
    epsilon: float | None,
    further: Sequence[str],
    confirm_few: bool,
    yes: bool,
    watch: bool,
    site: Site,
    **given: str | None,
) -> Any:
    """Open a project from the private data in FILE."""
    settings: dict[str, Any] = {"classes": list(classes) or None, "pool_epsilon": epsilon}
    settings |= {name: given.pop(name) for name in ("name", "question")}
    settings = {name: value for name, value in settings.items() if value is not None}
    for one in further:
        name, equals, value = one.partition("=")
        if not equals:
            raise DpalError(f"--set {one}: write NAME=VALUE.")
        settings[name] = value
    fields = {"preset": preset, "settings": json.dumps(settings)}
    fields |= {name: column for name, column in given.items() if column}
    files = {"file": file} if public is None else {"file": file, "public": public}
    with click.progressbar(length=sum(one.stat().st_size for one in files.values()), file=sys.stderr) as bar:
        draft = send_files(site, "drafts", files, fields, bar.update)
    path = f"drafts/{quoted(draft['id'])}"
    try:
        if draft["problems"]:
            raise DpalError(f"Nothing is opened: {'; '.join(draft['problems'])}")
        if not yes:
            click.echo(_drafted(draft), err=True)
            click.confirm("Open?", abort=True, err=True)
        agreed = {"most_epsilon": (draft["charge"] or {"epsilon": 0.0})["epsilon"], "confirm_few": confirm_few}
        opened = site.request("POST", f"{path}/open", body=agreed)
    except BaseException:
        # The private file does not stay for a day.
        with suppress(DpalError):
            site.request("DELETE", path)
        raise
    if watch:
        slug = opened["project"]["slug"]
        opened["datasets"] = [follow_upload(site, slug, one) for one in opened["datasets"]]
    return opened


def _drafted(draft: Mapping[str, Any]) -> str:
    said = draft["settings"]
    lines = [f"{said['name']}: {said['question']}  {', '.join(said['classes'].split(chr(10)))}"]
    for one in draft["files"]:
        columns = ", ".join(f"{name} as {role}" for name, role in one["columns"].items() if role)
        lines.append(f"{one['part']} {one['name']}: {columns}")
    lines.append(f"epsilon at most {said['pool_epsilon']}")
    if charge := draft["charge"]:
        lines.append(f"opening is charged epsilon {charge['epsilon']:g}, delta {charge['delta']:g}")
    return "\n".join(lines)


def _opened(done: Mapping[str, Any]) -> str:
    return "\n".join([f"{done['project']['slug']} is open.", *map(sent_line, done["datasets"])])


@click.argument("project")
@click.option("--records", type=int, help="Records to plan for; by default what the site plans for.")
def simulate(project: str, records: int | None, site: Site) -> Any:
    """Simulate on data about nobody how good models of PROJECT become; nothing is charged."""
    path = f"projects/{quoted(project)}/plan/simulation"
    found = site.request("POST", path, body={"records": records})
    with click.progressbar(length=1, label="simulating", file=sys.stderr):
        while found["state"] in ("waiting", "running"):
            time.sleep(POLL_SECONDS)
            found = site.request("GET", path, query={"records": records})
    if found["state"] != "done":
        raise DpalError(
            "There is no simulation of these settings: it failed, or they cannot be simulated (spans: no public file)."
        )
    return found


def _measure(found: Mapping[str, Any]) -> str:
    return "entity F1" if found.get("measure") == "entity_f1" else "accuracy"


def _simulated(found: Mapping[str, Any]) -> str:
    lines = [
        f"{one['data']:8}  {one['labels']:7} labels  {_measure(found)} {one['accuracy']:.3f} "
        f"({one['worst']:.3f} to {one['best']:.3f}), without privacy {one['without_privacy']:.3f}"
        for one in found["points"]
    ]
    return "\n".join(filter(None, [*lines, found["recommendation"]]))
