"""A wallet for agents: a local MCP server that buys within limits.

The model that calls it is not trusted, because gateways and documents may steer it. Limits, the
question to the person and the folder of files hold outside the model, and the key never leaves this
process.
"""
