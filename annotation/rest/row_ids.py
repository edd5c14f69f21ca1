"""Numbers of rows, as addresses of pages and routes name them."""


def row_id(text: str) -> int | None:
    """Return the number of a row from an address; None for what can be none."""
    return int(text) if text.isdecimal() and len(text) < 19 else None
