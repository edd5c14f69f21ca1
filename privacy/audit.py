"""Commands of an auditor, for any host with Python: `python -m privacy.audit witness` and `... statement`."""

import argparse
import os
import sys
from collections.abc import Sequence
from pathlib import Path

from privacy.ledger.auditor.statement import StatementRefused, audit_statement, report
from privacy.ledger.auditor.witness import LedgerRefused, Site, Witness, witness_site

TOKEN = "DPAL_TOKEN"  # noqa: S105  # a variable of the environment


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command; 0 where all is well, 1 where something is refused, 2 where the call is wrong."""
    parser = argparse.ArgumentParser(prog="python -m privacy.audit", description="Check a ledger from outside.")
    commands = parser.add_subparsers(required=True)
    witness = commands.add_parser("witness", help="look at a site's ledger, and refuse what forgets or forks")
    witness.add_argument("address", help="of the site, such as https://labels.example")
    witness.add_argument("project", help="slug of the project, or of the population")
    witness.add_argument("--population", action="store_true", help="the slug is a population's")
    witness.add_argument("--public-key", required=True, help="of the site, base64, from its release page or its people")
    witness.add_argument("--keep", required=True, type=Path, help="file of what was seen; this host keeps it")
    witness.set_defaults(run=_witness)
    statement = commands.add_parser("statement", help="audit an exported statement from the file alone")
    statement.add_argument("file", type=Path, help="a statement as JSON, of a project or a population")
    statement.add_argument("--public-key", default="", help="of the site, base64, learnt elsewhere")
    statement.add_argument("--head", action="append", default=[], help="a chain head noted earlier; may be repeated")
    statement.add_argument("--witnessed", type=Path, help="file of a witness: what it saw must still be there")
    statement.set_defaults(run=_statement)
    options = parser.parse_args(arguments)
    try:
        return int(options.run(options))
    except (LedgerRefused, StatementRefused) as error:
        sys.stderr.write(f"REFUSED: {error}\n")
        return 1
    except (OSError, ValueError) as error:
        parser.error(str(error))


def _witness(options: argparse.Namespace) -> int:
    token = os.environ.get(TOKEN, "")
    if not token:
        raise ValueError(f"the token that may read the ledger is read from the environment: {TOKEN}")
    site = Site(options.address, options.project, token, "populations" if options.population else "projects")
    witness = Witness.at(options.keep, public_key=options.public_key)
    for checkpoint in witness_site(site, witness):
        sys.stdout.write(f"{checkpoint.origin}: {checkpoint.size} entries, root {checkpoint.root.hex()}\n")
    return 0


def _statement(options: argparse.Namespace) -> int:
    seen = {}
    if options.witnessed:
        seen = Witness.at(options.witnessed, public_key=options.public_key).notes
    findings = audit_statement(options.file.read_bytes(), public_key=options.public_key, heads=options.head, seen=seen)
    sys.stdout.write(report(findings, trusted=bool(options.public_key)) + "\n")
    return 0 if findings.sound else 1


if __name__ == "__main__":
    sys.exit(main())
