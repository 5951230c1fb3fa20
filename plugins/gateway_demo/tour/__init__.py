"""The guided demo: a chain, a gateway and two purchases, shown on a terminal.

The chain itself is in `gateway_demo.chain`.
"""
