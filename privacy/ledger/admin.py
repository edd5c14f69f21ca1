"""The ledger for administrators: to look at. What stands there is changed by new entries, never by a form."""

from typing import Any

from django.contrib import admin
from django.db.models import Model
from django.http import HttpRequest

from privacy.ledger.models import BudgetAccount, LedgerEntry


class ReadOnlyAdmin(admin.ModelAdmin):  # type: ignore[type-arg]  # Django gives no generic class at run time
    """Shows rows; changing them is a service's work, and the ledger's the database itself refuses to change."""

    def has_add_permission(self, request: HttpRequest) -> bool:
        return False

    def has_change_permission(self, request: HttpRequest, obj: Model | None = None) -> bool:
        return False

    def has_delete_permission(self, request: HttpRequest, obj: Model | None = None) -> bool:
        return False


def show(model: type[Model], *columns: str, **options: Any) -> None:
    """Register a table to be looked at; `options` are those of a `ModelAdmin`."""
    admin.site.register(model, type(f"{model.__name__}Admin", (ReadOnlyAdmin,), {"list_display": columns, **options}))


show(
    BudgetAccount,
    *("label", "unit", "adjacency", "filter", "created_at"),
    list_filter=("unit", "filter"),
    search_fields=("scope", "label"),
)
show(
    LedgerEntry,
    *("account", "sequence", "kind", "mechanism", "purpose", "actor", "created_at"),
    list_filter=("kind",),
    list_select_related=("account",),
    show_full_result_count=False,
)
