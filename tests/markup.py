"""The source of a page, compared without regard to where its lines end."""

import re


def tight(html: str) -> str:
    """Return a page's source with single spaces between words and none beside a tag."""
    return re.sub(r" ?(<[^<>]*>) ?", r"\1", re.sub(r"\s+", " ", html))


def commas_in_numbers(html: str) -> list[str]:
    """Return the attributes whose number has a decimal comma, which no browser reads; those read out may have one."""
    return re.findall(r'(?<=\s)(?!aria-|data-label|title|alt|placeholder|content)[\w-]+="-?\d+,\d[^"]*"', html)
