"""The settings of `POST /mcp`."""

from collections.abc import Mapping
from urllib.parse import urlsplit

import attrs

from gateway.settings import Settings, is_limit, setting


@attrs.frozen(kw_only=True)
class McpSettings:
    """Settings of MCP."""

    mcp: bool = setting(
        True,
        "Whether agents may buy at POST /mcp. Needs the extra `mcp` (in the image).",
    )
    mcp_origins: tuple[str, ...] = setting(
        (),
        "Origins of web pages, separated by commas, that may use POST /mcp, besides the gateway's "
        "own; `*`: all.",
        example="https://inspector.example.com",
    )
    limit_mcp: str = setting(
        "60/60s",
        "Rate limit of POST /mcp per address. Calls also count for the limit of the same HTTP "
        "request.",
    )

    def validate(self, _: Settings) -> Mapping[str, bool]:
        """Return for each value whether it is right."""
        return {
            "mcp_origins": all(map(_is_origin, self.mcp_origins)),
            "limit_mcp": is_limit(self.limit_mcp),
        }


SECTION = McpSettings


def _is_origin(text: str) -> bool:
    """Whether this is `*` or an origin as browsers send it."""
    url = urlsplit(text)
    return text == "*" or (bool(url.netloc) and text == f"{url.scheme}://{url.netloc}".lower())
