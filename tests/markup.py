"""The source of a page, compared without regard to where its lines end."""

import re


def tight(html: str) -> str:
    """Return a page's source with single spaces between words and none beside a tag."""
    return re.sub(r" ?(<[^<>]*>) ?", r"\1", re.sub(r"\s+", " ", html))
