"""Released models of a DPAL site in three lines.

>>> import dpal
>>> model = dpal.load("https://dpal.example.org", "intents")  # doctest: +SKIP
>>> model.predict(["play some jazz"])  # doctest: +SKIP
"""

from dpal.errors import DpalError
from dpal.guarantee import Account, Budget, Guarantee
from dpal.model import Model
from dpal.releases import load, open_folder

__version__ = "0.1.0"
__all__ = ["Account", "Budget", "DpalError", "Guarantee", "Model", "load", "open_folder"]
