"""Timeouts and pauses of the workers."""

import attrs


@attrs.frozen(kw_only=True, eq=False, repr=False)
class TaskTiming:
    """Durations in seconds. Every gateway uses the defaults; only tests change them."""

    # An attempt extends its lease while it runs. If the process dies, the task waits for the lease
    # to expire.
    lease_s: float = 60.0
    # Between two extensions of a lease. One of them may fail.
    extend_s: float = 20.0
    # After a death of the gateway: how long a task that it had worked on runs without others.
    lone_s: float = 60.0
    # Between two writes of progress.
    heartbeat_s: float = 1.0
    # Between two reads of the queue without a wake-up, because clocks may jump.
    idle_s: float = 5.0
    # After a failed read of the queue.
    dispatch_pause_s: float = 1.0
    # While draining: between two searches for attempts that only wait for a vendor's job.
    drain_poll_s: float = 0.2

    # Before the second attempt. Doubles for each further one, up to the maximum, with jitter.
    backoff_s: float = 2.0
    max_backoff_s: float = 60.0
    # The longest that a paid task waits for a provider that is off sale, unless the endpoint's
    # timeout is shorter.
    max_outage_s: float = 1800.0
    # The longest that a paid task waits for a node that has its endpoint: a rolling upgrade, or a
    # plugin that failed to load, may take hours. After this age it fails once this node has seen it
    # wait for `unknown_seen_s`; a node that restarts may only have given it back.
    max_unknown_s: float = 6 * 3600.0
    unknown_seen_s: float = 600.0
    # How long a provider rests after an account problem. Probes are free, so they succeed even
    # without credit.
    account_pause_s: float = 900.0
    # Bounds of a pause that the provider asks for.
    rate_limit_s: tuple[float, float] = (1.0, 3600.0)
    # A provider that asks for a longer pause goes off sale: no buyer should pay for that wait.
    long_wait_s: float = 600.0
    # A task fails if such pauses would delay it beyond this time after its start.
    max_waited_s: float = 7200.0

    # A shortage of this machine that has delayed a task for longer costs it attempts.
    max_shortage_s: float = 1800.0

    # Timeouts of one poll and one cancellation of a vendor's job.
    poll_timeout_s: float = 60.0
    cancel_timeout_s: float = 30.0
    # The first and the longest pause between polls if the vendor names none.
    poll_pauses_s: tuple[float, float] = (1.0, 10.0)
    # Bounds of a pause that the vendor names.
    poll_after_s: tuple[float, float] = (0.2, 60.0)

    # How long failed polls are repeated after a job's time is over.
    late_polls_s: float = 60.0

    # Timeout of one download, and the pauses before retries.
    download_timeout_s: float = 60.0
    download_pauses_s: tuple[float, ...] = (0.5, 2.0)
    # The pauses before retries of checking or storing a result; longer in a shortage.
    write_pauses_s: tuple[float, ...] = (1.0, 2.0, 5.0, 10.0, 30.0, 60.0)
