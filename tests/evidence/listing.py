"""Write docs/evidence.md from the list of faults: `python -m tests.evidence.listing`."""

from dpal_site.embedded.servers import REPOSITORY
from tests.evidence.mutants import KINDS, MUTANTS
from tests.evidence.planting import Mutant

PAGE = REPOSITORY / "docs" / "evidence.md"
HEAD = """# What the tests notice

`make evidence` plants each of these {number} faults in a copy of the program, one at a time. It demands that every
test named beside it fails. Without a fault all of these tests must pass. The page is written from the list itself
(`tests/evidence/mutants.py`). `make test` checks that every fault can still be planted, that every test is there
and that this page names them all.
"""


def page() -> str:
    """Return the page: a table for each kind of fault."""
    parts = [HEAD.format(number=len(MUTANTS))]
    for kind, mutants in KINDS.items():
        parts.append(f"\n## {kind}\n\n| fault | planted in | noticed by |\n|---|---|---|\n")
        parts += [_row(mutant) for mutant in mutants]
    return "".join(parts)


def _row(mutant: Mutant) -> str:
    tests = "; ".join(f"`{name}`" for name in dict.fromkeys(_short(killer) for killer in mutant.killers))
    return f"| {mutant.name} | `{mutant.file}` | {tests} |\n"


def _short(killer: str) -> str:
    """Return file and test without the folder, the classes and the parameters."""
    file, *inside = killer.partition("[")[0].split("::")
    return f"{file.removeprefix('tests/')}::{inside[-1]}"


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
