"""Write docs/evidence.md from the list of faults: `python -m tests.evidence.listing`."""

from dpal_site.embedded.servers import REPOSITORY
from tests.evidence.mutants import KINDS, MUTANTS

PAGE = REPOSITORY / "docs" / "evidence.md"
HEAD = """# Planted faults

`make evidence` plants each of these {number} faults in a copy of the program, one at a time, and demands that every
test listed with it in `tests/evidence/faults/` fails. Without a fault all of these tests must pass. `make test` checks
that every fault can still be planted, that every test exists and that this page, which
`python -m tests.evidence.listing` writes, names every fault.
"""


def page() -> str:
    """Return the page: the faults of each kind."""
    parts = [HEAD.format(number=len(MUTANTS))]
    for kind, mutants in KINDS.items():
        parts.append(f"\n## {kind}\n\n")
        parts += [f"- {mutant.name}\n" for mutant in mutants]
    return "".join(parts)


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
