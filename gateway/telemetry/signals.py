"""Blinker signals for metrics.

Signals carry names and seconds only, never a payer, a task, a hash or an address. Receivers run in
the sender's thread, which is not always the loop's.
"""

from blinker import Signal

# rule: the route's path or None; status: HTTP status; seconds.
request_answered = Signal()

# slug; flow: `x402`, `direct` or a payment method; code: the error code, or the reason in a 402.
purchase_refused = Signal()

# provider; result: `completed`, or the class of the error.
attempt_ended = Signal()

# slug; seconds since the first attempt.
task_ended = Signal()

# endpoint: its position in the settings; method; result: `ok`, `reverted`, `refused` or `silent`;
# seconds.
rpc_answered = Signal()

# endpoint: its position in the settings; is_failing. Sent after each failed call, and after the
# first success that follows.
rpc_failing = Signal()

# settler: its package, or the payment method; seconds from the first submit until the outcome is
# seen on-chain or reported by the method.
payment_settled = Signal()

# seconds: one database commit, with its batch of writes.
batch_committed = Signal()

# plugin; seconds for which the event loop was blocked.
loop_blocked = Signal()

# lines: how many were dropped because standard output blocked or failed.
log_lines_dropped = Signal()
