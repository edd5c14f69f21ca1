"""The first migration of an app: all its tables made from what they are in the end."""

from typing import Final

from django.db.backends.base.schema import BaseDatabaseSchemaEditor
from django.db.migrations import AddConstraint, AddField, AddIndex, Migration
from django.db.migrations.state import ProjectState

# A table that is made from its last state has them already.
IN_THE_TABLE: Final = (AddField, AddConstraint, AddIndex)


class FirstMigration(Migration):
    """Tables made from one state of their models, the last one.

    After each of its operations Django makes every model anew that is connected with the one concerned. With a hundred
    connected tables that takes longer than all statements together.
    """

    initial = True

    def apply(
        self, project_state: ProjectState, schema_editor: BaseDatabaseSchemaEditor, collect_sql: bool = False
    ) -> ProjectState:
        """Apply the operations: the state of all first, then the statements of each."""
        if collect_sql:
            return super().apply(project_state, schema_editor, collect_sql)
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
        return last
