"""`dpal`: a site from a terminal."""

import functools
import json
import os
import sys
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import asdict
from pathlib import Path
from typing import Any, TypeVar

import click

from dpal import managing, settings, tables, team
from dpal.errors import DpalError, NotAllowed, NotGenuine, NotInScope, Refused, install
from dpal.features.table import with_points
from dpal.label_studio import serve as serve_predictions
from dpal.manifest import verify_folder
from dpal.mlflow_model import write_folder
from dpal.model import Model
from dpal.pushing import push as send_on
from dpal.reading.encodings import Encoding
from dpal.releases import LATEST, copy_to, fetch, fetch_wheel, load, open_folder
from dpal.site import Site, quoted
from dpal.team import ended, follow, follow_upload, sent_line
from dpal.uploading import upload as send_file

BATCH = 10_000
Command = TypeVar("Command", bound=Callable[..., Any])

site_option = click.option(
    "--site", envvar="DPAL_SITE", help="Address of the site; DPAL_SITE, else that of the last login."
)
version_option = click.option("--version", default=LATEST, show_default=True, help="Number of a version, or a channel.")
key_option = click.option("--public-key", help="The site's signing key; by default the one first met there.")
# Which release is meant, as `fetch` and `load` take it.
RELEASE_OPTIONS = (
    version_option,
    click.option("--retired", is_flag=True, help="Take it even if it was retired."),
    key_option,
    click.option("--offline", is_flag=True, help="From the cache, without a network."),
    site_option,
)


class Sentences(click.Group):
    """Commands whose refusals are one sentence and the exit code 1."""

    def invoke(self, ctx: click.Context) -> Any:
        """Run a command."""
        warnings.showwarning = lambda message, *place: click.echo(f"Warning: {message}", err=True)
        try:
            return super().invoke(ctx)
        except DpalError as error:
            raise click.ClickException(str(error)) from error
        except BrokenPipeError:
            # Whoever read the output has enough of it.
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            ctx.exit(1)


@click.group(cls=Sentences)
@click.version_option(package_name="dpal-client")
def main() -> None:
    """Work with a DPAL site: its releases, uploads and jobs, and the projects you run."""


def with_site(command: Command) -> Command:
    """Add --site and give the command the site it means."""

    @site_option
    @functools.wraps(command)
    def run(*args: Any, site: str | None, **kwargs: Any) -> Any:
        with Site(meant(site)) as opened:
            return command(*args, site=opened, **kwargs)

    return run  # type: ignore[return-value]


def shows(line: Callable[[Any], str], *, empty: str = "") -> Callable[[Command], Command]:
    """Print what a command returns, a line for each part of a list, or with --json the site's own words."""

    def decorate(command: Command) -> Command:
        @click.option("--json", "as_json", is_flag=True, help="Print JSON.")
        @functools.wraps(command)
        def run(*args: Any, as_json: bool, **kwargs: Any) -> None:
            found = command(*args, **kwargs)
            found = found if isinstance(found, dict) else list(found)
            if as_json:
                click.echo(json.dumps(found, ensure_ascii=False, indent=1))
                return
            for one in [found] if isinstance(found, dict) else found:
                click.echo(line(one))
            if not found and empty:
                click.echo(empty)

        return run  # type: ignore[return-value]

    return decorate


def meant(site: str | None) -> str:
    """Return the address that was named, or that of the last login."""
    found = site or settings.last_site()
    if not found:
        raise NotAllowed("Which site? Name it with --site, or run `dpal login https://…` once.")
    return settings.site_address(found)


def key_of(given: str | None, site: str | None) -> str:
    """Return the key that was given, or the one known of a site."""
    named = site or settings.last_site()
    key = given or (settings.known_of(settings.site_address(named)).public_key if named else "")
    if not key:
        raise DpalError("Which key? Pass --public-key from the release page of the site you trust.")
    return key


