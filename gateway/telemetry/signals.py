"""Signals for metrics, by blinker.

The module in which an event happens sends it, with names and seconds only: no signal has a payer, a
task, a hash or an address. Receivers run in the sender's thread, which is not always the loop's.
"""

from blinker import Signal

# rule: the route's path or None; status: HTTP's; seconds.
request_answered = Signal()

# slug, flow (`x402`, `direct` or a payment method), code: the error's, or the reason in a 402.
purchase_refused = Signal()

# provider, result: `completed`, or the class of the error that counted.
attempt_ended = Signal()

# slug, seconds from the first attempt on.
task_ended = Signal()

# endpoint: its place in the settings; method; result: `ok`, `reverted`, `refused` or `silent`;
# seconds.
rpc_answered = Signal()

# endpoint: its place in the settings; is_failing. Sent after each call that got no answer or was
# refused, and after the first answer that follows.
rpc_failing = Signal()

# settler: its package, or the payment method; seconds from the first submit until the outcome was
# seen on-chain, or reported by the method.
payment_settled = Signal()

# seconds of one commit of the database, with its batch of writes.
batch_committed = Signal()

# plugin, seconds for which the event loop has not answered.
loop_blocked = Signal()

# lines that standard output did not take.
log_lines_dropped = Signal()
