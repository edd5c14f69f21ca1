"""Service modules that a walk through the product enters, and which of them are entered again while they wait."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from types import CodeType, FrameType
from typing import Any

ROOT = Path(__file__).parents[1]
PACKAGES = ("addons", "annotation", "learner", "privacy")
SERVICES = "services"


@dataclass(slots=True)
class Walk:
    """What a walk entered, in its order, and each call back: the module that calls, and the function called in it."""

    entered: dict[str, None] = field(default_factory=dict)
    called_back: list[str] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class EnteredModule:
    """A module of ours, empty for what is none, and whether it is one of services."""

    name: str = ""
    serves: bool = False


ELSEWHERE = EnteredModule()


@contextmanager
def walked(*places: Path) -> Iterator[Walk]:
    """Follow every call of this thread into modules of services, of the product or of the files below `places`.

    Whoever calls, a service or not: what an engine or a pure module calls back waits for it just the same.
    """
    walk = Walk()
    below = tuple(f"{place}/" for place in places)
    modules: dict[CodeType, EnteredModule] = {}
    waiting: list[EnteredModule] = []

    def module_of(code: CodeType) -> EnteredModule:
        path = Path(code.co_filename)
        # Running a module for the first time is no call, and whichever test imports it first has it.
        if not code.co_filename.startswith(below or str(ROOT)) or path.suffix != ".py" or code.co_name == "<module>":
            return ELSEWHERE
        if below:
            return EnteredModule(path.stem, SERVICES in path.parts)
        parts = path.relative_to(ROOT).with_suffix("").parts
        return EnteredModule(".".join(parts), SERVICES in parts) if parts[0] in PACKAGES else ELSEWHERE

    def follow(frame: FrameType, event: str, argument: Any) -> None:
        if event == "call":
            code = frame.f_code
            module = modules.get(code)
            if module is None:
                module = modules[code] = module_of(code)
            if module.serves:
                last = next((caller for caller in reversed(waiting) if caller.name), ELSEWHERE)
                walk.entered.setdefault(module.name)
                if module != last and module in waiting:
                    walk.called_back.append(f"{last.name} -> {module.name}.{code.co_name}")
            waiting.append(module)
        elif event == "return" and waiting:
            waiting.pop()

    sys.setprofile(follow)
    try:
        yield walk
    finally:
        sys.setprofile(None)
