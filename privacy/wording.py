"""Sentences that hold values, as the client makes them."""

from dpal.wording import (
    INNER,
    Message,
    Messages,
    as_message,
    as_plural_message,
    filled,
    gettext_noop,
    joined_messages,
    joined_rules,
    message_from,
    message_of,
    ngettext_noop,
    template_fields,
    text_of,
)

__all__ = [
    "INNER",
    "Message",
    "Messages",
    "as_message",
    "as_plural_message",
    "filled",
    "gettext_noop",
    "in_english",
    "joined_messages",
    "joined_rules",
    "message_from",
    "message_of",
    "ngettext_noop",
    "template_fields",
    "text_of",
]

# Makes a message that programs alone are told, so that no catalogue holds it.
in_english = as_message
