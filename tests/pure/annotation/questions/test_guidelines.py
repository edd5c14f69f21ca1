import re

import pytest

from annotation.errors import InvalidConfiguration
from annotation.questions.guidelines import ShownPicture, guidelines_html, refuse_pictures_of_others

KNOWN = ShownPicture("0123456789abcdef", "/here/", 30, 20)


def test_the_forms_are_there_and_lines_end_where_they_end():
    html = guidelines_html(
        "# Fruit\n\nTake the first.\nOr *the* **second** `x<y`.\n\n- one\n- two\n\n> said", "Guidelines"
    )
    assert '<h2 dir="auto">Fruit</h2>' in html
    assert "Take the first.<br>" in html
    assert "<em>the</em> <strong>second</strong> <code>x&lt;y</code>" in html
    assert '<li dir="auto">' in html
    assert '<blockquote dir="auto">' in html


@pytest.mark.parametrize(
    "hostile",
    [
        "<script>alert(1)</script>",
        "<img src=x onerror=alert(1)>",
        "[text](javascript:alert(1))",
        "[text](https://elsewhere.example/)",
        '![" onerror="alert(1)](picture:0123456789abcdef)',
        "![<b>](picture:ffffffffffffffff)",
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
    html = guidelines_html(f"# t\n\n{hostile}\n", "Guidelines", (KNOWN,))
    tags = set(re.findall(r"<\s*([a-zA-Z0-9!]+)", html))
    assert tags <= {"p", "h2", "h3", "div", "table", "thead", "tbody", "tr", "th", "td", "pre", "code", "br", "img"}
    attributes = re.findall(r"<[^>]*?\s([a-z-]+)=", html)
    assert set(attributes) <= {
        "class",
        "tabindex",
        "role",
        "aria-label",
        "dir",
        "src",
        "alt",
        "width",
        "height",
        "loading",
    }
    assert set(re.findall(r'src="([^"]*)"', html)) <= {KNOWN.url}


def test_a_picture_of_the_projects_own_is_shown_and_any_other_is_told_by_its_words():
    shown = guidelines_html(
        "Look: ![a *ripe* one](picture:0123456789abcdef) ![two <b>](picture:ffffffffffffffff)", "", (KNOWN,)
    )
    assert '<img src="/here/" alt="a ripe one" width="30" height="20" loading="lazy"> two &lt;b&gt;' in shown


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("![a](https://elsewhere.example/)", 1),
        ("one\ntwo\nthree ![a](x)\n", 3),
        ("# one\n\n- two\n- three\n\n  > four ![a](x.png)", 6),
        ("| a | b |\n|---|---|\n| c | ![d](x) |", 3),
        ("one\\\n![a](picture:0123)", 2),
    ],
)
def test_the_line_of_a_picture_from_elsewhere_is_named(text, line):
    with pytest.raises(InvalidConfiguration, match=f"^Line {line}: add the picture under Pictures"):
        refuse_pictures_of_others(text, None)
