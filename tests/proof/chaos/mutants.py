"""Gateways that break a rule of several nodes, as source that runs when a node starts.

The verdict must catch each of them. Otherwise it proves nothing.
"""

MUTANTS = {
    # Each start takes away all leases, also those of running nodes.
    "recovers-all": """
from gateway.store import tasks
_recover = tasks.recover
tasks.recover = lambda db, now, node=None: _recover(db, now)
""",
    # Signing does not wait for other nodes that sign with the same key.
    "signs-alone": """
import time
from gateway.store import nonces, signing_groups
_first_unused = nonces.first_unused
def first_unused(*arguments):
    nonce = _first_unused(*arguments)
    time.sleep(0.05)  # so that two nodes meet, however few processors there are
    return nonce
nonces.first_unused = first_unused
del signing_groups.begin_settling_each.name_locks
""",
}
