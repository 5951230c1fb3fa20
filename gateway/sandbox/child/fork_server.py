"""The fork server: loads the children's code, forks a child per call, monitors and reaps it."""

import contextlib
import errno
import functools
import gc
import importlib
import os
import resource
import select
import signal
import socket
import sys
import threading
import time
import traceback
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import attrs

from gateway.sandbox.child import confinement
from gateway.sandbox.child.machine import find_memory_bytes
from gateway.sandbox.child.prctl import hide_memory
from gateway.sandbox.child.work import (
    BEGIN,
    END,
    EXIT_OUT_OF_MEMORY,
    LOAD,
    LOADED,
    UNPAID,
    Function,
    pack,
    serve,
)
from gateway.sandbox.errors import End
from gateway.sandbox.limits import SandboxLimits

# The only open descriptor of a child, besides the standard streams.
_CONVERSATION = 3
# Higher than any descriptor of the fork server.
_MAX_DESCRIPTOR = 256
# Interval for checking deadlines and that the gateway is alive.
_TICK_MS = 1000
# Out of CPU time; and the gateway's own kill, which is also that of the kernel when memory ran out.
# Code cannot crash with the latter. Every other signal is a crash, caused by the input.
_SIGNALS: Mapping[int, End] = {signal.SIGXCPU: End.OUT_OF_TIME, signal.SIGKILL: End.LOST}
# States in /proc of a process that wants the processor or the disk, or was stopped from outside.
_STARVED_STATES = (b"R", b"D", b"T")
# Where /proc/<pid>/stat has the user and system time, counted behind the state.
_TIMES = slice(10, 12)
# A starved child has this much more time.
_STARVED_S = 10.0
# Then the machine is to blame, not the function.
_SHORTAGES = (errno.EMFILE, errno.ENFILE, errno.ENOMEM, errno.EAGAIN, errno.EIO)
_MAX_PROBLEM_CHARS = 300
_STATM = Path("/proc/self/statm")
# getrusage(2) counts the resident memory in kilobytes, on macOS in bytes.
_RSS_UNIT = 1 if sys.platform == "darwin" else 1024
_EXITS = {0: End.DONE, EXIT_OUT_OF_MEMORY: End.OUT_OF_MEMORY}


@attrs.define
class _Child:
    pid: int
    conversation: socket.socket
    deadline: float
    cpu_s: float
    wall_s: float
    # Set once it was killed for being late.
    late_end: End | None = None

    def kill(self) -> None:
        """Kill the child and every process that it forked."""
        # The child is not reaped yet, so its pid cannot have been reused.
        os.kill(self.pid, signal.SIGKILL)
        # Fails if the child does not lead its process group yet.
        with contextlib.suppress(OSError):
            os.killpg(self.pid, signal.SIGKILL)

    def kill_if_late(self) -> None:
        """Kill the child after its deadline; later if the machine had no time for it."""
        late_s = time.monotonic() - self.deadline
        if late_s <= 0 or self.late_end is not None:
            return
        is_starved = self._is_starved()
        if not is_starved or late_s > _STARVED_S:
            self.late_end = End.LOST if is_starved else End.OUT_OF_TIME
            self.kill()

    def _is_starved(self) -> bool:
        """Whether the child wants the processor or the disk, and got too little of it. Linux only.

        A child that sleeps is slow by itself, and one that used its CPU time, too.
        """
        try:
            with open(f"/proc/{self.pid}/stat", "rb") as file:  # noqa: PTH123 - as below
                state, *fields = file.read().rpartition(b") ")[2].split()
            used_s = sum(map(int, fields[_TIMES])) / os.sysconf("SC_CLK_TCK")
        except (OSError, ValueError):
            return False
        return state in _STARVED_STATES and used_s < min(self.cpu_s, self.wall_s / 2)

    @property
    def has_ended(self) -> bool:
        """Whether the child can be reaped. Until then, its pid and process group are its own."""
        options = os.WEXITED | os.WNOHANG | os.WNOWAIT
        return os.waitid(os.P_PID, self.pid, options) is not None

    def report(self, status: int, used: resource.struct_rusage) -> None:
        """Report to the gateway how the child ended, unless the gateway has hung up."""
        cpu_s, peak_bytes = used.ru_utime + used.ru_stime, used.ru_maxrss * _RSS_UNIT
        _report(self.conversation, self._end_of(status, cpu_s), cpu_s, peak_bytes)

    def _end_of(self, status: int, cpu_s: float) -> End:
        if self.late_end is not None:
            return self.late_end
        if os.WIFSIGNALED(status):
            end = _SIGNALS.get(os.WTERMSIG(status), End.CRASHED)
            # The kernel kills a child that outlives SIGXCPU.
            is_spent = end is End.LOST and cpu_s >= self.cpu_s
            return End.OUT_OF_TIME if is_spent else end
        return _EXITS.get(os.WEXITSTATUS(status), End.CRASHED)