@main.command()
@click.argument("site")
@shows(lambda done: f"Logged in to {done['site']}.")
def login(site: str) -> Any:
    """Keep a token of SITE, asked for here or read from standard input."""
    address = settings.site_address(site)
    if sys.stdin.isatty():
        click.echo(f"Make a token at {address}/tokens/ with the scopes you need.", err=True)
        token = click.prompt("Token", hide_input=True, err=True)
    else:
        token = sys.stdin.readline()
    token = token.strip()
    if not token:
        raise NotAllowed("No token was given.")
    # A token may be good for something else.
    with Site(address, token) as asked, suppress(NotInScope):
        next(asked.pages("projects"), None)
    settings.remember(address, token=token)
    return {"site": address}


@main.command()
@click.argument("site")
@click.argument("public_key")
@shows(lambda done: f"Releases of {done['site']} are genuine if this key signed them.")
def trust(site: str, public_key: str) -> Any:
    """Trust PUBLIC_KEY as the signing key of SITE from now on."""
    address = settings.site_address(site)
    settings.remember(address, public_key=public_key)
    return {"site": address, "public_key": public_key}


@main.command()
@with_site
@shows(lambda one: f"{one['slug']:30}  {one['data_kind']:6}  {one['state']:10}  {one['name']}")
def projects(site: Site) -> Iterator[Any]:
    """List the projects you have a part in."""
    return site.pages("projects")


def version_line(one: Mapping[str, Any]) -> str:
    limits = ", ".join(f"({terms['limit_epsilon']:g}, {terms['limit_delta']:g})" for terms in one["guarantee"])
    measured = ", ".join(f"{_score_words(score)} on {score['dataset']}" for score in one["evaluations"])
    return f"{one['version']:4}  {one['state']:9}  {limits:20}  {measured or 'not measured'}"


def _score_words(score: Mapping[str, Any]) -> str:
    measures = score.get("measures", {})
    # Of spans, having all of a text right says less.
    return f"entity F1 {measures['micro_f1']['value']:.3f}" if measures.get("f1") else f"{score['accuracy']:.3f}"


@main.command()
@click.argument("project")
@with_site
@shows(version_line)
def releases(project: str, site: Site) -> Iterator[Any]:
    """List the versions of PROJECT, newest first; the last is version 0, made of words alone, where there is one."""
    yield from site.pages(f"projects/{quoted(project)}/models")
    with suppress(Refused):
        yield site.request("GET", f"projects/{quoted(project)}/models/0")


def with_release(command: Command) -> Command:
    """Add the options that say which release is meant."""
    for option in reversed(RELEASE_OPTIONS):
        command = option(command)
    return command


@main.command()
@click.argument("project")
@click.argument("folder", type=click.Path(path_type=Path))
@with_release
@click.option("--for", "form", type=click.Choice(["dpal", "mlflow"]), default="dpal", help="Who reads the folder.")
@shows(lambda done: f"Version {done['version']} of {done['project']}, genuine, is in {done['folder']}.")
def download(project: str, folder: Path, form: str, site: str | None, public_key: str | None, **meaning: Any) -> Any:
    """Put a verified release of PROJECT into a new FOLDER, plain or as `mlflow.pyfunc` loads it."""
    if folder.exists():
        raise DpalError(f"{folder} is there already: name a new folder.")
    with progress_of_files() as progress:
        fetched = fetch(meant(site), project, public_key=public_key, progress=progress, **meaning)
    if form == "mlflow":
        write_folder(fetched, folder, public_key=key_of(public_key, site), wheel=fetch_wheel(meant(site)))
    else:
        copy_to(fetched, folder)
    return {"project": project, "version": fetched.manifest.version, "folder": str(folder)}


@main.command()
@click.argument("project")
@click.argument("registry")
@with_release
@shows(lambda done: done["address"])
def push(project: str, registry: str, site: str | None, public_key: str | None, **meaning: Any) -> Any:
    """Put a verified release of PROJECT into a REGISTRY: mlflow://HOST:PORT/NAME."""
    with progress_of_files() as progress:
        fetched = fetch(meant(site), project, public_key=public_key, progress=progress, **meaning)
    pushed = send_on(fetched, registry, public_key=key_of(public_key, site), wheel=fetch_wheel(meant(site)))
    return {"project": project, "version": fetched.manifest.version, "address": pushed}


