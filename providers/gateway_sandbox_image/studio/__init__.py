"""A drawing program for the sandbox provider's pictures; not part of the gateway.

It turns a prompt into a landscape, or restyles a picture, and runs as `python -m studio` in a child
process. The first line of standard input is an order as JSON, followed by the picture to restyle,
if any; standard output is one picture (see `__main__`). It and the gateway import nothing of each
other, so measurements of the gateway exclude it.
"""
