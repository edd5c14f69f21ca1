import importlib
import inspect
import pkgutil
import typing

import dpal


def test_hints_of_the_client_resolve_at_run_time():
    for info in pkgutil.walk_packages(dpal.__path__, "dpal."):
        module = importlib.import_module(info.name)
        own = [found for found in vars(module).values() if getattr(found, "__module__", None) == info.name]
        for one in own:
            functions = filter(inspect.isfunction, vars(one).values()) if inspect.isclass(one) else ()
            for found in (one, *functions):
                if inspect.isclass(found) or inspect.isfunction(found):
                    typing.get_type_hints(found)
