import re
from pathlib import Path

from dpal_site.embedded.servers import REPOSITORY

# What links are looked for in.
LINKED = sorted(
    {
        *REPOSITORY.glob("*.md"),
        *(REPOSITORY / "docs").rglob("*.md"),
        *(REPOSITORY / ".github").rglob("*.md"),
        REPOSITORY / "client" / "README.md",
    }
)
LINK = re.compile(r"\[([^\]]*)\]\([^)]*\)")
CODE = re.compile(r"^(```|~~~|:::).*?^\1.*?$|<!--.*?-->", re.S | re.M)


def anchors(markdown: str) -> set[str]:
    """Return what links may lead to inside a page: its headings, as GitHub and the built manual write them."""
    headings = re.findall(r"^#{1,6} +(.+?) *$", CODE.sub("", markdown), re.M)
    names = [re.sub(r"[^\w\- ]", "", LINK.sub(r"\1", heading).lower()).replace(" ", "-") for heading in headings]
    before = [names[:place].count(name) for place, name in enumerate(names)]
    return {f"{name}-{times}" if times else name for name, times in zip(names, before, strict=True)}


def dead_links(page: Path, markdown: str) -> list[str]:
    """Return the links of a page that lead to no file or no heading of this repository; other hosts are not asked."""
    dead = []
    for link in re.findall(r"\]\((?!\w+:)([^)\s]+)\)", re.sub(r"`[^`\n]*`", "x", CODE.sub("", markdown))):
        path, _, anchor = link.partition("#")
        target = (page.parent / path).resolve() if path else page
        inside = markdown if target == page else target.read_text("utf-8") if anchor and target.is_file() else ""
        if not target.exists() or (anchor and anchor not in anchors(inside)):
            dead.append(link)
    return dead


def test_links_lead_somewhere():
    dead = {str(page.relative_to(REPOSITORY)): dead_links(page, page.read_text("utf-8")) for page in LINKED}
    assert {page: links for page, links in dead.items() if links} == {}


def test_a_link_that_leads_nowhere_is_found():
    alive = (
        "# Two `words`, here\n[a](#two-words-here) [b](https://example.org/x) [c](glossary.md#glossary) [d](../tests)"
    )
    code = "```\n[no](link.md)\n```\n`[no](link.md)`"
    dead = (
        "[e](#three) [f](nowhere.md) [g](../docs/glossary.md#nowhere) [h *too*](images/nowhere.svg) [i](../tests#there)"
    )
    found = ["#three", "nowhere.md", "../docs/glossary.md#nowhere", "images/nowhere.svg", "../tests#there"]
    assert dead_links(REPOSITORY / "docs" / "index.md", f"{alive}\n{code}\n{dead}\n") == found
    assert anchors("# One\n## One\n```\n# no\n```\n### [One](a.md) [two]\n") == {"one", "one-1", "one-two"}
