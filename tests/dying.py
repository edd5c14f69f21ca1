"""An attempt that ends in the middle of its work as `kill -9` would end it: nothing that runs after it tidies up."""

from types import ModuleType

import pytest


class Killed(BaseException):
    pass


def die_at(monkeypatch: pytest.MonkeyPatch, step: str, *modules: ModuleType) -> None:
    """Have the modules' work end at one of their fault points."""

    def fault_point(reached: str) -> None:
        if reached == step:
            raise Killed

    for module in modules:
        monkeypatch.setattr(module, "fault_point", fault_point)
