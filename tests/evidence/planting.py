"""Plant one fault at a time in a copy of the program, and run the tests that must notice."""

import fcntl
import json
import os
import re
import shutil
import subprocess
import sys
import xml.etree.ElementTree as ET
from dataclasses import dataclass
from importlib import import_module
from itertools import count
from pathlib import Path

import psycopg
from psycopg import sql

from dpal_site.embedded.postgres import EmbeddedPostgres
from dpal_site.embedded.servers import REPOSITORY
from dpal_site.embedded.valkey import EmbeddedValkey
from privacy.first_migration import migration_digest

# What tests neither read nor import; a copy has servers and caches of its own.
LEFT_OUT = shutil.ignore_patterns(
    ".git", ".venv", "var", "static_collected", "node_modules", "__pycache__", ".*_cache", ".hypothesis"
)
# Of one run, and more for each test that is named: all of them together are run once, without a fault.
LONGEST_SECONDS, LONGEST_SECONDS_EACH = 1800, 60
RUN = "mutants"
# What tests/conftest.py calls the database of this run, and what the rules in it are made from.
DATABASE = f"test_{RUN}_main"
LEDGER_RULES, OTHER_RULES = (Path(app, "migrations", "sql") for app in ("privacy/ledger", "annotation"))
FUNCTION = re.compile(r"^CREATE FUNCTION .*?\$\$;", re.DOTALL | re.MULTILINE)
# The same examples every time, however long one takes: a verdict must not hang on the machine's other work. Asserts are
# plain, since pytest rewrites none in a plugin that the warm process has imported.
OPTIONS = ("-q", "-n", "0", "--reuse-db", "--hypothesis-profile=planted", "-p", "no:cacheprovider", "--assert=plain")


@dataclass(frozen=True, slots=True)
class Mutant:
    """A fault that would break the promise, and the tests that must fail with it.

    Attributes
    ----------
    name : str
        What is wrong with it.
    file : str
        The file it stands in, from the root of the repository.
    old, new : str
        A piece of that file which occurs once, and what stands in its place.
    killers : tuple of str
        Node ids of tests; each of them alone must fail.
    """

    name: str
    file: str
    old: str
    new: str
    killers: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Verdict:
    """How tests ended, by id: `passed`, `failed`, `error`, `late` (an error after it), `skipped`; what it said."""

    outcomes: dict[str, set[str]]
    said: str

    @property
    def erred(self) -> list[str]:
        return [killer for killer, outcomes in self.outcomes.items() if "error" in outcomes]


