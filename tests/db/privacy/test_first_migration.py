import re

import pytest
from django.db import connection, migrations, models
from django.db.migrations.state import ProjectState

from privacy.first_migration import FirstMigration
from tests.owning import as_owner

SHAPE = {
    "columns": """
        SELECT table_name, ordinal_position, column_name, data_type, is_nullable, column_default
        FROM information_schema.columns WHERE table_schema = current_schema() AND table_name LIKE %s""",
    "constraints": """
        SELECT conrelid::regclass::text, conname, pg_get_constraintdef(oid) FROM pg_constraint
        WHERE conrelid::regclass::text LIKE %s""",
    "indexes": "SELECT tablename, indexname, indexdef FROM pg_indexes WHERE tablename LIKE %s",
    "comments": "SELECT relname, obj_description(oid) FROM pg_class WHERE relname LIKE %s AND relkind = 'r'",
}


def operations() -> list[migrations.operations.base.Operation]:
    key = models.BigAutoField(primary_key=True)
    return [
        migrations.CreateModel("Shelf", [("id", key), ("name", models.CharField(max_length=20, unique=True))]),
        migrations.CreateModel(
            "Book",
            [
                ("id", models.BigAutoField(primary_key=True)),
                ("shelf", models.ForeignKey("planted.shelf", on_delete=models.CASCADE)),
                ("pages", models.PositiveIntegerField()),
            ],
            options={
                "constraints": [models.CheckConstraint(condition=models.Q(pages__gt=0), name="planted_book_pages")]
            },
        ),
        migrations.AddField("shelf", "best", models.ForeignKey("planted.book", null=True, on_delete=models.SET_NULL)),
        migrations.AddConstraint(
            "shelf", models.UniqueConstraint(fields=["best"], condition=models.Q(name="x"), name="planted_shelf_best")
        ),
        migrations.AddIndex("shelf", models.Index(fields=["best", "name"], name="planted_shelf_best_name")),
        migrations.RunSQL("COMMENT ON TABLE planted_shelf IS 'rules come last'", migrations.RunSQL.noop),
    ]


def made_by(base: type[migrations.Migration]) -> dict[str, list[tuple[object, ...]]]:
    migration = type("Migration", (base,), {"operations": operations()})("0001_tables", "planted")
    with as_owner():
        with connection.schema_editor() as editor:
            state = migration.apply(ProjectState(), editor)
        assert set(state.models) == {("planted", "shelf"), ("planted", "book")}
        found = {}
        with connection.cursor() as cursor:
            for name, query in SHAPE.items():
                cursor.execute(query, ["planted%"])
                found[name] = sorted(cursor.fetchall(), key=str)
            cursor.execute("DROP TABLE planted_shelf, planted_book CASCADE")
    return found


@pytest.mark.django_db(transaction=True)
def test_tables_are_those_that_are_made_step_by_step():
    once, stepwise = made_by(FirstMigration), made_by(migrations.Migration)
    # But for the digest of what made them, which the last table bears.
    digests = [comment for table, comment in once["comments"] if table == "planted_book"]
    assert re.fullmatch("[0-9a-f]{64}", digests[0])
    assert once["comments"] == [
        (table, digests[0] if table == "planted_book" else said) for table, said in stepwise["comments"]
    ]
    assert {**once, "comments": stepwise["comments"]} == stepwise
    assert {"planted_shelf_best", "planted_shelf_best_name"} <= {name for _table, name, _definition in once["indexes"]}
    assert "planted_book_pages" in {name for _table, name, _definition in once["constraints"]}
    assert ("planted_shelf", "rules come last") in once["comments"]


@pytest.mark.django_db(transaction=True)
def test_one_that_leaves_out_what_comes_later_is_noticed():
    class Forgetful(FirstMigration):
        def apply(self, project_state, schema_editor, collect_sql=False):
            self.operations = [each for each in self.operations if not isinstance(each, migrations.AddConstraint)]
            return super().apply(project_state, schema_editor, collect_sql)

    assert made_by(Forgetful)["indexes"] != made_by(migrations.Migration)["indexes"]


def test_the_digest_follows_the_statements_from_files():
    def digest_of(statement):
        made = [*operations()[:-1], migrations.RunSQL(statement)]
        return type("Migration", (FirstMigration,), {"operations": made})("0001_tables", "planted").digest

    assert digest_of("SELECT 1") == digest_of("SELECT 1") != digest_of("SELECT 2")
