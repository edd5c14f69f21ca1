"""The first migration of an app: all its tables made from what they are in the end."""

import hashlib
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Final

from django.db.backends.base.schema import BaseDatabaseSchemaEditor
from django.db.migrations import AddConstraint, AddField, AddIndex, CreateModel, Migration, RunSQL
from django.db.migrations.state import ProjectState

# A table that is made from its last state has them already.
IN_THE_TABLE: Final = (AddField, AddConstraint, AddIndex)


def migration_digest(source: str, statements: Iterable[str]) -> str:
    return hashlib.sha256("\0".join([source, *statements]).encode()).hexdigest()


class FirstMigration(Migration):
    """Tables made from one state of their models, the last one.

    After each of its operations Django makes every model anew that is connected with the one concerned. With a hundred
    connected tables that takes longer than all statements together.

    The last table bears the digest of what made it as its comment, so that a database can be told whose tables are
    another version's under the same name.
    """

    initial = True

    def apply(
        self, project_state: ProjectState, schema_editor: BaseDatabaseSchemaEditor, collect_sql: bool = False
    ) -> ProjectState:
        if collect_sql:
            stepwise = super().apply(project_state, schema_editor, collect_sql)
            self._mark(schema_editor)
            return stepwise
        # Without the models that were made for the state before: they are made once, when a statement first asks.
        last = ProjectState(
            models={key: model.clone() for key, model in project_state.models.items()},
            real_apps=project_state.real_apps,
        )
        for operation in self.operations:
            operation.state_forwards(self.app_label, last)
        for operation in self.operations:
            if not isinstance(operation, IN_THE_TABLE):
                operation.database_forwards(self.app_label, schema_editor, last, last)
        self._mark(schema_editor)
        return last

    @property
    def marked_table(self) -> str:
        made = [each for each in self.operations if isinstance(each, CreateModel)][-1]
        return str(made.options.get("db_table") or f"{self.app_label}_{made.name_lower}")

    @property
    def digest(self) -> str:
        """The SHA-256, in hexadecimal digits, of the migration's module and the statements it takes from files."""
        source = Path(sys.modules[type(self).__module__].__file__ or "").read_text()
        statements = [str(each.sql) for each in self.operations if isinstance(each, RunSQL)]
        return migration_digest(source, statements)

    def _mark(self, schema_editor: BaseDatabaseSchemaEditor) -> None:
        # Both come from this program; a comment takes no parameters.
        schema_editor.execute(f"COMMENT ON TABLE {schema_editor.quote_name(self.marked_table)} IS '{self.digest}'")
