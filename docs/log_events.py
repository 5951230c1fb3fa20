"""The meaning of each log event, for docs/logs.md.

A test fails if the code logs an event that is not here, or an event here is no longer logged.
"""

_VENDOR = "`error`, `status`, `vendor_code`, `vendor_message`, `at`"

EVENTS: dict[str, str] = {
    "alarm.ended": "A condition was gone for five minutes (docs/alarms.md).",
    "alarm.not_sent": "A channel rejected a message; retried until it is a day old (`given_up`).",
    "alarm.not_written": "The delivery of a message was not recorded; it may be sent twice.",
    "alarm.raised": "A condition needs you; `alarm` is the key for `gateway alarms mute`.",
    "alarm.sent": "A channel accepted messages about these `alarms`.",
    "alarms.failed": "A check for conditions failed (`work`); the next one runs in 30 seconds.",
    "alarms.from_memory": (
        "The database takes no writes (`error`): alarms come from memory and may repeat after a "
        "restart, and the heartbeat is silent."
    ),
    "background.failed": (
        "A fault ended background work (`work`) until the next start. Please report it and restart."
    ),
    "part.failed": (
        "A part of the gateway failed at one step (`part`, `step`); the other parts go on. Please "
        "report it."
    ),
    "backup.before_migration": "The copy made before a migration was not uploaded; retried.",
    "backup.done": "A copy of the database was made and stored.",
    "backup.failed": "No copy was made or stored (`error`); retried.",
    "backup.old_copies": "Expired copies could not be deleted.",
    "chain.silent": "No RPC endpoint answered at the start; open payments wait.",
    "clock.off": (
        "This machine's clock differs by more than 15 s from the newest block. Fix NTP; x402 "
        "stops beyond 60 s."
    ),
    "database.failed_over": (
        "PostgreSQL failed over (`known`, `found`: timelines) and may lack its newest payments. "
        "Earlier transfers are refused; `gateway transfers unused --hours 0` lists them."
    ),
    "disk.full": "A write failed because the disk is full. Purchases are refused without a charge.",
    "disk.low": "The disk is near its limit (`free_mb`, `floor_mb`); below it nothing is sold.",
    "disk.recovered": "The disk has space again.",
    "disk.writable": "The database takes writes again.",
    "documents.cannot_read_pictures": "The parser has no OCR, so scanned pages give no text.",
    "draining": "SIGTERM arrived: purchases get 503; running attempts (`tasks`) finish.",
    "drill.done": (
        "A trial restore of the newest copy succeeded; fields show what a restore would lose."
    ),
    "drill.failed": "The newest copy could not be restored. Fix this before you need it.",
    "endpoint.below_cost": (
        "An endpoint sells below its cost (`sold`): `allow_loss = true`, or its cost has changed "
        "since the start."
    ),
    "endpoint.off_sale": (
        "The vendor does not serve an endpoint's model (`reason`); off sale for at least "
        "`pause_s` seconds. If the model is gone, set another one or disable the endpoint."
    ),
    "endpoint.on_sale": "An endpoint is on sale again, as a trial.",
    "endpoint.paused": "The operator took an endpoint off sale; running tasks finish.",
    "endpoint.priced": "The operator set an endpoint's price, or restored the file's.",
    "endpoint.resumed": "The operator put an endpoint on sale again.",
    "events.forgotten": "Events were deleted after 30 days, because no plugin reads them.",
    "events.not_registered": "Plugins could not be registered for events; retried in an hour.",
    "events.no_database": "Events wait because the database takes no writes; retried.",
    "events.on_taken_failed": "A plugin took events and failed afterwards. Please report it.",
    "events.not_taken": "A plugin failed to take events; retried after `pause_s`.",
    "facilitator.listing": "The facilitator reported the state of an endpoint's Bazaar listing.",
    "facilitator.not_settled": "The facilitator refused a settlement; the chain decides.",
    "facilitator.refused": "The facilitator rejected a request.",
    "gas.low": (
        "The settlement keys (`keys`) can pay for fewer than 200 `settlements`; urgent below 20. "
        "Send ETH."
    ),
    "gas.recovered": "The settlement keys hold enough ETH again.",
    "heartbeat.failed": "GATEWAY_HEARTBEAT_URL did not answer as expected; retried.",
    "job.not_stopped": "A job took too long and could not be cancelled; the vendor may bill it.",
    "job.poll_failed": f"A poll failed unexpectedly and is retried. Also {_VENDOR}.",
    "key.low": (
        "The refund key (`key`, `address`, `holds`) can pay for fewer than 20 refunds; urgent at "
        "none. Send ETH."
    ),
    "key.recovered": "The refund key holds enough ETH again.",
    "leadership.changed": "This node became the leader, or is it no longer.",
    "leadership.not_released": "The leader's lease was not released at shutdown; it expires.",
    "leadership.not_renewed": (
        "The leader's lease was not renewed: the database did not answer. Another node leads "
        "within 15 seconds."
    ),
    "limits.redis_answers": "Redis counts the requests of all nodes again.",
    "limits.redis_silent": (
        "The Redis of GATEWAY_LIMITS_URL fails or is slow (`problem`): each node counts on its "
        "own and retries every five seconds."
    ),
    "log.dropped": "Standard output blocked, so `lines` were dropped.",
    "loop.blocked": (
        "A plugin or the gateway blocks the event loop, so every request waits. `frames` shows "
        "the code."
    ),
    "loop.released": "The event loop runs again.",
    "mcp.response_failed": (
        "A purchase by MCP was paid, but its response failed; the buyer uses `get_task`."
    ),
    "metrics.failed": "The numbers for `/metrics` could not be read; the next scrape retries.",
    "output.not_fetched": "A vendor's link to a result could not be downloaded; retried.",
    "output.not_stored": "A result could not be written to disk or bucket; retried.",
    "output.not_shown": (
        "A picture could not be read for a response of MCP, which has only the link."
    ),
    "migration.waits": "Another session uses the tables; the migration continues once it ends.",
    "outputs.bucket_failed": "The bucket fails; outputs are kept on the disk for now.",
    "node.clock": (
        "This machine's clock is too far from the database's (`problem`): it takes no new tasks "
        "until that is fixed (logged too)."
    ),
    "node.unfit": (
        "This process may not use the database (`problem`): it drains and exits with code 1, to "
        "be restarted."
    ),
    "payment.chain_silent": "A settlement's outcome is unknown: no RPC endpoint answers.",
    "payment.driver_failed": "A fault during settlement; the next sweep continues.",
    "payment.fault_after_disconnect": "A fault in a purchase whose buyer had disconnected.",
    "payment.method_invalid": (
        "A payment method returned neither Taken nor Refused; the payment stays open."
    ),
    "payment.method_missing": (
        "A payment stays open: the plugin of its payment method is not installed."
    ),
    "payment.method_refused": "A payment method will never take this payment.",
    "payment.method_silent": "A payment method failed or timed out; retried.",
    "payment.not_sent": "The settler could not send a settlement; retried.",
    "payment.open": "A settlement's outcome is still unknown; the sweep continues.",
    "payment.receipt_failed": (
        "A way to pay failed to make its receipt; the buyer got the task without one."
    ),
    "payment.settled": (
        "The buyer's USDC arrived (`transaction`), or the payment `method` took the money."
    ),
    "plugin.left_out": (
        "A plugin failed to load or conflicts with another one; the rest is on sale."
    ),
    "provider.close_failed": "A provider failed while it was closed.",
    "provider.does_not_stop": "A provider continues after cancellation; the gateway stops waiting.",
    "provider.off_sale": (
        "A provider's endpoints are off sale for at least `pause_s` seconds; `reason` has the "
        "vendor's status, code and message. Fix a wrong key or an empty account; other causes "
        "resolve themselves."
    ),
    "provider.on_sale": "A provider's endpoints are on sale again.",
    "provider.unhealthy": "A provider's `health` failed at the start; its endpoints stay on sale.",
    "proxy.no_address": (
        "A request had no address in GATEWAY_CLIENT_IP_HEADER, so it counts for the proxy. If all "
        "requests lack it, all buyers share one limit. Logged once."
    ),
    "refund.chain_silent": "A refund waits: no RPC endpoint answers.",
    "refund.failed": "The token refuses a refund for good. Decide again: `gateway refunds list`.",
    "refund.not_advanced": "A fault while a refund was sent; the next sweep retries.",
    "refund.paid": "A refund arrived (`transaction`).",
    "refunds.not_sent": "Signed refunds could not be sent again; the next sweep retries.",
    "refunds.promise_changed": (
        "The promise of automatic refunds changed: key and daily cap cover prices up to `units` "
        "(10⁻⁶ USDC; 0: none)."
    ),
    "request": "One HTTP request was served. `rule` is the route, never the requested path.",
    "request.failed": "A fault in a route; the client got 500. Please report it.",
    "request.not_validated": "A provider's `validate` failed; the request was accepted without it.",
    "restore.done": "GATEWAY_RESTORE replaced the database by a copy and kept the old one.",
    "restore.already_done": "GATEWAY_RESTORE names a copy that was already restored: no action.",
    "retention.failed": "Expired outputs could not be deleted; retried.",
    "retention.stuck": "The outputs of one task cannot be deleted.",
    "retention.swept": "Number of tasks whose expired outputs were deleted.",
    "retention.strays_deleted": "Number of deleted files without a task.",
    "rpc.failed": "An RPC endpoint (`endpoint`: its position in GATEWAY_RPC_URLS) failed.",
    "setting.of_disabled_plugin": "Settings of a disabled plugin are set; they have no effect.",
    "setting.unknown": "A variable resembles a setting, but is none.",
    "settlement.key_can_pay": "One of several settlement keys can pay for gas again.",
    "settlement.batch": "A transaction with several payments was sent (GATEWAY_SETTLEMENT_BATCH).",
    "settlement.no_multicall": (
        "There is no Multicall3 at its address, so each payment is settled alone."
    ),
    "settlement.key_cannot_pay": "One of several settlement keys is out of ETH; the others go on.",
    "settlement.batch_burned": (
        "A payer's code used up a batch's gas: `fee_wei` counts towards the hourly limit, and its "
        "payments are sent one by one."
    ),
    "settlement.not_judged": "The cause of a failed settlement is not known yet.",
    "settlement.not_ready": (
        "Payments cannot be taken. `obstacle` is `chain`, `settler` (mostly gas), `token`, "
        "`wallet` or `clock`; `problem` has the remedy. Once per change."
    ),
    "settlement.ready": "That obstacle is gone.",
    "settlement.reverted": (
        "A settlement was mined and reverted: gas was spent. `cause` may bar the payer."
    ),
    "started": "The gateway serves; fields show its address, offers and wallet.",
    "stop.drain_failed": "A fault during shutdown; unfinished work is on the disk.",
    "stopped": "The process has shut down.",
    "sweep.chain_silent": "Background work got no answer from the chain.",
    "sweep.failed": "A fault in background work, which is repeated.",
    "task.attempt_failed": f"An attempt failed; the next line has the consequence. Also {_VENDOR}.",
    "task.completed": "The result is stored, and the buyer can read it.",
    "task.failed": (
        "The task failed for good, and its refund is due. `details` is the kind of reason."
    ),
    "task.retry_scheduled": "The task is retried after `delay_s` seconds.",
    "tracing.failed": "A tracing plugin failed at a `span`; the work went on.",
    "transfers.search_failed": (
        "A fault in the search for unused transfers; the next search continues."
    ),
    "wallet.is_contract": (
        "GATEWAY_WALLET has code: nothing is sold, because payments might be lost."
    ),
    "wallet.not_checked": (
        "Whether the wallet has code is not known yet; nothing is sold until then."
    ),
    "wake.failed": "A fault while this node listened to the others; retried in a second.",
    "wake.restored": "This node gets the other nodes' notifications again.",
    "wake.lost": (
        "The connection for notifications of other nodes is lost. Until it is back, this node "
        "polls: every second for waiting requests, every five for work and webhooks."
    ),
    "wake.not_sent": (
        "A notification about a task was not sent; other nodes find the task by polling."
    ),
    "webhook.delivered": "A receiver accepted an event. Also `task`, `type`, `host`.",
    "webhook.dispatch_failed": "A fault while webhooks were sent; retried.",
    "webhook.given_up": "A receiver accepted no attempt at an event. Also `type`, `host`.",
    "webhook.retry_scheduled": "A receiver did not accept an event; retried. Also `type`, `host`.",
    "webhook.not_written": "The result of a webhook was not recorded; it may be sent twice.",
    "worker.dispatch_failed": "A fault while tasks were assigned; retried.",
    "worker.extend_failed": "A task's lease could not be extended; retried.",
    "worker.attempt_failed": "A fault in an attempt; the task is due once its lease expires.",
    "worker.lease_lost": "Another attempt has the task; this one stops.",
    "worker.not_given_back": "A task could not be returned; it is due once its lease expires.",
    "worker.not_marked": "A submit was not sent, because its mark was not written.",
}
