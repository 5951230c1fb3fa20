"""The first lines of the warmed process; run by its path, so that nothing is imported before."""

import importlib.util
import json
import sys
import types
from importlib.machinery import ModuleSpec


class _Announced(types.ModuleType):
    """A package whose `__init__` runs only when something that it defines is asked for.

    Those of `gateway` and of its plugins load an HTTP client and its friends. `import a.b` and
    `from a.b import c` can do without; `from a import b` cannot, for `b` may be defined there.
    """

    def __getattr__(self, name: str) -> object:
        """Become an ordinary package; then return what it defines."""
        if name.startswith("__"):
            raise AttributeError(name)
        self.__class__ = types.ModuleType  # type: ignore[assignment]
        _loaded(self.__spec__).exec_module(self)
        return getattr(self, name)


def _loaded(spec: ModuleSpec | None) -> "importlib.abc.Loader":
    if spec is None or spec.loader is None:
        raise ImportError("a package that is announced has a loader")
    return spec.loader


def announce(name: str) -> None:
    """Make a package importable without running its `__init__`; a plain module is left alone."""
    if name in sys.modules:
        return
    spec = importlib.util.find_spec(name)
    if spec is not None and spec.submodule_search_locations is not None and spec.has_location:
        package = _Announced(name)
        package.__spec__ = spec
        package.__path__ = spec.submodule_search_locations
        package.__package__ = name
        package.__file__ = spec.origin
        sys.modules[name] = package
        parent, _, own_name = name.rpartition(".")
        if parent:
            setattr(sys.modules[parent], own_name, package)


def announce_around(module: str) -> None:
    """Announce every package that a module lies in."""
    parents = module.split(".")[:-1]
    for depth in range(len(parents)):
        announce(".".join(parents[: depth + 1]))


def main() -> None:
    """Become the keeper that the order, a line of JSON, describes."""
    order = json.loads(sys.argv[1])
    sys.path[:] = order["path"]
    sys.argv[1:] = []
    announce_around("gateway.sandbox.child")
    announce_around(order["function"].partition(":")[0])
    from gateway.sandbox.child import start as keeping  # noqa: PLC0415 - after the lines above

    keeping.keep(order)


if __name__ == "__main__":
    main()
