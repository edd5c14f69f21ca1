"""What routes of every room are declared by, so that each says only what is its own."""

from collections.abc import Callable, Sequence
from typing import Any

from ninja import Router

from annotation.rest.idempotency import once
from annotation.rest.responses import IDEMPOTENCY_KEY, LINK, REPLAYED, responses

Declaration = Callable[[Callable[..., Any]], Callable[..., Any]]
NOTHING = {204: None}


class RoomRouter(Router):
    """The routes of a room."""

    def write(
        self,
        path: str,
        *,
        response: Any = NOTHING,
        problems: Sequence[int] = (409,),
        method: str = "POST",
        **described: Any,
    ) -> Declaration:
        """Declare a route that writes, once under an Idempotency-Key, and may refuse what it is asked."""
        headers = dict.fromkeys(response if isinstance(response, dict) else [200], REPLAYED)
        extra = responses(*problems, headers=headers, parameters=[IDEMPOTENCY_KEY])
        declared = self.api_operation([method], path, response=response, openapi_extra=extra, **described)
        return lambda view: declared(once(view))

    def pages(self, path: str, *, problems: Sequence[int] = (), **described: Any) -> Declaration:
        """Declare a route that answers with a list in pages."""
        return self.get(path, openapi_extra=responses(*problems, headers={200: LINK}), **described)

    def remove(self, path: str, *, problems: Sequence[int] = (409,), **described: Any) -> Declaration:
        """Declare a route that takes something away and answers with nothing."""
        return self.delete(path, response=NOTHING, openapi_extra=responses(*problems), **described)
