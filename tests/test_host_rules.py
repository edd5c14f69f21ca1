import re

import pytest

from tests.test_source_rules import OURS, ROOT, sources

# These know whether files lie on a file system, and do otherwise where not.
MAY_KNOW_PATHS = {
    "annotation/work/services/files.py",
    "annotation/data/services/forgetting.py",
    "learner/releases/storage.py",
    "learner/pools/features.py",
    "learner/releases/services/publishing.py",
}
SESSION = {
    "a lock of the session": r"pg_(?:try_)?advisory_lock(?:_shared)?\(",
    "a setting of the session": r"set_config\([^)]*,\s*false\)",
    "SET for the session": r"[\"'](?:SET|RESET)\s+(?!LOCAL|TRANSACTION|CONSTRAINTS)[A-Za-z_.]+\s*(?:=|TO\b)",
    "a cursor held over transactions": r"WITH HOLD|withhold\s*=\s*True",
    "notices to the session": r"[\"'](?:LISTEN|UNLISTEN)\s",
    "a table of the session": r"CREATE (?:TEMP|TEMPORARY) TABLE(?![^\"]*ON COMMIT DROP)",
    "a statement prepared in SQL": r"[\"'](?:PREPARE|DEALLOCATE)\s",
}
PATHS = re.compile(r"default_storage\.path\(|\.(?:upload|pixels|file)\.path\b")


def breaches(name, source):
    for what, pattern in SESSION.items():
        if re.search(pattern, source):
            yield what
    if name not in MAY_KNOW_PATHS and PATHS.search(source):
        yield "the path of a stored file"


def ours():
    files = [path for app in OURS for path in (ROOT / app).rglob("migrations/sql/*.sql")]
    statements = {str(path.relative_to(ROOT)): path.read_text() for path in files}
    return sources() | statements


def test_nothing_belongs_to_one_session_or_one_host():
    found = {name: list(breaches(name, source)) for name, source in ours().items()}
    assert {name: what for name, what in found.items() if what} == {}


@pytest.mark.parametrize(
    ("planted", "what"),
    [
        ('cursor.execute("SELECT pg_advisory_lock(%s)", [1])', "a lock of the session"),
        ("\"SELECT set_config('dpal.actor', %s, false)\"", "a setting of the session"),
        ('cursor.execute("SET statement_timeout = 0")', "SET for the session"),
        ('connection.cursor(name="x", withhold=True)', "a cursor held over transactions"),
        ('cursor.execute("LISTEN work")', "notices to the session"),
        ('"CREATE TEMPORARY TABLE x (y int)"', "a table of the session"),
        ('cursor.execute("PREPARE x AS SELECT 1")', "a statement prepared in SQL"),
        ("np.load(dataset.pixels.path)", "the path of a stored file"),
        ("open(default_storage.path(name))", "the path of a stored file"),
    ],
)
def test_each_rule_finds_a_breach(planted, what):
    assert list(breaches("learner/services/new.py", planted)) == [what]


def test_what_ends_with_its_transaction_is_no_breach():
    kept = (
        "SELECT pg_advisory_xact_lock(%s)",
        "SELECT set_config('dpal.actor', %s, true)",
        '"SET LOCAL statement_timeout = 0"',
        '"CREATE TEMPORARY TABLE x (y int) ON COMMIT DROP"',
    )
    assert not [list(breaches("x.py", source)) for source in kept if list(breaches("x.py", source))]
