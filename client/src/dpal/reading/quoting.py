"""Names in lines of people: those that hold the mark between two stand in quotation marks."""

import csv
import re

NAMED = re.compile(r'\s*(?:"((?:[^"]|"")*)"|([^":]*))\s*:(.*)', re.DOTALL)


def quoted(name: str, mark: str) -> str:
    needed = mark in name or '"' in name or name != name.strip()
    return '"' + name.replace('"', '""') + '"' if needed else name


def split_name(line: str) -> tuple[str, str]:
    """Return the name that a line begins with, up to its colon, and the rest; two empty texts where there is none."""
    found = NAMED.fullmatch(line)
    if found is None:
        return "", ""
    name = found[2].strip() if found[1] is None else found[1].replace('""', '"')
    return name, found[3].strip()


def split_quoted(text: str, mark: str = ",") -> list[str]:
    cells = next(csv.reader([text], delimiter=mark, skipinitialspace=True), [])
    return [cell.strip() for cell in cells if cell.strip()]
