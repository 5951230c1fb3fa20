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
        "Whether agents may buy at POST /mcp (Model Context Protocol). It needs the extra `mcp`, "
        "which is in the image. The first message to it makes the process grow by some 26 MB.",
    )
    mcp_origins: tuple[str, ...] = setting(
        (),
        "Origins of web pages, separated by commas, that may ask POST /mcp; `*` lets every page. "
        "Pages of the gateway's own address always may, and so may programs that are no browser.",
        example="https://inspector.example.com",
    )
    limit_mcp: str = setting(
        "60/60s",
        "Rate limit of POST /mcp per client address: messages and seconds. A call that asks for a "
        "price or pays counts towards GATEWAY_LIMIT_PRICE or GATEWAY_LIMIT_X402 as well, and a "
        "call of get_task towards GATEWAY_LIMIT_TASK.",
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
