"""A custom node of a real ComfyUI: it waits, fails, or ends its server, without any model."""

import os
import time

import comfy.model_management
import torch


class SlowImage:
    """Returns its picture after a while."""

    CATEGORY, FUNCTION, RETURN_TYPES = "tests", "run", ("IMAGE",)

    @classmethod
    def INPUT_TYPES(cls):  # noqa: N802 - ComfyUI's name
        return {
            "required": {
                "image": ("IMAGE",),
                "text": ("STRING", {"multiline": True}),
                "seconds": ("FLOAT", {"default": 0.1}),
                "seed": ("INT", {"default": 0, "max": 2**31}),
                "mode": (["ok", "error", "memory", "exit"],),
            }
        }

    def run(self, image, text, seconds, seed, mode):
        until = time.monotonic() + seconds
        while time.monotonic() < until:
            comfy.model_management.throw_exception_if_processing_interrupted()
            time.sleep(0.02)
        if mode == "error":
            raise ValueError(f"The prompt was: {text}")
        if mode == "memory":
            raise torch.OutOfMemoryError("CUDA out of memory.")
        if mode == "exit":
            os._exit(1)
        # Half of it is another colour: a picture of one colour is not sold.
        image = image.clone()
        image[:, : image.shape[1] // 2] = 0.5
        return (image,)


NODE_CLASS_MAPPINGS = {"SlowImage": SlowImage}
