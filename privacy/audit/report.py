"""Verdicts as text, for a terminal."""

from privacy.audit.account import Verdict
from privacy.audit.statement import Findings


def as_text(verdict: Verdict) -> str:
    """Return a verdict, and of what differs where, what is stored, and what it must be."""
    word = "DIFFERS" if verdict.differing else "sound"
    lines = [f"{verdict.scope}: {word}, {verdict.entries} entries, head {verdict.chain_head[:16]}", *_lines(verdict)]
    return "\n".join(lines)


def report(findings: Findings, *, trusted: bool) -> str:
    """Return all verdicts on a statement; without a trusted key it says which one to compare."""
    document, *accounts = findings.verdicts
    lines = [f"document: {'DIFFERS' if document.differing else 'as the site signed it'}", *_lines(document)]
    lines += [as_text(verdict) for verdict in accounts]
    if not trusted:
        lines.append(f"signed by {findings.public_key}: is that the site's key? Name it with --public-key.")
    return "\n".join(lines)


def _lines(verdict: Verdict) -> list[str]:
    lines = []
    for difference in verdict.differences:
        place = f"entry {difference.sequence}" if difference.sequence else "account" if verdict.scope else "document"
        lines.append(f"  {place}, {difference.field}: {difference.stored}, must be {difference.expected}")
    if verdict.differing > len(verdict.differences):
        lines.append(f"  and {verdict.differing - len(verdict.differences)} more")
    return lines
