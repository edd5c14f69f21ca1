"""A manager, a crowd project with money, and the tests' own platform."""

from tests.platform_fixtures import crowd, manager, published, server, study  # noqa: F401  # for all tests beside it
