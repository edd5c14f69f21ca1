import runpy

from dpal_site.embedded.servers import REPOSITORY

CHECK = runpy.run_path(str(REPOSITORY / ".ci" / "docs.py"))
anchors, dead_links, dead_mentions, dead_names = (
    CHECK[name] for name in ("anchors", "dead_links", "dead_mentions", "dead_names")
)


def test_what_the_manuals_refer_to_exists(capsys):
    assert CHECK["main"]() == 0, capsys.readouterr().out


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


def test_a_name_that_is_gone_is_found():
    alive = (
        "`SECRET_KEY`, `SECRET_KEY_FILE=/path`, `manage.py audit_ledger --json`, `make lint`, `learner/papers/pages.py`"
    )
    gone = "SECRET_" + "WORDS"
    dead = f"`{gone}`, `manage.py audit_everything`, `make everything`, `learner/papers/nowhere.py`, `nowhere.sql`"
    assert list(dead_names(alive)) == []
    assert list(dead_names(dead)) == [
        f"setting {gone}",
        "manage.py audit_everything",
        "make everything",
        "file learner/papers/nowhere.py",
        "file nowhere.sql",
    ]


def test_a_manual_that_code_names_and_that_is_gone_is_found():
    assert dead_mentions("docs/glossary.md, docs/glossary.md#glossary; docs/gone.md and docs/glossary.md#gone") == [
        "docs/gone.md",
        "docs/glossary.md#gone",
    ]
