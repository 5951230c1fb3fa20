"""Boots the warmed process. Run by path, so that nothing of the gateway is imported first."""

import importlib.util
import json
import sys
import types


class _LazyPackage(types.ModuleType):
    """A package whose `__init__` runs only when one of its names is accessed.

    The `__init__` of `gateway` and its plugins imports an HTTP client and more. `import a.b` and
    `from a.b import c` do not need it; `from a import b` runs it.
    """

    def __getattr__(self, name: str) -> object:
        """Run the real `__init__`, then return the attribute."""
        if name.startswith("__"):
            raise AttributeError(name)
        self.__class__ = types.ModuleType  # type: ignore[assignment]
        if self.__spec__ is None or self.__spec__.loader is None:
            raise ImportError("an announced package needs a loader")
        self.__spec__.loader.exec_module(self)
        return getattr(self, name)


def announce(name: str) -> None:
    """Make a package importable without running its `__init__`. Ignores plain modules."""
    if name in sys.modules:
        return
    spec = importlib.util.find_spec(name)
    if spec is not None and spec.submodule_search_locations is not None and spec.has_location:
        package = _LazyPackage(name)
        package.__spec__ = spec
        package.__path__ = spec.submodule_search_locations
        package.__package__ = name
        package.__file__ = spec.origin
        sys.modules[name] = package
        parent, _, own_name = name.rpartition(".")
        if parent:
            setattr(sys.modules[parent], own_name, package)


def announce_around(module: str) -> None:
    """Announce every package around a module, outermost first."""
    parents = module.split(".")[:-1]
    for depth in range(len(parents)):
        announce(".".join(parents[: depth + 1]))


def main() -> None:
    """Start the fork server from the order: a line of JSON from `WarmedProcess`."""
    order = json.loads(sys.argv[1])
    sys.path[:] = order["path"]
    sys.argv[1:] = []
    announce_around("gateway.sandbox.child")
    # Children share single functions of the domain, whose `__init__` imports all of it.
    announce_around("gateway.domain.words")
    announce_around(order["function"].partition(":")[0])
    from gateway.sandbox.child.fork_server import start  # noqa: PLC0415 - after the lines above

    start(order)


if __name__ == "__main__":
    main()
