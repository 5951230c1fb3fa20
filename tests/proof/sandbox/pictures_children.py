"""Misbehaving decoders, called in a sandbox."""

import os
import signal
import time

from gateway.sandbox.errors import SandboxRefusal


def tell_environment(wanted, data):
    raise SandboxRefusal(" ".join(os.environ))


def hang(wanted, data):
    time.sleep(1000)


def die(wanted, data):
    os.kill(os.getpid(), signal.SIGSEGV)


def vanish(wanted, data):
    os.kill(os.getpid(), signal.SIGKILL)
