"""The code of the warmed process and its children; it loads nothing else of the gateway.

Does not belong here: anything that the gateway's own process imports, but for `prctl`, and what a
function that runs in the sandbox does.
"""
