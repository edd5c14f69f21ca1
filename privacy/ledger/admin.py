"""The ledger for administrators: to look at. What stands there is changed by new entries, never by a form."""

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


@admin.register(BudgetAccount)
class BudgetAccountAdmin(ReadOnlyAdmin):
    list_display = ("label", "unit", "adjacency", "filter", "created_at")
    list_filter = ("unit", "filter")
    search_fields = ("scope", "label")


@admin.register(LedgerEntry)
class LedgerEntryAdmin(ReadOnlyAdmin):
    list_display = ("account", "sequence", "kind", "mechanism", "purpose", "actor", "created_at")
    list_filter = ("kind",)
    list_select_related = ("account",)
    show_full_result_count = False
