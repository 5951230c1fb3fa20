"""The nursery process: loads the parsers once, then forks a child for every document."""

import contextlib
import gc
import os
import select
import signal
import socket
import time
from collections.abc import Callable, Mapping

import attrs

from gateway_documents import frames
from gateway_documents.child import limits
from gateway_documents.child.libraries import leave_out_what_is_not_needed, load_the_rest
from gateway_documents.frames import End

IDLE_S = 300.0  # without a document: leave, and give the memory back
_CONVERSATION = 3  # the descriptor of a child that is open besides the standard ones
_MAX_DESCRIPTOR = 256  # the nursery never has as many
_TICK_MS = 1000  # how often deadlines and the gateway's life are looked at
_ENDS: Mapping[int, End] = {
    signal.SIGXCPU: End.OUT_OF_TIME,
    signal.SIGABRT: End.CRASHED,
    signal.SIGBUS: End.CRASHED,
    signal.SIGFPE: End.CRASHED,
    signal.SIGILL: End.CRASHED,
    signal.SIGSEGV: End.CRASHED,
}


@attrs.define
class _Child:
    """A child at work and our end of its conversation, kept to tell how it ended."""

    pid: int
    conversation: socket.socket
    deadline: float
    is_late: bool = False

    def kill(self) -> None:
        os.kill(self.pid, signal.SIGKILL)  # not reaped yet, so the number is still its own

    def report(self, status: int) -> None:
        """Tell the gateway how the child ended, unless it has hung up."""
        with contextlib.suppress(OSError), self.conversation:
            self.conversation.settimeout(0)  # a deaf gateway must not hold up the nursery
            self.conversation.send(frames.pack(frames.END, self._end(status).encode()))

    def _end(self, status: int) -> End:
        if self.is_late:
            return End.OUT_OF_TIME
        if os.WIFSIGNALED(status):
            return _ENDS.get(os.WTERMSIG(status), End.LOST)
        return End.DONE if os.WEXITSTATUS(status) == 0 else End.OUT_OF_MEMORY


@attrs.define
class Keeper:
    """Forks, watches, kills and reaps children until the gateway hangs up."""

    control: socket.socket
    gateway: int  # process id
    serve: Callable[[int], None]  # answers the conversation behind a file descriptor
    _memory: int = attrs.field(factory=limits.memory_bytes)
    _children: dict[int, _Child] = attrs.field(factory=dict)  # by file descriptor
    _poller: select.poll = attrs.field(factory=select.poll)
    _last_busy: float = attrs.field(factory=time.monotonic)

    def run(self) -> None:
        """Serve until nobody can want anything any more."""
        with _wake_when_a_child_ends() as wake:
            try:
                self._serve(wake)
            finally:
                for child in self._children.values():
                    child.kill()

    def _serve(self, wake: socket.socket) -> None:
        self._poller.register(wake, select.POLLIN)
        self._poller.register(self.control, select.POLLIN)
        while self._is_wanted():
            for fd, _ in self._poller.poll(_TICK_MS):
                if fd == wake.fileno():
                    wake.recv(64)
                elif fd in self._children:
                    self._children[fd].kill()  # its conversation was closed at the far end
                elif not self._admit():
                    return
            self._kill_late()
            self._reap()

    def _is_wanted(self) -> bool:
        if self._children:
            self._last_busy = time.monotonic()
        is_idle = time.monotonic() - self._last_busy > IDLE_S
        return os.getppid() == self.gateway and not is_idle

    def _admit(self) -> bool:
        """Fork a child for the conversation that arrives; False once the gateway hung up."""
        message, descriptors, _, _ = socket.recv_fds(self.control, 1, 1)
        if not message:
            return False
        for descriptor in descriptors:
            conversation = socket.socket(fileno=descriptor)
            keeper = os.getpid()
            pid = os.fork()
            if pid == 0:
                self._become_child(conversation, keeper)
            deadline = time.monotonic() + limits.WALL_S
            self._children[descriptor] = _Child(pid, conversation, deadline)
            self._poller.register(descriptor, 0)  # hang-ups only; the rest is the child's
        return True

    def _become_child(self, conversation: socket.socket, keeper: int) -> None:
        """Parse one document and end; never returns."""
        try:
            signal.set_wakeup_fd(-1)
            signal.signal(signal.SIGCHLD, signal.SIG_DFL)
            limits.die_with_parent(keeper)
            os.dup2(conversation.fileno(), _CONVERSATION)
            os.closerange(_CONVERSATION + 1, _MAX_DESCRIPTOR)
            limits.confine(memory=self._memory, open_files=_CONVERSATION + 1)
            self.serve(_CONVERSATION)
        finally:
            os._exit(1)

    def _kill_late(self) -> None:
        for child in self._children.values():
            if time.monotonic() > child.deadline:
                child.is_late = True
                child.kill()

    def _reap(self) -> None:
        for fd, child in list(self._children.items()):
            pid, status = os.waitpid(child.pid, os.WNOHANG)
            if pid:
                self._poller.unregister(fd)
                del self._children[fd]
                child.report(status)


def _wake_when_a_child_ends() -> socket.socket:
    """Return a socket that becomes readable with every SIGCHLD."""
    ours, theirs = socket.socketpair()
    theirs.settimeout(0)
    signal.set_wakeup_fd(theirs.detach(), warn_on_full_buffer=False)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    return ours


def main() -> None:
    """Serve the gateway, which holds the other end of standard input."""
    gateway = os.getppid()
    control = socket.socket(fileno=os.dup(0))
    leave_out_what_is_not_needed()
    from gateway_documents.child import work  # noqa: PLC0415 - after the line above

    load_the_rest()
    with open(os.devnull, "r+b") as nothing:  # noqa: PTH123 - a device, not a path
        for standard in (0, 1, 2):  # what a parser prints may be a customer's text
            os.dup2(nothing.fileno(), standard)
    gc.collect()
    gc.freeze()  # what is loaded now stays shared with the children
    Keeper(control, gateway, work.serve).run()
