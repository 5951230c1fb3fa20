"""Where in a plugin something failed: its own line, not the gateway's that called it."""

import traceback


def place_in(error: BaseException, module: str) -> str:
    """Return the innermost line of a plugin's package that an error passed, as file and number.

    `module` is any of the plugin's. Where no line of it is in the traceback, the innermost line of
    all is returned; nothing where there is none.
    """
    if isinstance(error, SyntaxError):
        return f"{error.filename}:{error.lineno}"
    root = module.partition(".")[0]
    frames = list(traceback.walk_tb(error.__traceback__))
    own = [each for each in frames if _root_of(each[0].f_globals) == root]
    if not frames:
        return ""
    frame, line = (own or frames)[-1]
    return f"{frame.f_code.co_filename}:{line}"


def _root_of(names: dict[str, object]) -> str:
    return str(names.get("__name__", "")).partition(".")[0]
