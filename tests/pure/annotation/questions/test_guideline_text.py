"""Guidelines on a page: forms of Markdown are there, and nothing that is written in them acts as HTML."""

import re

import pytest

from annotation.questions.guideline_text import guidelines_html


def test_the_forms_are_there_and_lines_end_where_they_end():
    html = guidelines_html(
        "# Fruit\n\nTake the first.\nOr *the* **second** `x<y`.\n\n- one\n- two\n\n> said", "Guidelines"
    )
    assert '<h2 dir="auto">Fruit</h2>' in html
    assert "Take the first.<br>" in html
    assert "<em>the</em> <strong>second</strong> <code>x&lt;y</code>" in html
    assert '<li dir="auto">' in html
    assert '<blockquote dir="auto">' in html


def test_a_table_is_scrolled_by_keys_under_the_name_of_what_is_above_it():
    table = "| class | when |\n|---|---|\n| a | b |\n"
    part = '<div class="scroll" tabindex="0" role="group" aria-label="{}"><table>'
    assert part.format("Guidelines") in guidelines_html(table, "Guidelines")
    assert part.format("Two &lt;kinds&gt;") in guidelines_html(f"## Two <kinds>\n\n{table}", "Guidelines")


@pytest.mark.parametrize(
    "hostile",
    [
        "<script>alert(1)</script>",
        "<img src=x onerror=alert(1)>",
        "[text](javascript:alert(1))",
        "[text](https://elsewhere.example/)",
        "![text](https://elsewhere.example/x.png)",
        "![text][x]\n\n[x]: https://elsewhere.example/x.png",
        "<https://elsewhere.example/>",
        "https://elsewhere.example/",
        '## " onclick="alert(1)\n\n| a |\n|---|\n| b |',
        "```html onclick=x\n<script>alert(1)</script>\n```",
        "<!-- x -->",
    ],
)
def test_nothing_acts_as_html(hostile):
    html = guidelines_html(f"# t\n\n{hostile}\n", "Guidelines")
    tags = set(re.findall(r"<\s*([a-zA-Z0-9!]+)", html))
    assert tags <= {"p", "h2", "h3", "div", "table", "thead", "tbody", "tr", "th", "td", "pre", "code", "br"}
    attributes = re.findall(r"<[^>]*?\s([a-z-]+)=", html)
    assert set(attributes) <= {"class", "tabindex", "role", "aria-label", "dir"}
