"""The test kit for authors of plugins: what a plugin must do, as tests to subclass.

    from gateway.testing import FakeApi, ProviderContract, Reply

Needs `pip install 'generation-gateway[testing]'`. These are the names of the package
`gateway_testing`, which the server never imports; for type checkers they are in `__init__.pyi`.
"""

import importlib
import sys
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from importlib.util import spec_from_loader
from types import ModuleType
from typing import Any

_KIT = "gateway_testing"


def __getattr__(name: str) -> Any:
    """Return a public name of the kit."""
    return getattr(importlib.import_module(_KIT), name)


class _Kit(MetaPathFinder, Loader):
    """Imports `gateway.testing.fakes.api` as `gateway_testing.fakes.api`, so that there is one."""

    def find_spec(self, name: str, path: object = None, target: object = None) -> ModuleSpec | None:  # noqa: ARG002
        return spec_from_loader(name, self) if name.startswith(f"{__name__}.") else None

    def create_module(self, spec: ModuleSpec) -> ModuleType:
        module = importlib.import_module(spec.name.replace(__name__, _KIT, 1))
        spec.loader_state = module.__spec__
        return module

    def exec_module(self, module: ModuleType) -> None:
        # The import has put the other name's specification into the module.
        if module.__spec__ is not None:
            module.__spec__ = module.__spec__.loader_state


sys.meta_path.insert(0, _Kit())
