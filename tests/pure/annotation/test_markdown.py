from markdown_it import MarkdownIt

from annotation.markdown import PageRenderer


def shown(text: str) -> str:
    reader = MarkdownIt("zero", {"html": False}, renderer_cls=PageRenderer).enable(["fence", "heading", "table"])
    return str(reader.renderer.render(reader.parse(text), reader.options, {}))


def test_headings_go_down_a_level_and_end_where_levels_end():
    assert shown("# a\n\n###### b") == "<h2>a</h2>\n<h6>b</h6>\n"


def test_what_may_be_wide_is_scrolled_by_keys():
    assert '<div class="scroll" tabindex="0" role="region" aria-label="a"><table>' in shown(
        "# a\n\n| b |\n|---|\n| c |"
    )
    assert shown("```\na < b\n```") == '<pre class="example" tabindex="0"><code>a &lt; b\n</code></pre>\n'
