"""Empty the test database after a test that committed: what was written, and nothing else, in one statement.

Django truncates every table and then makes content types and permissions anew, which takes a hundred times as long as
a small test's rows do.
"""

from functools import cache
from typing import TYPE_CHECKING

from django.db import DatabaseError, connections
from django.db.backends.base.base import BaseDatabaseWrapper

from tests.counting import begin_over

if TYPE_CHECKING:
    from django.test import TransactionTestCase

# What migrations make and no test changes.
KEPT = ("django_content_type", "auth_permission", "annotation_knownchoice", "privacy_ledgercounter")
EMPTYING = """
DO $$
DECLARE
    tables text[] := ARRAY[{tables}];
    command text;
    filled text[];
    large text[];
    rules_off text[];
    rules_on text[];
BEGIN
    -- Whoever still writes is waited for.
    EXECUTE 'LOCK TABLE ' || array_to_string(tables, ', ') || ' IN EXCLUSIVE MODE';
    -- No file, no row; few pages, few rows, and deleting those costs less than new files for the table and its indexes.
    SELECT array_agg(each), array_agg(each) FILTER (WHERE pg_relation_size(each::regclass) > 256 * 1024)
        INTO filled, large FROM unnest(tables) each WHERE pg_relation_size(each::regclass) > 0;
    IF filled IS NULL THEN
        RETURN;
    END IF;
    -- No rule of ours keeps a row here, and no row asks for another one.
    SET LOCAL session_replication_role = replica;
    -- The ledger's rules hold for replicas as well, so they are put off and come back.
    SELECT array_agg(format('ALTER TABLE %s DISABLE TRIGGER %I', tgrelid::regclass, tgname)),
           array_agg(format('ALTER TABLE %s ENABLE ALWAYS TRIGGER %I', tgrelid::regclass, tgname))
        INTO rules_off, rules_on FROM pg_trigger
        WHERE NOT tgisinternal AND tgenabled = 'A' AND tgtype::int & (8 | 32) <> 0
            AND (large IS NOT NULL OR tgrelid::regclass::text = ANY (filled));
    FOREACH command IN ARRAY coalesce(rules_off, ARRAY[]::text[]) LOOP
        EXECUTE command;
    END LOOP;
    IF large IS NOT NULL THEN
        EXECUTE 'TRUNCATE ' || array_to_string(large, ', ') || ' CASCADE';
    END IF;
    FOREACH command IN ARRAY filled LOOP
        EXECUTE 'DELETE FROM ' || command;
    END LOOP;
    FOREACH command IN ARRAY coalesce(rules_on, ARRAY[]::text[]) LOOP
        EXECUTE command;
    END LOOP;
    SET LOCAL session_replication_role = origin;
END $$
"""

# What a pooler does before it gives a session to somebody else, but for what was compiled, planned and looked up there.
AS_NEW = """
    CLOSE ALL; UNLISTEN *; RESET SESSION AUTHORIZATION; RESET ROLE; RESET ALL; DISCARD TEMP; DISCARD SEQUENCES;
    SELECT pg_advisory_unlock_all()
"""


def written_tables() -> list[str]:
    """Return the names of all tables but those that migrations fill."""
    return _tables("default")


def empty_tables(alias: str = "default") -> None:
    """Delete every row of every table but those that migrations fill."""
    # Only the owner can put the rules off; the session goes on as it was.
    with connections[alias].cursor() as cursor:
        cursor.execute("SET ROLE none")
        cursor.execute(EMPTYING.format(tables=", ".join(f"'{name}'" for name in _tables(alias))))
        cursor.execute("RESET ROLE")


@cache
def _tables(alias: str) -> list[str]:
    found = connections[alias].introspection.django_table_names(only_existing=True, include_views=False)
    return sorted({*found} - {*KEPT})


def empty_after(test: "TransactionTestCase") -> None:
    """Stand in for `TransactionTestCase._fixture_teardown`."""
    for alias in test._databases_names(include_mirrors=False):
        empty_tables(alias)
    begin_over()


def needs_new_sessions(test: "TransactionTestCase") -> bool:
    """Stand in for `TransactionTestCase._should_reload_connections`: a session that can be made as new goes on.

    Another one would compile every trigger and look up every table again, which takes longer than most tests.
    """
    opened = connections.all(initialized_only=True)
    return not all(database.connection is None or _made_as_new(database) for database in opened)


def _made_as_new(database: BaseDatabaseWrapper) -> bool:
    if database.in_atomic_block or not database.get_autocommit() or not database.is_usable():
        return False
    try:
        with database.cursor() as cursor:
            cursor.execute(AS_NEW)
    except DatabaseError:
        return False
    return True
