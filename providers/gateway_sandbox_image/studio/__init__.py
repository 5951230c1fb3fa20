"""A drawing program for the sandbox provider's pictures; it is not a part of the gateway.

It turns a prompt into a landscape, or restyles a picture, and runs as `python -m studio` in a child
process: one order as JSON in the first line of standard input, behind it the picture to restyle;
one picture on standard output (see `__main__`). It imports nothing of the gateway and the gateway
imports nothing of it, so measurements of the gateway leave it out.
Nothing that knows about settings, endpoints or payments belongs here.
"""
