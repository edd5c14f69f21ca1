"""Labels of a file that name no class, told to who uploaded it."""

import json
from collections import Counter
from collections.abc import Iterable
from contextlib import suppress

from dpal.reading.cells import BadCell
from dpal.reading.labels import LabelNames, labels_in
from dpal.reading.rows import Layout, RawBatch
from privacy.wording import Message, as_message

SHOWN = 12
MOST_CELLS = 200_000
LONGEST = 60


def unknown_labels(batches: Iterable[RawBatch], layout: Layout) -> Message | None:
    """List the commonest labels that are no class beside the classes, with the mapping that gives them a meaning."""
    assert layout.label
    names = LabelNames(layout.classes, layout.spelled)
    separator = layout.separator if layout.sets else ""
    counts: Counter[str] = Counter()
    for batch in batches:
        for cell in batch.columns[layout.label]:
            with suppress(BadCell):
                counts.update(name for name in labels_in(cell, separator=separator) if names.place(name) is None)
        if counts.total() > MOST_CELLS:
            break
    if not counts:
        return None
    found = [name[:LONGEST] for name, _count in counts.most_common(SHOWN)]
    return as_message(
        "Labels that are no class: {found}. Classes: {classes}. Give each label its class in the mapping: {example}.",
        found=", ".join(found),
        classes=", ".join(layout.classes[:SHOWN]),
        example=json.dumps({"values": {found[0]: layout.classes[0]}}, ensure_ascii=False),
    )
