"""Misbehaving counters, and one that reports loaded modules; called in a sandbox."""

import os
import sys
import time

import gateway.sandbox.pages_child  # noqa: F401 - to be seen in `modules`


def sleep(*arguments):
    time.sleep(1000)


def abort(kind, data):
    os.abort()


def modules(kind, data):
    return "\n".join(sys.modules).encode()
