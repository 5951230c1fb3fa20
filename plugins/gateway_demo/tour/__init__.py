"""The guided demo: a chain, a gateway and purchases, shown on a terminal.

The chain itself is in `gateway_demo.chain`.
"""
