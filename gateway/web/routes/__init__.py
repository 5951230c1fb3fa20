"""The routes: one module a blueprint, one function a route.

What all routes share (error answers, headers, rate limits) is in `gateway.web`.
"""
