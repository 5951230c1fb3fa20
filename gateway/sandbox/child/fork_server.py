"""The keeper: forks a child for every call, and watches, kills and reaps it."""

import contextlib
import os
import select
import signal
import socket
import time
from collections.abc import Callable, Mapping

import attrs

from gateway.sandbox.child import confinement
from gateway.sandbox.child.work import EXIT_OUT_OF_MEMORY
from gateway.sandbox.errors import End
from gateway.sandbox.frames import END, pack
from gateway.sandbox.limits import SandboxLimits

_CONVERSATION = 3  # the descriptor of a child that is open besides the standard ones
_MAX_DESCRIPTOR = 256  # the keeper never has as many
_TICK_MS = 1000  # how often deadlines and the gateway's life are looked at
_SIGNALS: Mapping[int, End] = {
    signal.SIGXCPU: End.OUT_OF_TIME,
    signal.SIGABRT: End.CRASHED,
    signal.SIGBUS: End.CRASHED,
    signal.SIGFPE: End.CRASHED,
    signal.SIGILL: End.CRASHED,
    signal.SIGSEGV: End.CRASHED,
    signal.SIGSYS: End.CRASHED,  # a system call that no parser makes
}
_EXITS = {0: End.DONE, EXIT_OUT_OF_MEMORY: End.OUT_OF_MEMORY}


@attrs.define
class _Child:
    """A child at work and our end of its conversation, kept to tell how it ended."""

    pid: int
    conversation: socket.socket
    deadline: float
    is_late: bool = False

    def kill(self) -> None:
        os.kill(self.pid, signal.SIGKILL)  # not reaped yet, so the number is still its own
        with contextlib.suppress(OSError):  # it has not come to lead its group yet
            os.killpg(self.pid, signal.SIGKILL)  # and whatever it has forked

    @property
    def has_ended(self) -> bool:
        """Whether it is there to be reaped; until then its number is its own, and its group's."""
        options = os.WEXITED | os.WNOHANG | os.WNOWAIT
        return os.waitid(os.P_PID, self.pid, options) is not None

    def report(self, status: int) -> None:
        """Tell the gateway how the child ended, unless it has hung up."""
        with contextlib.suppress(OSError), self.conversation:
            self.conversation.settimeout(0)  # a deaf gateway must not hold up the keeper
            self.conversation.send(pack(END, self._end(status).encode()))

    def _end(self, status: int) -> End:
        if self.is_late:
            return End.OUT_OF_TIME
        if os.WIFSIGNALED(status):
            return _SIGNALS.get(os.WTERMSIG(status), End.LOST)
        return _EXITS.get(os.WEXITSTATUS(status), End.CRASHED)


@attrs.define(kw_only=True)
class ForkServer:
    """Forks, watches, kills and reaps children until the gateway hangs up."""

    control: socket.socket
    gateway: int  # process id
    serve: Callable[[int], None]  # answers the conversation behind a file descriptor
    limits: SandboxLimits
    _memory: int = attrs.field(init=False)
    _children: dict[int, _Child] = attrs.field(factory=dict, init=False)  # by file descriptor
    _poller: select.poll = attrs.field(factory=select.poll, init=False)
    _last_busy: float = attrs.field(factory=time.monotonic, init=False)

    @_memory.default
    def _affordable(self) -> int:
        return confinement.memory_bytes(self.limits.memory_bytes)

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
        is_idle = time.monotonic() - self._last_busy > self.limits.idle_s
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
            deadline = time.monotonic() + self.limits.wall_s
            self._children[descriptor] = _Child(pid, conversation, deadline)
            self._poller.register(descriptor, 0)  # hang-ups only; the rest is the child's
        return True

    def _become_child(self, conversation: socket.socket, keeper: int) -> None:
        """Serve one call and end; never returns."""
        try:
            signal.set_wakeup_fd(-1)
            signal.signal(signal.SIGCHLD, signal.SIG_DFL)
            os.setpgid(0, 0)
            confinement.die_with_parent(keeper)
            os.dup2(conversation.fileno(), _CONVERSATION)
            os.closerange(_CONVERSATION + 1, _MAX_DESCRIPTOR)
            confinement.confine(memory=self._memory, cpu_s=self.limits.cpu_s, open_files=0)
            confinement.filter_calls()
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
            if child.has_ended:
                child.kill()  # what it has left behind
                _, status = os.waitpid(child.pid, 0)
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
