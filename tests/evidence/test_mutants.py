"""No fault of the list survives: `make evidence` plants each and demands that every test named for it fails."""

import ast
import subprocess
import sys
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest
from django.conf import settings

from dpal_site.embedded.servers import REPOSITORY
from tests.evidence.mutants import MUTANTS
from tests.evidence.planting import Copy, Mutant, planted

# Tests that need a database share one, which takes longer to make than most of them: one process runs all of these.
WITH_DATABASE = ("tests/db/", "tests/web/")
ON_DATABASE = pytest.mark.xdist_group("database")
EACH = pytest.mark.parametrize(
    "mutant",
    [
        pytest.param(
            mutant,
            id=mutant.name,
            marks=[ON_DATABASE] if any(killer.startswith(WITH_DATABASE) for killer in mutant.killers) else [],
        )
        for mutant in MUTANTS
    ],
)


@pytest.fixture(scope="module")
def copy(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Copy]:
    made = Copy(tmp_path_factory.mktemp("mutants"))
    yield made
    made.close()


@pytest.mark.slow
@pytest.mark.mutants
@pytest.mark.parametrize("on_database", [False, pytest.param(True, marks=ON_DATABASE)])
def test_without_a_fault_all_of_them_pass(copy: Copy, on_database: bool):
    """None of them skipped."""
    named = {killer for mutant in MUTANTS for killer in mutant.killers}
    killers = tuple(sorted(killer for killer in named if killer.startswith(WITH_DATABASE) == on_database))
    verdict = copy.run(killers)
    wrong = {killer: outcomes for killer, outcomes in verdict.outcomes.items() if outcomes != {"passed"}}
    assert not wrong, f"{wrong}\n{verdict.said}"


@EACH
@pytest.mark.slow
@pytest.mark.mutants
def test_it_is_killed_by_each_test_that_is_named_for_it(copy: Copy, mutant: Mutant):
    """A test that errs before it could judge has not noticed anything."""
    verdict = copy.run_with(mutant)
    survived = {killer: outcomes for killer, outcomes in verdict.outcomes.items() if "failed" not in outcomes}
    assert not survived, f"survived {survived}\n{verdict.said}"
    assert not verdict.erred, f"{verdict.erred}\n{verdict.said}"


def test_each_can_be_planted_and_its_killers_exist():
    """So that the list cannot rot: the piece of code is there, once, and what takes its place is no syntax error."""
    for mutant in MUTANTS:
        whole = (REPOSITORY / mutant.file).read_text()
        changed = planted(whole, mutant)
        assert changed != whole, mutant.name
        if mutant.file.endswith(".py"):
            ast.parse(changed)
        assert mutant.killers, mutant.name
        for killer in mutant.killers:
            file, *inside = killer.partition("[")[0].split("::")
            assert tuple(inside) in killers_in(REPOSITORY / file), f"{mutant.name}: there is no {killer}"


@pytest.mark.slow
def test_pytest_finds_every_killer_that_has_parameters():
    killers = sorted({killer for mutant in MUTANTS for killer in mutant.killers if killer.endswith("]")})
    mark = Path(settings.VAR_DIR) / "still-here"
    mark.parent.mkdir(parents=True, exist_ok=True)
    mark.touch()
    command = [sys.executable, "-m", "pytest", "--collect-only", "-qq", "-n", "0", "-p", "no:cacheprovider"]
    found = subprocess.run([*command, *killers], cwd=REPOSITORY, capture_output=True, text=True, check=False)
    assert found.returncode == 0, found.stderr
    assert mark.exists(), "a pytest that a test starts removed what this one works with"


def test_names_are_distinct():
    assert len({mutant.name for mutant in MUTANTS}) == len(MUTANTS)


@cache
def killers_in(path: Path) -> frozenset[tuple[str, ...]]:
    found: set[tuple[str, ...]] = set()

    def look(body: list[ast.stmt], classes: tuple[str, ...]) -> None:
        for node in body:
            if isinstance(node, ast.ClassDef):
                look(node.body, (*classes, node.name))
            elif isinstance(node, ast.FunctionDef) and node.name.startswith("test"):
                found.add((*classes, node.name))

    look(ast.parse(path.read_text()).body, ())
    return frozenset(found)
