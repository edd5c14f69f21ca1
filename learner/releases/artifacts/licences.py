"""licences.md: under which licence each file of a release may be used."""

from collections.abc import Iterable

OURS = "Apache-2.0, like the program that wrote it"
WEIGHTS = "as whoever runs the project says; the card names none of its own accord"
LICENCES = {
    "encoder.npz": "Apache-2.0 and the WordNet 3.0 licence; both notices are in encoder.md",
    "encoder.md": "the notices themselves",
    "words.json": OURS,
    "features.json": OURS,
    "samples.json": OURS + "; its records are made up",
    "privacy.json": "CC0-1.0",
    "thresholds.json": "CC0-1.0",
    "card.md": "CC0-1.0",
    "licences.md": "CC0-1.0",
}


def licences_text(names: Iterable[str], *, further: str) -> str:
    """Return the document for the files of a release, with what its featuriser says of what is not among them."""
    lines = [f"| `{name}` | {LICENCES.get(name, WEIGHTS)} |" for name in sorted(names)]
    body = "\n".join(["# Licences of the parts", "", "| file | licence |", "|---|---|", *lines, ""])
    return body + further
