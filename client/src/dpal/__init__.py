"""Released models of a DPAL site in three lines."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from dpal import errors, site
    from dpal.errors import DpalError
    from dpal.guarantee import Account, Budget, Guarantee
    from dpal.model import Model
    from dpal.releases import load, open_folder

__version__ = "0.1.0"
__all__ = ["Account", "Budget", "DpalError", "Guarantee", "Model", "errors", "load", "open_folder", "site"]
MODULES = {
    "Account": "guarantee",
    "Budget": "guarantee",
    "DpalError": "errors",
    "Guarantee": "guarantee",
    "Model": "model",
    "load": "releases",
    "open_folder": "releases",
}


def __getattr__(name: str) -> Any:
    """Import what is asked for: featurisers alone need neither a network nor keys."""
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    found = import_module(f"dpal.{MODULES.get(name, name)}")
    return getattr(found, name) if name in MODULES else found
