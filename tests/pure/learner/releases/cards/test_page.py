import re

import pytest

from learner.releases.cards.page import card_html
from learner.releases.cards.words import plain

CARD = f"""---
license: "unknown"
---

# Fruit, version 3

It tells `a<b` apart.

## Guarantee

| entry | what |
|---|---|
| 1 | {plain("<b>|x|</b>")} |

- nobody
- else

```python
print(1 < 2)
```
"""


def test_forms_of_the_card_are_there_and_its_front_matter_and_title_are_not():
    html = card_html(CARD)
    assert "license" not in html
    assert "version 3" not in html
    assert "<h3>Guarantee</h3>" in html
    assert '<div class="scroll" tabindex="0" role="region" aria-label="Guarantee"><table>' in html
    assert "<td>&lt;b&gt;|x|&lt;/b&gt;</td>" in html
    assert "<li>nobody</li>" in html
    assert "<code>a&lt;b</code>" in html
    assert 'tabindex="0"><code>print(1 &lt; 2)\n</code></pre>' in html


@pytest.mark.parametrize(
    "hostile",
    [
        "<script>alert(1)</script>",
        "<img src=x onerror=alert(1)>",
        "[text](javascript:alert(1))",
        "![text](https://elsewhere.example/x.png)",
        "<https://elsewhere.example/>",
        "https://elsewhere.example/",
        '## " onclick="alert(1)\n\n| a |\n|---|\n| b |',
        "```html onclick=x\n<script>alert(1)</script>\n```",
        "&lt;script&gt;",
        "<!-- x -->",
    ],
)
def test_nothing_acts_as_html(hostile):
    html = card_html(f"# t\n\n{hostile}\n")
    tags = set(re.findall(r"<\s*([a-zA-Z0-9!]+)", html))
    assert tags <= {"p", "h3", "div", "table", "thead", "tbody", "tr", "th", "td", "pre", "code"}
    attributes = re.findall(r"<[^>]*?\s([a-z-]+)=", html)
    assert set(attributes) <= {"class", "tabindex", "role", "aria-label"}
    assert not re.search(r"<[^>]*alert", html.replace("&quot; onclick=&quot;alert(1)", ""))


def test_a_card_of_another_shape_is_shown_whole():
    assert card_html("plain words") == "<p>plain words</p>\n"
    assert card_html("") == ""
    assert card_html("**Epsilon 0.**") == "<p><strong>Epsilon 0.</strong></p>\n"
