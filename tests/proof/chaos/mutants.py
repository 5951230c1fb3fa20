"""Gateways that break a rule of several nodes, as source that runs at a node's start.

The verdict must catch each of them: a proof that nothing can fail proves nothing.
"""

MUTANTS = {
    # Each start takes all leases away, also those of nodes that are at work.
    "recovers-all": """
from gateway.store import tasks
_recover = tasks.recover
tasks.recover = lambda db, now, node=None: _recover(db, now)
""",
    # Who signs waits for no other node that signs with the same key.
    "signs-alone": """
import time
from gateway.store import nonces, payments
_next_nonce = nonces.next_nonce
def next_nonce(*arguments):
    nonce = _next_nonce(*arguments)
    time.sleep(0.05)  # so that two nodes meet, however few processors there are
    return nonce
nonces.next_nonce = next_nonce
del payments.begin_settling.name_locks
""",
}
