"""Long lists in pages: `limit` and `offset` in the query, and in the answer where the next page is."""

from collections.abc import Sequence
from typing import Any

from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse
from ninja import Field, Schema

LARGEST_PAGE = 1000


class Page(Schema):
    """Which part of a list is wanted."""

    limit: int = Field(100, ge=1, le=LARGEST_PAGE, description="Rows at most.")
    offset: int = Field(0, ge=0, le=2**31, description="Rows to leave out first.")


def page_of(
    found: QuerySet[Any] | Sequence[Any], page: Page, *, request: HttpRequest, response: HttpResponse
) -> list[Any]:
    """Return one page of what is there in order; the header Link names the next page while there is one (RFC 8288)."""
    # One more than asked says whether there is a next page without counting all rows.
    rows = list(found[page.offset : page.offset + page.limit + 1])
    if len(rows) > page.limit:
        query = request.GET.copy()
        query["limit"], query["offset"] = str(page.limit), str(page.offset + page.limit)
        address = request.build_absolute_uri(f"{request.path}?{query.urlencode()}")
        response.headers["Link"] = f'<{address}>; rel="next"'
    return rows[: page.limit]
