"""Size of the project: lines, folders, raw SQL, overridable members, words. Run by `make size`."""

import ast
import re
import subprocess
from collections.abc import Iterable
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
PRODUCT = ("privacy", "annotation", "learner", "addons", "dpal_site", "client")
APPS = ("privacy", "annotation", "learner", "dpal_site")
RAW_SQL = re.compile(r"\bcursor\(|\.raw\(|\bRawSQL\b|\bsql\.SQL\b|\bRunSQL\b")


def tracked(*patterns: str) -> list[Path]:
    listed = subprocess.run(["git", "ls-files", *patterns], cwd=ROOT, capture_output=True, text=True, check=True)
    return [ROOT / name for name in listed.stdout.splitlines() if (ROOT / name).is_file()]


def python(folder: str) -> list[Path]:
    return [path for path in tracked(f"{folder}/*.py") if "/migrations/" not in str(path)]


def lines(paths: Iterable[Path]) -> int:
    return sum(path.read_text(encoding="utf-8").count("\n") for path in paths)


def docstring_lines(path: Path) -> int:
    found = 0
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef) and ast.get_docstring(node):
            first = node.body[0]
            found += (first.end_lineno or first.lineno) - first.lineno + 1
    return found


def named(expression: ast.expr) -> str:
    """Return the last part of a class's name: of `module.Base[int]` it is Base."""
    plain = expression.value if isinstance(expression, ast.Subscript) else expression
    return plain.attr if isinstance(plain, ast.Attribute) else getattr(plain, "id", "")


def overridable(node: ast.ClassDef) -> set[str]:
    """Return the members of a class that a subclass may override: not what is final, and no declared parameter."""
    found = set()
    for each in node.body:
        if isinstance(each, ast.FunctionDef) and not each.name.startswith("__"):
            if not any(named(decorator) == "final" for decorator in each.decorator_list):
                found.add(each.name)
        elif isinstance(each, ast.AnnAssign) and isinstance(each.target, ast.Name):
            declared = isinstance(each.value, ast.Call) and named(each.value.func) in ("parameter", "delta_of_training")
            if not declared and named(each.annotation) != "Final":
                found.add(each.target.id)
    return found


def members_of_choices(product: list[Path]) -> list[tuple[str, int, int]]:
    """Return of each base class of a choice its own overridable members, and how many are overridden at most once."""
    classes = {
        node.name: node
        for path in product
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.ClassDef)
    }
    parents = {name: {named(base) for base in node.bases} - {name} for name, node in classes.items()}

    def ancestors(name: str) -> set[str]:
        return parents.get(name, set()).union(*(ancestors(parent) for parent in parents.get(name, set())))

    lines = {name: ancestors(name) for name in classes}
    found = []
    for base in sorted(name for name in classes if name == "Choice" or "Choice" in lines[name]):
        derived = [name for name in classes if base in lines[name]]
        inherited = {member for name in lines[base] & classes.keys() for member in overridable(classes[name])}
        if own := overridable(classes[base]) - inherited if derived else set():
            times = {member: sum(member in overridable(classes[name]) for name in derived) for member in own}
            found.append((base, len(own), sum(count <= 1 for count in times.values())))
    return found


def main() -> None:
    product = [path for folder in PRODUCT for path in python(folder)]
    for folder in PRODUCT:
        print(f"{folder:<12} {lines(python(folder)):>7,} lines in {len(python(folder)):>4} modules")
    total = lines(product)
    print(f"product      {total:>7,} lines, {sum(map(docstring_lines, product)) / total:.1%} of them docstrings")
    print(f"tests        {lines(tracked('tests/*.py')):>7,} lines")
    print(f"benchmarks   {lines(tracked('benchmarks/*.py')):>7,} lines in {len(tracked('benchmarks/*.py'))} modules")
    folders = {path.parent for app in APPS for path in python(app)}
    print(f"folders with Python in the four apps: {len(folders)}")
    raw = [path for path in product if RAW_SQL.search(path.read_text(encoding="utf-8"))]
    print(f"modules with raw SQL: {len(raw)}")
    for base, members, seldom in members_of_choices(product):
        print(f"members of {base:<16} {members:>3}, {seldom} overridden at most once")
    decisions = tracked("docs/adr/*.md")
    print(f"words of Markdown: {sum(len(path.read_text(encoding='utf-8').split()) for path in tracked('*.md')):,}")
    print(f"decision records: {len(decisions)}")
    catalogue = (ROOT / "locale/de/LC_MESSAGES/django.po").read_text(encoding="utf-8")
    messages = re.findall(r'^msgid (".*"(?:\n".*")*)', catalogue, re.M)[1:]
    words = sum(len("".join(re.findall(r'"(.*)"', message)).split()) for message in messages)
    print(f"interface messages: {len(messages):,} with {words:,} words")


if __name__ == "__main__":
    main()
