"""The operator's settings: the folder of workflows, and the addresses of ComfyUI."""

import attrs
import typed_settings as ts

from gateway import secret, setting

PREFIX = "comfyui"


@attrs.frozen(kw_only=True)
class ComfyUISettings:
    """The operator's settings for ComfyUI."""

    workflows: str = setting(
        "",
        "Folder of ComfyUI workflows. It puts each NAME.json with a NAME.toml on sale.",
        example="workflows",
        switches_on=True,
    )
    urls: tuple[str, ...] = setting(
        ("http://127.0.0.1:8188",),
        "Addresses of ComfyUI, all with the same nodes and models. Each runs one job at a time.",
        example="http://127.0.0.1:8188,http://10.0.0.7:8188",
    )
    authorization: ts.SecretStr = secret(
        "Header `Authorization` for a login or a proxy in front of ComfyUI.", example="Bearer ..."
    )