@attrs.frozen
class Loaded:
    """Memory, address space and CPU time of this process once it has loaded."""

    # Without the pages of files.
    own_bytes: int = 0
    all_bytes: int = 0
    address_bytes: int = 0
    cpu_s: float = attrs.field(factory=time.process_time)

    @classmethod
    def read(cls) -> "Loaded":
        """Return the present sizes; zeros on other systems than Linux."""
        try:
            address, resident, shared, *_ = map(int, _STATM.read_bytes().split())
        except (OSError, ValueError):
            return cls()
        page_bytes = os.sysconf("SC_PAGE_SIZE")
        return cls((resident - shared) * page_bytes, resident * page_bytes, address * page_bytes)

    def send(self, conversation: socket.socket, descriptors: Sequence[int] = ()) -> None:
        """Send the first frame of a conversation."""
        sizes = LOADED.pack(self.own_bytes, self.all_bytes, self.cpu_s)
        socket.send_fds(conversation, [pack(BEGIN, sizes)], descriptors)

    def send_own(self, conversation: socket.socket) -> None:
        """Send that of a child, whose memory the gateway can then read, if there is /proc."""
        with contextlib.ExitStack() as files:
            shown = []
            with contextlib.suppress(OSError):
                shown.append(files.enter_context(_STATM.open("rb")).fileno())
            self.send(conversation, shown)


def _report(
    conversation: socket.socket,
    end: End,
    cpu_s: float = 0.0,
    peak_bytes: int = 0,
    detail: str = "",
) -> None:
    """Send the last frame of a conversation, and close it. A detail is its third line."""
    with contextlib.suppress(OSError), conversation:
        # A gateway that does not read must not block the fork server.
        conversation.settimeout(0)
        lines = [end, f"{cpu_s:.3f} {peak_bytes}", *([detail] if detail else [])]
        conversation.send(pack(END, "\n".join(lines).encode(errors="replace")))


@attrs.define(kw_only=True)
class ForkServer:
    """Forks, monitors, kills and reaps children until the gateway hangs up."""

    control: socket.socket
    gateway_pid: int
    # Serves the conversation on a file descriptor.
    serve: Callable[[int], None]
    limits: SandboxLimits
    # Why the function could not be loaded; empty: it was.
    problem: str = ""
    # It hardly changes later.
    loaded: Loaded = attrs.field(factory=Loaded.read)
    _unpaid: SandboxLimits = attrs.field(init=False)
    # By the file descriptor of the conversation.
    _children: dict[int, _Child] = attrs.field(factory=dict, init=False)
    _poller: select.poll = attrs.field(factory=select.poll, init=False)
    _last_busy: float = attrs.field(factory=time.monotonic, init=False)

    @_unpaid.default
    def _limit_unpaid(self) -> SandboxLimits:
        return self.limits.before_payment()

    def run(self) -> None:
        """Serve until the gateway is gone or the sandbox was idle for too long."""
        with _wake_on_child_end() as wake:
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
                    # The gateway closed the conversation.
                    self._children[fd].kill()
                elif not self._fork_children():
                    return
            self._reap()
            self._kill_late()

    def _is_wanted(self) -> bool:
        if self._children:
            self._last_busy = time.monotonic()
        is_idle = time.monotonic() - self._last_busy > self.limits.idle_s
        return os.getppid() == self.gateway_pid and not is_idle

    def _fork_children(self) -> bool:
        """Fork a child per conversation; False once the gateway has hung up."""
        message, descriptors, _, _ = socket.recv_fds(self.control, 1, 1)
        if not message:
            return False
        for descriptor in descriptors:
            conversation = socket.socket(fileno=descriptor)
            if self.problem or message == LOAD:
                end = End.NOT_LOADED if self.problem else End.DONE
                if message == LOAD:
                    with contextlib.suppress(OSError):
                        self.loaded.send(conversation)
                _report(conversation, end, detail=self.problem)
                continue
            server_pid = os.getpid()
            limits = self._unpaid if message == UNPAID else self.limits
            try:
                pid = os.fork()
            except OSError:
                # The machine is short of processes or memory. The other children go on.
                _report(conversation, End.NOT_STARTED)
                continue
            if pid == 0:
                self._become_child(conversation, server_pid, limits)
            wall_s = self.limits.wall_s
            self._children[descriptor] = _Child(
                pid, conversation, time.monotonic() + wall_s, limits.cpu_s, wall_s
            )
            # Hang-ups only: the data is for the child.
            self._poller.register(descriptor, 0)
        return True

    def _become_child(
        self, conversation: socket.socket, server_pid: int, limits: SandboxLimits
    ) -> None:
        try:
            signal.set_wakeup_fd(-1)
            signal.signal(signal.SIGCHLD, signal.SIG_DFL)
            os.setpgid(0, 0)
            confinement.die_with_parent(server_pid)
            self.loaded.send_own(conversation)
            os.dup2(conversation.fileno(), _CONVERSATION)
            os.closerange(_CONVERSATION + 1, _MAX_DESCRIPTOR)
            confinement.confine(
                memory=confinement.address_space(
                    limits.memory_bytes, self.loaded.address_bytes, self.loaded.all_bytes
                ),
                cpu_s=limits.cpu_s,
                open_files=0,
                nice=limits.nice,
            )
            confinement.filter_calls()
            self.serve(_CONVERSATION)
        finally:
            os._exit(1)

    def _kill_late(self) -> None:
        for child in self._children.values():
            child.kill_if_late()

    def _reap(self) -> None:
        for fd, child in list(self._children.items()):
            if child.has_ended:
                # Kill any processes that the child left behind.
                child.kill()
                _, status, used = os.wait4(child.pid, 0)
                self._poller.unregister(fd)
                del self._children[fd]
                child.report(status, used)


