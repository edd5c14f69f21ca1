"""Violations that axe finds on a page, by the rules every page of the site keeps."""

from typing import TYPE_CHECKING, Any

from axe_playwright_python.sync_playwright import Axe

if TYPE_CHECKING:
    from playwright.sync_api import Page

WCAG = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"]


def problems_of(page: "Page") -> list[str]:
    """Return what axe finds, and by how much the page is too wide."""
    found, wide = [item["id"] for item in violations(page)], too_wide(page)
    return found + ([f"{wide} pixels too wide"] if wide else [])


def too_wide(page: "Page") -> int:
    """Return by how many pixels a page scrolls sideways, once all of it is there and its style, too."""
    _wait_until_complete(page)
    return int(page.evaluate("document.documentElement.scrollWidth - document.documentElement.clientWidth"))


def violations(page: "Page") -> list[dict[str, Any]]:
    """Return the rules broken, each with its nodes; the nodes that keep a rule are half of the work, and left out.

    A page that is still coming is waited for. What a click leads to is for the caller to wait for: until the answer
    is there, the page is the one before it.
    """
    _wait_until_complete(page)
    options = {"runOnly": WCAG, "resultTypes": ["violations"]}
    found: list[dict[str, Any]] = Axe().run(page, options=options).response["violations"]
    return found


def _wait_until_complete(page: "Page") -> None:
    page.wait_for_load_state("load")
    page.wait_for_function("document.documentElement !== null && document.readyState === 'complete'")
