"""The code of the warmed process and its children; it loads nothing else of the gateway.

Does not belong here: code that only the gateway's own process runs, and the functions that run in
the sandbox, such as `gateway.sandbox.pages_child`.
"""
