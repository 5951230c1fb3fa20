"""A function inside a package."""

import sys


def tell_whether_the_package_ran() -> bytes:
    package = sys.modules["sandbox_package"]
    return b"yes" if "LOADED" in vars(package) else b"no"


def use_the_package() -> bytes:
    import sandbox_package

    return sandbox_package.LOADED.encode()