class Copy:
    """A copy of the program that faults are planted in; its servers and its database last until it is closed."""

    def __init__(self, folder: Path) -> None:
        self.root = folder / "copy"
        shutil.copytree(REPOSITORY, self.root, ignore=LEFT_OUT, symlinks=True)
        self._reports = folder
        self._numbers = count(1)
        self._servers = self.root / "var" / "test"
        self._servers.mkdir(parents=True)
        self._postgres = EmbeddedPostgres(self._servers / "postgres")
        # Runs of tests leave the servers to whoever holds a share of this lock.
        self._users = (self._servers / "users.lock").open("a")
        fcntl.flock(self._users, fcntl.LOCK_SH)
        environment = {name: value for name, value in os.environ.items() if not name.startswith(("DPAL_", "PYTEST_"))}
        self._warm = subprocess.Popen(
            [sys.executable, "-m", "tests.evidence.warm"],
            cwd=self.root,
            env=environment | {"OMP_NUM_THREADS": "1", "DPAL_TEST_RUN": RUN},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def close(self) -> None:
        self._warm.communicate()
        self._users.close()
        self._postgres.stop()
        EmbeddedValkey(self._servers / "valkey").stop()
        shutil.rmtree(self.root)

    def run(self, killers: tuple[str, ...]) -> Verdict:
        report = self._reports / f"report-{next(self._numbers)}.xml"
        output = report.with_suffix(".txt")
        order = {
            "arguments": [*OPTIONS, f"--junit-xml={report}", *killers],
            "output": str(output),
            "seconds": LONGEST_SECONDS + LONGEST_SECONDS_EACH * len(killers),
        }
        assert self._warm.stdin is not None
        assert self._warm.stdout is not None
        print(json.dumps(order), file=self._warm.stdin, flush=True)
        code = self._warm.stdout.readline().strip()
        said = output.read_text(errors="replace") if output.exists() else ""
        assert report.exists(), f"pytest ended with {code or 'its process'} and wrote no report:\n{said}"
        outcomes: dict[str, set[str]] = {killer: set() for killer in killers}
        for case in ET.parse(report).iter("testcase"):
            for killer in _killers_of(case, killers):
                outcomes.setdefault(killer, set()).add(_outcome_of(case))
        return Verdict(outcomes, said)

    def run_with(self, mutant: Mutant) -> Verdict:
        """Run a mutant's killers with the fault in place, and take it out again.

        A test that erred before it could judge, as where a server came up too late, is asked once more; one that judged
        is believed.
        """
        path = self.root / mutant.file
        whole = path.read_text()
        try:
            self._write(path, planted(whole, mutant))
            verdict = self.run(mutant.killers)
            return self.run(mutant.killers) if verdict.erred else verdict
        finally:
            self._write(path, whole)

    def _write(self, path: Path, text: str) -> None:
        path.write_text(text)
        if self._postgres.status == "ready" and path.suffix == ".sql":
            with psycopg.connect(self._postgres.url(DATABASE)) as connection:
                for rules in _rules_of(path, path.parent.relative_to(self.root)):
                    connection.execute(rules.encode())
                connection.execute(mark_of(path.relative_to(self.root).parts[:-3], self.root))
        # Python trusts compiled files by the time of their source, so every planted one gets a new time.
        later = 2_000_000_000 + next(self._numbers)
        os.utime(path, (later, later))


def _rules_of(path: Path, folder: Path) -> list[str]:
    """Return what puts the rules of a file into a database that has them: the ledger's anew, of others functions."""
    if folder == LEDGER_RULES:
        files = ("rules.reverse", *import_module("privacy.ledger.migrations.0001_tables").RULES)
        return [(path.parent / f"{file}.sql").read_text() for file in files]
    assert folder == OTHER_RULES, f"nobody puts the rules of {folder} into a database"
    return [found.replace("CREATE", "CREATE OR REPLACE", 1) for found in FUNCTION.findall(path.read_text())]


def mark_of(app: tuple[str, ...], root: Path) -> sql.Composed:
    module = import_module(".".join([*app, "migrations.0001_tables"]))
    folder = root.joinpath(*app, "migrations")
    statements = "\n".join((folder / "sql" / f"{name}.sql").read_text() for name in module.RULES)
    digest = migration_digest((folder / "0001_tables.py").read_text(), [statements])
    table = module.Migration("0001_tables", app[0]).marked_table
    return sql.SQL("COMMENT ON TABLE {} IS {}").format(sql.Identifier(table), sql.Literal(digest))


def planted(whole: str, mutant: Mutant) -> str:
    found = whole.count(mutant.old)
    assert found == 1, f"{mutant.file} must hold this once, holds it {found} times: {mutant.old!r}"
    return whole.replace(mutant.old, mutant.new)


def _killers_of(case: ET.Element, killers: tuple[str, ...]) -> list[str]:
    """Return the killers that a reported test belongs to, of which one may name part of another; else its own name."""
    name = f"{case.get('classname', '').replace('.', '/')}::{case.get('name', '')}"
    found = []
    for killer in killers:
        file, *classes, test = killer.split("::")
        expected = "/".join([file.removesuffix(".py"), *classes]) + f"::{test}"
        if name == expected or name.startswith(f"{expected}["):
            found.append(killer)
    return found or [name]


def _outcome_of(case: ET.Element) -> str:
    kinds = {child.tag for child in case}
    errors = [child.get("message", "") for child in case if child.tag == "error"]
    if errors:
        # What a fault left in the database, the database may refuse when the test that judged it is over.
        return "late" if all(message.startswith("failed on teardown") for message in errors) else "error"
    if "failure" in kinds:
        return "failed"
    return "skipped" if "skipped" in kinds else "passed"
