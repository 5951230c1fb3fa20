"""The command about workflows of ComfyUI."""

COMMANDS = {
    "comfyui": (
        "gateway_comfyui.commands.comfyui:comfyui",
        "Put workflows of your ComfyUI on sale.",
    ),
}