@main.command()
@click.argument("folder", type=click.Path(path_type=Path, exists=True, file_okay=False))
@key_option
@site_option
@shows(lambda done: "\n".join(verified_lines(done)))
def verify(folder: Path, public_key: str | None, site: str | None) -> Any:
    """Check that a downloaded FOLDER is genuine, predicts as on its site and was made of its transcript."""
    key = key_of(public_key, site)
    model = open_folder(folder, public_key=key)
    checkpoints = verify_folder(folder, public_key=key)[0].checkpoints
    return {
        "project": model.project,
        "version": model.version,
        "guarantee": str(model.guarantee),
        "recomputed": recomputation(model),
        "checkpoints": [{"ledger": one.origin, "entries": one.size, "root": one.root} for one in checkpoints],
    }


def verified_lines(done: Mapping[str, Any]) -> Iterator[str]:
    yield f"genuine: version {done['version']} of {done['project']}\n{done['guarantee']}"
    yield done["recomputed"]
    for one in done["checkpoints"]:
        yield f"paid in the ledger {one['ledger']}, of {one['entries']} entries then, root {one['root']}"


def recomputation(model: Model) -> str:
    """Recompute the weights of a model from its transcript and say how exactly they are the same."""
    if "transcript.json" not in model.files:
        if model.version != 0:
            raise NotGenuine("This version was learned from records and lacks the transcript of its training.")
        return "not recomputed: version 0 is made of words alone and has no transcript"
    try:
        from dpal.recompute import how_exactly, recomputed  # noqa: PLC0415 - an extra
    except ImportError:
        return f"not recomputed: weights of a transcript need other packages: {install('verify')}"
    names = ("transcript.json", "weights.json", "privacy.json")
    transcript, weights, privacy = (json.loads(model.files[name].read_bytes()) for name in names)
    exactly = how_exactly(recomputed(transcript, weights, privacy))
    size = model.files["transcript.json"].stat().st_size
    return f"weights recomputed from {len(transcript['answers'])} answers in {size:,} bytes: {exactly}"


@main.command()
@click.argument("project")
@click.argument("file", default=tables.STANDARD)
@click.option("--format", "kind", type=click.Choice(tables.FORMATS), help="Of FILE; by default by its name.")
@click.option("--output", "-o", default=tables.STANDARD, help="Where to write; by default standard output.")
@click.option("--text-column", help="Column that holds the texts, if it is not called text.")
@click.option(
    "--encoding", type=click.Choice(list(Encoding)), help="Of FILE, where no mark says it and it is not UTF-8."
)
@click.option("--skip-rows", default=0, type=click.IntRange(0), help="Rows before the names of the columns.")
@click.option("--decimal", type=click.Choice([".", ","]), help="Between whole and fraction of a number in a text.")
@click.option(
    "--plain", is_flag=True, help="Write CSV for programs: no apostrophe before what a spreadsheet could run."
)
@click.option("--probabilities", is_flag=True, help="Add the probability of every class.")
@click.option("--precision", type=float, help="Leave `predicted` empty where the model is not sure enough for it.")
@click.option(
    "--abstain",
    type=float,
    is_flag=False,
    flag_value=0.95,
    help="Leave `predicted` empty below the threshold that is right in so large a share, 0.95 unless given.",
)
@click.option("--batch-size", default=BATCH, show_default=True, type=click.IntRange(1), help="Records at a time.")
@click.option("--folder", is_flag=True, help="PROJECT is a folder that `dpal download` made.")
@with_release
def predict(
    project: str,
    file: str,
    kind: str | None,
    output: str,
    text_column: str | None,
    encoding: str | None,
    skip_rows: int,
    decimal: str | None,
    plain: bool,
    probabilities: bool,
    precision: float | None,
    abstain: float | None,
    batch_size: int,
    folder: bool,
    site: str | None,
    public_key: str | None,
    **meaning: Any,
) -> None:
    """Predict the records of FILE, or lines of standard input, and write them with a column `predicted`."""
    read = tables.format_of(file, kind)
    made = read if output == tables.STANDARD else tables.format_of(output, None)
    made = tables.WRITTEN_AS.get(made, made)
    model = opened_model(project, folder=folder, site=site, public_key=public_key, **meaning)
    if model.records == "images":
        raise DpalError("Images are predicted in Python: dpal.load(...).predict(array).")
    if made == "lines" and probabilities:
        made = "jsonl"
    added = columns_added(model, probabilities)
    with (
        tables.opened(file, read, batch_size, encoding=encoding, skip_rows=skip_rows) as (columns, batches),
        tables.written(output, made, columns and list(dict.fromkeys([*columns, *added])), plain=plain) as write,
    ):
        if columns and model.records == "texts":
            tables.column_of_texts(columns, text_column)
        for rows in batches:
            found = predicted(
                model,
                rows,
                text_column=text_column,
                decimal=decimal,
                probabilities=probabilities,
                precision=precision,
                abstain=abstain,
            )
            write(list(found))


