"""Name product code that nothing uses: what vulture finds, less what templates, SQL, settings and frameworks call.

`python .ci/unused.py` prints what is left and fails; a name excused below that no module defines fails as well. Fields
are left out: rows, documents and schemas are read as a whole.
"""

import ast
import re
import sys
from collections.abc import Iterator
from pathlib import Path

from vulture import Vulture

ROOT = Path(__file__).resolve().parents[1]
PRODUCT = ("privacy", "annotation", "learner", "addons", "dpal_site", "client/src", "manage.py", "benchmarks", "deploy")
KINDS = ("attrs", "classes", "funcs", "imports", "methods", "props", "vars")
# What is registered where it is defined.
REGISTERED = """
    *.command *.get *.pages *.post *.write *.remove *.patch *.put *.delete *.register register* admin.*
    *.simple_tag *.filter *.inclusion_tag
    shared_task* *.task* receiver* *.connect *exception_handler*
"""
# What a framework calls by its name: Django, Ninja, Celery, waitress, allauth, markdown-it, HTMLParser.
CALLED = """
    Meta *Config add_arguments process_view save_model delete_queryset clean_* prepare_value resolve_* handle_*tag
    handle_data __init_subclass__ do_* log_message label_from_instance get_help_text handler[0-9]*
"""
# Who else does, by name.
EXCUSED = {
    name: who
    for who, names in {
        "Django's admin": "has_add_permission has_change_permission has_delete_permission",
        "Django's fields, middleware, sessions and logins": "db_check process_exception process_request get_user "
        "get_model_class value_from_datadict",
        "allauth": "is_open_for_signup pre_authenticate on_authentication_error _delete_login_attempts_cached_email "
        "complete_login get_pkce_params get_auth_params_from_request get_scope_from_request",
        "Ninja": "get_openapi_operation_id",
        "waitress": "parser_class channel_class parse_header maintenance",
        "markdown-it": "heading_open heading_close table_open table_close fence",
        "readers of files": "seekable writable readinto",
        "the database": "RateCount CachedCount",
        "migrations": "FirstMigration",
        "values that documents and rows hold": "DAWID_SKENE ADD_REMOVE REPLACE STUDY",
        "tests, of what the product declares": "UNNOTED_ELSEWHERE OUTSIDER readers_of VIEW withdraw sings "
        "public_mean public_moments",
        "tests, as the law of a sampler": "log_mass log_density",
        "tests, to check what others verify": "verify_inclusion verifier_key",
        "users of the libraries alone": "as_plural_message amplify_by_sampling flip_two_rate_coins merged_texts",
    }.items()
    for name in names.split()
}


def named_elsewhere() -> set[str]:
    """Return every word of templates and SQL, and what a string names by its path, as settings name middleware."""
    kinds = ("*.html", "*.svg", "*.txt", "*.sql", "*.js")
    texts = [path.read_text() for room in PRODUCT[:5] for kind in kinds for path in (ROOT / room).rglob(kind)]
    return {word for text in texts for word in re.findall(r"\w+", text)} | set(named_by_path())


def named_by_path() -> Iterator[str]:
    """Yield the last name of every dotted path that a string of the product is."""
    for room in PRODUCT[:5]:
        for path in (ROOT / room).rglob("*.py"):
            for node in ast.walk(ast.parse(path.read_text())):
                said = node.value if isinstance(node, ast.Constant) else None
                if isinstance(said, str) and re.fullmatch(r"\w+(\.\w+)+", said):
                    yield said.rpartition(".")[2]


def is_field(kind: str, name: str) -> bool:
    """Say whether something is a field, an argument, or a setting, and no constant of a module."""
    return kind == "attribute" or (kind == "variable" and not name.isupper())


def main() -> int:
    """Print what is unused, and excuses of what is gone; return how many of both there are."""
    finder = Vulture(ignore_decorators=[f"@{name}" for name in REGISTERED.split()], ignore_names=CALLED.split())
    finder.scavenge([str(ROOT / path) for path in PRODUCT], exclude=["*/migrations/*", "*/formats.py"])
    elsewhere, found = named_elsewhere(), []
    for item in finder.get_unused_code(min_confidence=60):
        # Settings are Django's to read, and the client's methods its users' to call.
        others = item.filename.is_relative_to(ROOT / "client") or item.filename == ROOT / "dpal_site" / "settings.py"
        if others or is_field(item.typ, item.name) or item.name in elsewhere:
            continue
        if item.name not in EXCUSED:
            found.append(f"{Path(item.filename).relative_to(ROOT)}:{item.first_lineno}: {item.message}")
    defined = {item.name for kind in KINDS for item in getattr(finder, f"defined_{kind}")}
    found += [f"{Path(__file__).name}: {name} is excused and gone" for name in sorted({*EXCUSED} - defined)]
    print("\n".join(found) or "Nothing is unused.")
    return len(found)


if __name__ == "__main__":
    sys.exit(bool(main()))
