"""Pixels by ratio and resolution; sides are multiples of 16, as the models require."""

RESOLUTIONS = ("1K", "2K", "4K")
# The cost of gpt-image-2 grows 2.0 times at 2K and 2.6 times at 4K.
PRICE_FACTORS = {"1K": 1, "2K": 2, "4K": 3}
# Of `SIZES`, a little less. Operators' own servers round sides to multiples of 64.
LEAST_PIXELS = {"1K": 950_000, "2K": 3_600_000, "4K": 7_900_000}
SIZES = {
    ("1:1", "1K"): "1024x1024",
    ("4:3", "1K"): "1152x864",
    ("3:4", "1K"): "864x1152",
    ("16:9", "1K"): "1536x864",
    ("9:16", "1K"): "864x1536",
    ("1:1", "2K"): "2048x2048",
    ("4:3", "2K"): "2304x1728",
    ("3:4", "2K"): "1728x2304",
    ("16:9", "2K"): "2560x1440",
    ("9:16", "2K"): "1440x2560",
    ("1:1", "4K"): "2880x2880",
    ("4:3", "4K"): "3264x2448",
    ("3:4", "4K"): "2448x3264",
    ("16:9", "4K"): "3840x2160",
    ("9:16", "4K"): "2160x3840",
}