def predicted(
    model: Model,
    rows: Sequence[tables.Row],
    *,
    text_column: str | None,
    decimal: str | None,
    probabilities: bool,
    precision: float | None = None,
    abstain: float | None = None,
) -> Iterator[tables.Row]:
    """Yield each row with what the model says of it."""
    records: Any = rows
    if model.records == "texts":
        name = tables.column_of_texts(rows[0], text_column)
        records = [row.get(name) for row in rows]
    elif decimal == ",":
        records = [with_points(row, model.numbers) for row in rows]
    named, shares = model.predict_both(records)
    if precision is not None:
        named = model.predict_sure(records, precision, shares=shares)
    elif abstain is not None:
        named = model.abstain(records, abstain, shares=shares)
    labels: list[Any] = named.tolist()
    if model.finds_spans or model.names_sets:
        labels = [_written(model, label) for label in labels]
    if not probabilities:
        yield from ({**row, "predicted": label} for row, label in zip(rows, labels, strict=True))
        return
    names = columns_added(model, probabilities)
    for row, label, share in zip(rows, labels, shares.tolist(), strict=True):
        yield {**row, **dict(zip(names, (label, *share), strict=True))}


def _written(model: Model, label: Any) -> Any:
    if model.finds_spans:
        return [asdict(span) for span in label]
    return list(label)


@main.command()
@click.argument("project")
@click.option("--label-studio", is_flag=True, required=True, help="As a machine-learning backend of Label Studio.")
@click.option("--host", default="127.0.0.1", show_default=True, help="Address to listen at.")
@click.option("--port", default=9090, show_default=True, type=click.IntRange(0, 65535))
@click.option("--folder", is_flag=True, help="PROJECT is a folder that `dpal download` made.")
@with_release
def serve(
    project: str,
    label_studio: bool,
    host: str,
    port: int,
    folder: bool,
    site: str | None,
    public_key: str | None,
    **meaning: Any,
) -> None:
    """Serve predictions of PROJECT to people who label elsewhere."""
    model = opened_model(project, folder=folder, site=site, public_key=public_key, **meaning)
    if model.records != "texts":
        raise DpalError("Predictions are served of texts alone.")
    if model.finds_spans:
        raise DpalError("Spans are not served yet: use `dpal predict`.")
    with serve_predictions(model, host=host, port=port) as server:
        click.echo(f"Add http://{host}:{server.server_port} in Label Studio under Settings, Model.")
        with suppress(KeyboardInterrupt):
            server.serve_forever()


def opened_model(project: str, *, folder: bool, site: str | None, public_key: str | None, **meaning: Any) -> Model:
    if folder:
        return open_folder(project, public_key=key_of(public_key, site))
    return load(meant(site), project, public_key=public_key, **meaning)