def _wake_on_child_end() -> socket.socket:
    """Return a socket that becomes readable on SIGCHLD."""
    ours, theirs = socket.socketpair()
    theirs.settimeout(0)
    signal.set_wakeup_fd(theirs.detach(), warn_on_full_buffer=False)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    return ours


def start(order: Mapping[str, Any]) -> None:
    """Serve the gateway, which holds the other end of standard input."""
    gateway_pid = os.getppid()
    control = socket.socket(fileno=os.dup(0))
    # Also hides this memory from the children.
    hide_memory()
    with _exit_on_hang_up(control):
        function, problem = _load(order["function"], order["warm"])
    _close_standard_streams()
    gc.collect()
    # Keep the loaded memory shared with the children.
    gc.freeze()
    limits = SandboxLimits(**order["limits"])
    # Children get the result.
    find_memory_bytes()
    ForkServer(
        control=control,
        gateway_pid=gateway_pid,
        serve=functools.partial(serve, function),
        limits=limits,
        problem=problem,
    ).run()


def _load(entry: str, warm: Sequence[str]) -> tuple[Function, str]:
    """Load what a child needs; return its function, and the problem if there is one."""
    try:
        for one in warm:
            if ":" in one:
                _load_function(one)()
            else:
                importlib.import_module(one)
        return _load_function(entry), ""
    except MemoryError:
        raise
    except (Exception, SystemExit) as error:
        if getattr(error, "errno", None) in _SHORTAGES:
            raise
        # For the plugin's author; the standard streams are still open.
        traceback.print_exc()
        problem = " ".join(f"{type(error).__name__}: {error}".split())
        return _never_called, problem[:_MAX_PROBLEM_CHARS]


def _never_called(*_: bytes | str) -> bytes:
    return b""


def _close_standard_streams() -> None:
    """Redirect them to /dev/null: a library's output may contain a buyer's text."""
    with open(os.devnull, "r+b") as nothing:  # noqa: PTH123 - a device, not a path
        for standard in (0, 1, 2):
            os.dup2(nothing.fileno(), standard)


@contextlib.contextmanager
def _exit_on_hang_up(control: socket.socket) -> Iterator[None]:
    """Exit if the gateway hangs up during the block, which takes seconds."""
    ours, theirs = socket.socketpair()
    with ours, theirs:
        watcher = threading.Thread(target=_wait_for_hang_up, args=(control, theirs), daemon=True)
        watcher.start()
        try:
            yield
        finally:
            ours.close()
            # A child forked beside another thread could inherit a held lock.
            watcher.join()


def _wait_for_hang_up(control: socket.socket, loaded: socket.socket) -> None:
    poller = select.poll()
    # Hang-ups only: data is read after loading.
    poller.register(control, 0)
    poller.register(loaded, 0)
    if any(fd == control.fileno() for fd, _ in poller.poll()):
        os._exit(0)


def _load_function(entry: str) -> Function:
    module, _, name = entry.partition(":")
    function: Function = getattr(importlib.import_module(module), name)
    if not callable(function):
        raise TypeError(f"{entry} is no function")
    return function
