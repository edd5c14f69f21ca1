"""Template tag by which a template declares who may read what it shows."""

# {% reads %}
#   ledger: release.created_at sheet.*
#   managed: counts.open
# {% endreads %}

from typing import cast

from django import template
from django.template.base import Parser, TextNode, Token

from annotation.work.reads import Reads, ReadsNode

register = template.Library()


@register.tag
def reads(parser: Parser, token: Token) -> ReadsNode:
    inside = cast(list[TextNode], parser.parse(("endreads",)))
    parser.delete_first_token()
    declared: dict[Reads, tuple[str, ...]] = {}
    chosen = None
    for word in "".join(node.s for node in inside).split():
        if word.endswith(":"):
            chosen = Reads[word[:-1].upper()]
            declared[chosen] = ()
        elif chosen is None:
            raise template.TemplateSyntaxError(f"{{% reads %}} names nobody who reads {word}")
        else:
            declared[chosen] += (word,)
    return ReadsNode(declared)