def columns_added(model: Model, probabilities: bool) -> list[str]:
    return ["predicted", *(f"probability_{one}" for one in model.classes if probabilities)]


@main.command()
@click.argument("project")
@click.argument("file", type=click.Path(path_type=Path, exists=True, dir_okay=False))
@click.option("--role", default="pool", show_default=True, help="pool, public_test, or what else the site knows.")
@click.option("--text-column", default="", help="Column of the texts.")
@click.option("--label-column", default="", help="Column of the classes, in public data.")
@click.option("--contributor-column", default="", help="Column that tells who a record is from.")
@click.option("--mapping", default="", help="A JSON object with whatever else must be said of the file.")
@click.option("--most-epsilon", type=float, help="Refuse the upload if it is charged more than this at once.")
@click.option("--confirm-few", is_flag=True, help="Send a crowd's pool through the gate however few texts pass.")
@click.option("--watch", is_flag=True, help="Wait until the site has read it.")
@with_site
@shows(sent_line)
def upload(
    project: str, file: Path, site: Site, watch: bool, confirm_few: bool, most_epsilon: float | None, **fields: str
) -> Any:
    """Send FILE to PROJECT."""
    given = {name: value for name, value in fields.items() if value} | {"name": file.name}
    if most_epsilon is not None:
        given["most_epsilon"] = repr(most_epsilon)
    if confirm_few:
        given["confirm_few"] = "true"
    with click.progressbar(length=file.stat().st_size, label=file.name, file=sys.stderr) as bar:
        answer = send_file(site, f"projects/{quoted(project)}/datasets", {"file": file}, given, bar.update)
    return follow_upload(site, project, answer) if watch else answer


@main.command()
@click.argument("job")
@with_site
@shows(ended)
def watch(job: str, site: Site) -> Any:
    """Show the progress of JOB until it has ended."""
    return follow(site, job)


@main.command()
@click.argument("project")
@with_site
@shows(
    lambda one: (
        f"{one['scope']}: {amount_of(one, 'spent')} of {amount_of(one, 'limit')} spent, one {one['unit']}, "
        f"{one['entries']} entries"
    )
)
def budget(project: str, site: Site) -> Iterator[Any]:
    """Show the limit of each account of PROJECT and what is spent of it."""
    return site.pages(f"projects/{quoted(project)}/ledger")


def amount_of(account: dict[str, Any], name: str) -> str:
    """Return an amount of an account as people write it."""
    return f"({account[f'epsilon_{name}']:g}, {account[f'delta_{name}']:g})"


@main.command()
@click.argument("project")
@click.option("--records", type=int, help="Records to plan for; by default what the site plans for.")
@with_site
@shows(
    lambda planned: (
        f"{planned['releases']} releases, {planned['rounds']} rounds of {planned['questions']} questions and "
        f"{planned['labels']} labels for {planned['records']} records; choosing costs epsilon "
        f"{planned['choosing']:g}, one training {planned['training']:g}"
    )
)
def plan(project: str, records: int | None, site: Site) -> Any:
    """Show what the budget of PROJECT still buys."""
    return site.request("GET", f"projects/{quoted(project)}/plan", query={"records": records})


@main.command()
@click.argument("project")
@version_option
@with_site
@shows(lambda found: found["card"])
def card(project: str, version: str, site: Site) -> Any:
    """Print the model card of PROJECT."""
    fetched = fetch(site.address, project, version, retired=True)
    text = fetched.files["card.md"].read_text(encoding="utf-8")
    return {"project": project, "version": fetched.manifest.version, "card": text}


@contextmanager
def progress_of_files() -> Iterator[Callable[[str, int, int], None]]:
    """Give a function that is told how much of which file is there; silent where nobody watches."""

    def tell(name: str, have: int, size: int) -> None:
        if sys.stderr.isatty():
            click.echo(f"\r{name}: {have:,} of {size:,} bytes", nl=have >= size, err=True)

    yield tell


managing.add_to(main, with_site, shows, key_of, key_option)
team.add_to(main, with_site, shows)

if __name__ == "__main__":
    main()
