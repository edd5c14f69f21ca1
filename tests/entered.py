"""Which service modules a walk through the product enters, and which of them are entered again while they wait."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from types import CodeType, FrameType
from typing import Any

ROOT = Path(__file__).parents[1]
PACKAGES = ("annotation", "learner", "privacy")


@dataclass(slots=True)
class Walk:
    """What a walk entered, in its order, and each call back: the module that waits, and the function called in it."""

    entered: dict[str, None] = field(default_factory=dict)
    called_back: list[str] = field(default_factory=list)


@contextmanager
def walked(*places: Path) -> Iterator[Walk]:
    """Follow every call of this thread into modules of services, or into files below `places`."""
    walk = Walk()
    below = tuple(f"{place}/" for place in places)
    modules: dict[CodeType, str] = {}
    waiting: list[str] = []

    def module_of(code: CodeType) -> str:
        path = Path(code.co_filename)
        if not code.co_filename.startswith(below or str(ROOT)) or path.suffix != ".py":
            return ""
        if below:
            return path.stem
        parts = path.relative_to(ROOT).with_suffix("").parts
        return ".".join(parts) if parts[0] in PACKAGES and "services" in parts else ""

    def follow(frame: FrameType, event: str, argument: Any) -> None:
        if event == "call":
            code = frame.f_code
            module = modules.get(code)
            if module is None:
                module = modules[code] = module_of(code)
            if module:
                last = next((name for name in reversed(waiting) if name), "")
                walk.entered.setdefault(module)
                if module != last and module in waiting:
                    walk.called_back.append(f"{last} -> {module}.{code.co_name}")
            waiting.append(module)
        elif event == "return" and waiting:
            waiting.pop()

    sys.setprofile(follow)
    try:
        yield walk
    finally:
        sys.setprofile(None)
