"""The route that hands out outputs by signed links."""

import mimetypes

from quart import Blueprint, Response, request, send_file

from gateway.services import services

blueprint = Blueprint("files", __name__)


@blueprint.get("/files/<path:key>")
async def download(key: str) -> Response:
    """Send the file behind a link that a task showed."""
    gateway = services()
    path = gateway.artifacts.open(
        key,
        expires=request.args.get("expires", ""),
        signature=request.args.get("signature", ""),
        now=gateway.now(),
    )
    media_type = "text/markdown" if path.suffix == ".md" else mimetypes.guess_type(path.name)[0]
    response: Response = await send_file(
        path, mimetype=media_type or "application/octet-stream", conditional=True
    )
    response.headers["Content-Security-Policy"] = "default-src 'none'; sandbox"
    response.headers["Cache-Control"] = "private, max-age=3600, immutable"
    return response
