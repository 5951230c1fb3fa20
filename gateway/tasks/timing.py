"""Timeouts and pauses of the workers."""

import attrs


@attrs.frozen(kw_only=True)
class TaskTiming:
    """Durations in seconds; every gateway runs with the defaults, tests with shorter ones."""

    # An attempt prolongs its lease while it works. The task of a process that died waits until the
    # lease has ended.
    lease_s: float = 60.0
    # Between two extensions of a lease: one of them may fail.
    extend_s: float = 20.0
    # Between two writes of progress.
    heartbeat_s: float = 1.0
    # Between two reads of the queue without an event, because clocks may jump.
    idle_s: float = 5.0
    # After a failed read of the queue.
    dispatch_pause_s: float = 1.0
    # While draining, between two searches for attempts that only wait for a vendor's job.
    drain_look_s: float = 0.2

    # Before the second attempt. Each further attempt waits twice as long, up to the maximum, with
    # jitter.
    backoff_s: float = 2.0
    max_backoff_s: float = 60.0
    # The most that a paid task waits for a provider that is off sale, unless the endpoint's own
    # time-out is shorter.
    patience_s: float = 1800.0
    # How long a provider rests after a submit that its account cannot pay, or may not send: probes
    # are free, so they pass although the credit is used up.
    account_rest_s: float = 900.0
    # The least and the most that a task waits if the provider asks for a pause.
    rate_limit_s: tuple[float, float] = (1.0, 3600.0)
    # A provider that asks for a longer pause is taken off sale: no buyer should pay for that wait.
    long_wait_s: float = 600.0
    # A task that would wait beyond this time since its first attempt fails instead.
    max_waited_s: float = 7200.0

    # Of one poll, and of one cancellation, of a vendor's job.
    poll_timeout_s: float = 60.0
    cancel_timeout_s: float = 30.0
    # The first and the longest pause between polls, if the vendor names none.
    poll_pauses_s: tuple[float, float] = (1.0, 10.0)
    # The least and the most that a pause named by the vendor may be.
    poll_after_s: tuple[float, float] = (0.2, 60.0)

    # Of one download, and the pauses before a failed one is repeated.
    download_timeout_s: float = 60.0
    download_pauses_s: tuple[float, ...] = (0.5, 2.0)
    # The pauses before a result that could not be checked or stored is tried again.
    write_pauses_s: tuple[float, ...] = (1.0, 2.0, 5.0, 10.0, 30.0, 60.0)
