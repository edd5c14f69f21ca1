import ast
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

import annotation.errors
import learner.errors
import privacy.errors
from dpal_site.catalogues import UNTRANSLATED, read_catalogue
from dpal_site.embedded.servers import REPOSITORY

GERMAN = read_catalogue(REPOSITORY / "locale" / "de" / "LC_MESSAGES" / "django.po")
SAYING = {"as_message", "as_plural_message", "joined_messages", "joined_rules"}
# Where sentences for people stand besides refusals: keyword or position by the name of what is called.
STORED = {"error", "message"}
STORING = {"fail_work", "finish_work", "report"}
# What an entry of the ledger says in words.
PURPOSES = {"purpose", "operation"}
ENTERING = {
    "PostProcessingEvent",
    "record_descent",
    "record_free_use",
    "record_post_processing",
    "reserve",
    "reserve_attempt",
}
POSITIONS = {"ProjectStatus": 1, "_if_paid": 2, "BadRow": 2, "BadCell": 0}
COMMANDS = ("management", "reproduce", "embedded", "demo", "monitoring")


def own_errors() -> set[str]:
    bases = (annotation.errors.AnnotationError, learner.errors.LearnerError, privacy.errors.PrivacyError)
    found = set()
    for module in (annotation.errors, learner.errors, privacy.errors):
        found |= {name for name, kind in vars(module).items() if isinstance(kind, type) and issubclass(kind, bases)}
    return found - UNTRANSLATED


OWN = own_errors()


def sentences(tree: ast.AST) -> Iterator[ast.expr]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Call):
            name = _name(node.func)
            if name in OWN:
                yield from (part for part in node.args[:2] if not isinstance(part, ast.List | ast.Starred))
            if name == "no_proof":
                yield node.args[2]
            if name in POSITIONS and len(node.args) > POSITIONS[name]:
                yield node.args[POSITIONS[name]]
            if name in STORING:
                yield from (word.value for word in node.keywords if word.arg in STORED)
            if name in ENTERING:
                yield from (word.value for word in node.keywords if word.arg in PURPOSES)
            if name == "add_error":
                yield node.args[1]
        if isinstance(node, ast.Assign) and _name(getattr(node.targets[0], "value", node)) == "broken":
            yield node.value


def bare_in(tree: ast.Module) -> list[int]:
    named = {_name(one.targets[0]): one.value for one in tree.body if isinstance(one, ast.Assign)}
    found = (named.get(said.id, said) if isinstance(said, ast.Name) else said for said in sentences(tree))
    return [said.lineno for said in found if bare(said)]


def bare(said: ast.expr) -> bool:
    if isinstance(said, ast.Constant):
        return isinstance(said.value, str) and bool(said.value) and not any(GERMAN.get(said.value, [""]))
    if isinstance(said, ast.JoinedStr | ast.BinOp):
        return True
    if isinstance(said, ast.IfExp):
        return bare(said.body) or bare(said.orelse)
    if isinstance(said, ast.Call) and isinstance(said.func, ast.Attribute):
        # A text's own methods: "...".format(), " ".join().
        return isinstance(said.func.value, ast.Constant | ast.JoinedStr) and said.func.attr == "format"
    return False


def _name(called: ast.expr) -> str:
    return called.id if isinstance(called, ast.Name) else getattr(called, "attr", "")


def modules() -> list[Path]:
    packages = ("addons", "annotation", "learner", "privacy", "dpal_site")
    found = [path for package in packages for path in (REPOSITORY / package).rglob("*.py")]
    return [path for path in found if not set(COMMANDS) & set(path.parts)]


@cache
def found_in(path: Path) -> tuple[list[int], list[int]]:
    """Return the lines of a module with English alone, and those where a message is lost; it is parsed once."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    return bare_in(tree), lost_in(tree)


def test_no_sentence_is_put_together_in_english():
    wrong = []
    for path in modules():
        wrong += [f"{path.relative_to(REPOSITORY)}:{line}" for line in found_in(path)[0]]
    assert not wrong, "as_message(template, values) them, and translate the template in locale/"


@pytest.mark.parametrize(
    "source",
    [
        "raise LeaseExpired(f'{n} left')",
        "raise no_proof(kind, adjacency, f'proven for {other}')",
        "raise LeaseExpired('Not in any catalogue.')",
        "raise InvalidRecords([], f'{n} bad')",
        "raise InvalidChoice('{} of them'.format(n))",
        "raise BudgetExceeded('too ' + dear)",
        "broken['field'] = f'got {n}'",
        "work.fail_work(row=job, error=f'stopped with {n}')",
        "BadRow(3, '', f'has {n}')",
        "ProjectStatus(Step.ASK, f'{n} open' if n else as_message('none'))",
        "GONE = 'is gone for good'\nBadRow(3, '', GONE)",
        "form.add_error('file', f'{n} wrong')",
        "ledger.reserve(account=account, event=event, purpose=f'train version {n}', key=key)",
        "reserve_attempt(row, account=account, event=event, purpose='In no catalogue at all.')",
        "PostProcessingEvent(operation=f'{picks} of {n} texts')",
    ],
)
def test_what_would_stay_english_is_found(source):
    assert bare_in(ast.parse(source))


def test_nothing_that_is_said_is_put_into_a_text():
    """A text that holds a message is none: a page could not tell it in another language."""
    found = {str(path.relative_to(REPOSITORY)): found_in(path)[1] for path in modules()}
    assert {path: lines for path, lines in found.items() if lines} == {}
    assert len(found) > 600


@pytest.mark.parametrize(
    ("source", "lost"),
    [
        ("error = said + ' ' + as_message('It is done.')", [1]),
        ("error = ' '.join([given_up, as_message('It is done.')])", [1]),
        ("error = f'{as_message(template, n=1)}!'", [1]),
        ("error = as_message('It is done.')[:100]", [1]),
        ("error = as_message('It is done.').strip()", [1]),
        ("told += ' ' + as_plural_message('a', 'b', n=1)", [1]),
        ("fail_work(row=row, error=error[:1000])", [1]),
        ("fail_work(row=row, error=' '.join(found))", [1]),
        ("raise LeaseExpired('; '.join(found))", [1]),
        ("raise LeaseExpired(said.strip())", [1]),
        ("error = joined_messages(' ', [given_up, as_message('It is done.')])", []),
        ("fail_work(row=row, error=str(error))", []),
        ("slug = '-'.join(parts)[:40]", []),
    ],
)
def test_a_message_that_is_lost_is_found(source, lost):
    assert lost_in(ast.parse(source)) == lost


def lost_in(tree: ast.AST) -> list[int]:
    found = set()
    for node in ast.walk(tree):
        parts: list[ast.AST] = []
        if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add):
            parts = [node.left, node.right]
        elif isinstance(node, ast.JoinedStr):
            parts = [part.value for part in node.values if isinstance(part, ast.FormattedValue)]
        elif isinstance(node, ast.Subscript):
            parts = [node.value]
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            listed = (
                [each for part in node.args for each in getattr(part, "elts", [])] if node.func.attr == "join" else []
            )
            parts = [node.func.value, *listed]
        if any(isinstance(part, ast.Call) and _name(part.func) in SAYING for part in parts):
            found.add(node.lineno)
    return sorted(found | {said.lineno for said in sentences(tree) if _is_cut(said)})


def _is_cut(said: ast.expr) -> bool:
    if isinstance(said, ast.Subscript):
        return isinstance(said.slice, ast.Slice)
    called = said.func if isinstance(said, ast.Call) else None
    return isinstance(called, ast.Attribute) and called.attr in ("join", "strip", "format", "replace", "rstrip")
