"""The meaning of each log event, and what to do about it: the source of docs/logs.md.

A test fails if the code logs an event that is missing here, or no longer logs one that is here.
"""

_VENDOR = "`error`, `status`, `vendor_code`, `said`, `at`"

EVENTS: dict[str, str] = {
    "alarm.ended": "A condition was gone for five minutes (docs/alarms.md).",
    "alarm.not_told": (
        "A channel did not accept a message; it is retried until it is a day old (`given_up`)."
    ),
    "alarm.not_written": "The result of a message could not be stored; it may be sent twice.",
    "alarm.raised": "Something needs you: `alarm` is the key for `gateway alarms mute`.",
    "alarm.told": "A channel accepted messages about these `alarms`.",
    "alarms.failed": "A check of the alarms failed (`work`); the next one is in 30 seconds.",
    "alarms.from_memory": (
        "The database takes no writes (`error`): alarms are sent from memory, and the "
        "heartbeat stops. A restart in this state sends them again."
    ),
    "background.failed": (
        "An unexpected error ended background work (`work`) until the next start. Please report "
        "it, and restart the gateway."
    ),
    "part.failed": (
        "A step of a part of the gateway (`part`, `step`) failed; the other parts continue. Please "
        "report it."
    ),
    "backup.before_migration": "The copy from before a migration was not uploaded; it is retried.",
    "backup.done": "A copy of the database was made and stored.",
    "backup.failed": "No copy could be made or stored (`error`); it is retried.",
    "backup.old_copies": "Expired copies could not be deleted.",
    "chain.silent": "At the start no RPC endpoint responded; open payments wait.",
    "clock.off": (
        "This machine's clock and the chain's newest block differ by more than 15 s. Set it by "
        "NTP; beyond 60 s x402 stops."
    ),
    "database.dated_anew": (
        "The PostgreSQL server is another one than at the last start (`known`, `found`: "
        "their timelines) and may lack the newest payments. Transfers from before this start are "
        "refused; `gateway transfers unclaimed --hours 0` lists them."
    ),
    "disk.full": (
        "A write failed: the disk is full. Purchases are refused, uncharged, until it is not."
    ),
    "disk.low": "Free disk space is near the floor (`free_mb`, `floor_mb`), where sales stop.",
    "disk.well": "There is room on the disk again.",
    "disk.writable": "The database takes writes again.",
    "documents.cannot_read_pictures": "The parser has no OCR, so scanned pages give no text.",
    "draining": (
        "SIGTERM was received: purchases get 503, all else continues until `tasks` attempts have "
        "ended."
    ),
    "drill.done": "The newest copy was restored as a test; the fields show what a restore loses.",
    "drill.failed": "The newest copy could not be restored: inspect it before you need it.",
    "endpoint.below_cost": (
        "An endpoint is sold below cost (`sold`): its table in the settings "
        "file has allow_loss = true, or its cost has changed while the gateway runs."
    ),
    "endpoint.off_sale": (
        "The vendor does not serve an endpoint's model (`reason`): it is not sold for "
        "at least `pause_s` seconds; the vendor's other models are. If the model is gone for good, "
        "name another one in the settings, or switch the endpoint off."
    ),
    "endpoint.on_sale": "An endpoint whose model was not served is sold again, as a trial.",
    "endpoint.paused": "The operator took an endpoint off sale; running tasks are finished.",
    "endpoint.priced": "The operator set an endpoint's price, or reset it to the file's.",
    "endpoint.resumed": "The operator put an endpoint on sale again.",
    "facilitator.listing": (
        "The facilitator reported the status of an endpoint's listing in its Bazaar."
    ),
    "facilitator.not_settled": ("The facilitator refused a settlement; the chain decides."),
    "facilitator.refused": "The facilitator did not accept a request of the gateway.",
    "gas.low": (
        "The settlement keys (`keys`) pay for fewer than 200 `settlements`, urgent under 20. "
        "Send ETH."
    ),
    "gas.well": "The settlement keys hold enough ETH again.",
    "heartbeat.not_heard": "GATEWAY_HEARTBEAT_URL did not respond as expected; it is retried.",
    "job.not_stopped": (
        "A job that took too long could not be cancelled at the vendor and may be billed."
    ),
    "job.odd_answer": f"A poll failed in an unexpected way and is repeated. Also {_VENDOR}.",
    "key.low": (
        "The refund key (`key`, `address`, `holds`) pays for fewer than 20 refunds; urgent at "
        "none. Send ETH."
    ),
    "key.well": "The refund key holds enough ETH again.",
    "leadership.changed": "This node became the leader, or stopped being it.",
    "leadership.not_given_up": "Leadership could not be released at shutdown; it expires.",
    "leadership.not_kept": "The database did not respond, so leadership lapses. Another node leads "
    "after 15 seconds.",
    "limits.redis_answers": "Redis counts the requests of all nodes again.",
    "limits.redis_silent": (
        "The Redis of GATEWAY_LIMITS_URL fails or is slow (`problem`): each node counts a "
        "client's requests on its own, and one request in five seconds tries Redis again."
    ),
    "log.dropped": (
        "Standard output was blocked for a while: it was not read, or its disk was full. "
        "`lines` lines were dropped, so that sales continued."
    ),
    "loop.blocked": (
        "A plugin, or the gateway, blocks the event loop: every request waits. `frames` show where."
    ),
    "loop.released": "The event loop runs again.",
    "mcp.sold_not_shown": (
        "A purchase by MCP was paid, but its response failed; the buyer uses `get_task`."
    ),
    "metrics.failed": "The metrics could not be read; the next scrape tries again.",
    "output.not_fetched": "A vendor's link to a result could not be downloaded; it is retried.",
    "output.not_kept": "A result could not be written to disk or bucket; it is retried.",
    "output.not_shown": (
        "A picture could not be read for an MCP response, which has only the link."
    ),
    "migration.waits": (
        "Another session uses the tables; the schema is migrated when it has ended."
    ),
    "outputs.bucket_failed": (
        "The bucket fails or does not respond; meanwhile outputs are stored on disk."
    ),
    "node.clock": (
        "This machine's clock is too far from the database's (`problem`): it starts "
        "nothing new until the clock is right, which is logged as well."
    ),
    "node.unfit": (
        "This process must not continue with the database (`problem`): it drains and exits with "
        "code 1, to be restarted."
    ),
    "payment.chain_silent": (
        "The outcome of a settlement is not known yet: no RPC endpoint responds."
    ),
    "payment.driver_failed": "An unexpected error in a settlement; the next sweep continues it.",
    "payment.fault_unseen": "An unexpected error in a purchase whose buyer had disconnected.",
    "payment.method_confused": (
        "A payment method returned neither Taken nor Refused; the payment stays open."
    ),
    "payment.method_missing": (
        "A payment stays open, because the plugin of its payment method is not installed."
    ),
    "payment.method_refused": "A payment method refused this payment for good.",
    "payment.method_silent": "A payment method failed or did not respond; it is retried.",
    "payment.not_sent": "The settler could not send a settlement; it is retried.",
    "payment.open": "A settlement's outcome is unknown after its time; the sweep continues it.",
    "payment.receipt_failed": (
        "A payment method failed to make its receipt; the buyer got the task without one."
    ),
    "payment.settled": (
        "The buyer's USDC arrived by this `transaction`, or the payment `method` took the money."
    ),
    "plugin.left_out": "A plugin failed to load, or conflicts with another one; the rest is sold.",
    "provider.close_failed": "A provider failed while it was closed at shutdown.",
    "provider.does_not_stop": (
        "A provider continues after it was cancelled; the gateway no longer waits."
    ),
    "provider.off_sale": (
        "Its endpoints are not sold for at least `pause_s` seconds: `reason` has the vendor's "
        "status, code and message. Fix a wrong key or an empty account; all else recovers "
        "on its own."
    ),
    "provider.on_sale": "Its endpoints are sold again.",
    "provider.unwell": ("A provider's `health` failed at the start; its endpoints are still sold."),
    "proxy.no_address": (
        "A request had no client address in GATEWAY_CLIENT_IP_HEADER, so the proxy's own was "
        "counted. If all requests lack it, all buyers share one limit. Logged once."
    ),
    "refund.chain_silent": "A refund waits: no RPC endpoint responds.",
    "refund.failed": "The token refuses a refund for good. Decide again: `gateway refunds list`.",
    "refund.not_advanced": "An unexpected error during a refund; the next sweep tries again.",
    "refund.paid": "A refund arrived by this `transaction`.",
    "refunds.not_sent": "Refunds in progress could not be sent again; the next sweep retries.",
    "refunds.room_changed": (
        "Automatic refunds can be promised, or no longer: the refund key and the daily cap "
        "cover a price of up to `units` (10⁻⁶ USDC); 0: none."
    ),
    "request": ("One HTTP request was handled. `rule` is the route, never the requested URL."),
    "request.failed": "An unexpected error in a route: the client got 500. Please report it.",
    "request.not_validated": (
        "A provider's own check of requests failed; the request was accepted without it."
    ),
    "restore.done": "GATEWAY_RESTORE replaced the database with a copy, and kept the old one.",
    "restore.remembered": "GATEWAY_RESTORE names a copy that was restored before; nothing is done.",
    "retention.failed": "Old outputs could not be deleted now; it is retried.",
    "retention.stuck": "The outputs of one task cannot be deleted.",
    "retention.swept": "Expired outputs of a number of tasks were deleted.",
    "retention.tidied": "A number of files without a task were deleted.",
    "rpc.failed": (
        "An RPC endpoint (`endpoint`: its place in GATEWAY_RPC_URLS) did not respond properly."
    ),
    "setting.unknown": "A variable resembles a setting but is not one.",
    "settlement.key_can_pay": "One of several settlement keys can pay for gas again.",
    "settlement.batch": "A transaction of several payments was sent (GATEWAY_SETTLEMENT_BATCH).",
    "settlement.no_multicall": (
        "Multicall3 is not deployed at its address, so each payment is settled alone."
    ),
    "settlement.key_cannot_pay": "One of several settlement keys is out of ETH; others continue.",
    "settlement.batch_burned": (
        "A whole batch reverted, because a payer's code used up its gas: `fee_wei` counts for "
        "the hour, and its payments are sent one by one."
    ),
    "settlement.not_judged": "The reason for a failed settlement is not known yet.",
    "settlement.not_ready": (
        "Payments cannot be accepted: `obstacle` is `chain` (it does not respond), "
        "`settler` (mostly gas), `token`, `wallet` or `clock`; `problem` has the remedy. "
        "Logged once for each change."
    ),
    "settlement.ready": "That obstacle is gone.",
    "settlement.reverted": (
        "A settlement was mined and failed, and gas was spent. `cause` may block the payer."
    ),
    "started": "The gateway is running; the fields name its offers, address and wallet.",
    "stop.drain_failed": (
        "An unexpected error during shutdown; unfinished work is stored on disk."
    ),
    "stopped": "The process has saved its work and exits.",
    "sweep.chain_silent": "A background read of the chain got no response.",
    "sweep.failed": "An unexpected error in background work, which is repeated.",
    "task.attempt_failed": (f"An attempt failed; the consequence is logged next. Also {_VENDOR}."),
    "task.completed": "The result is stored and available to the buyer.",
    "task.failed": (
        "The task has failed for good, and its refund is due. `details` names the reason."
    ),
    "task.later": "The task is retried after `delay_s` seconds.",
    "tracing.failed": "A tracing plugin failed at a `span`; the work continued.",
    "unclaimed.failed": ("The search for unused transfers failed; the next one continues."),
    "wallet.is_contract": (
        "GATEWAY_WALLET has contract code: nothing is sold, because payments might be lost."
    ),
    "wallet.not_checked": (
        "Whether the wallet has code is not known yet; nothing is sold until then."
    ),
    "wake.failed": "Listening to the other nodes failed; it starts again in a second.",
    "wake.found": "This node receives notifications of the others' tasks again.",
    "wake.lost": (
        "The connection for notifications of the others' tasks is lost. Until it is back, "
        "the node polls: every second for waiting requests, every five for work and webhooks."
    ),
    "wake.not_sent": "The others were not notified of a task; they find it by polling.",
    "webhook.delivered": "A buyer's receiver accepted an event. Also `task`, `type`, `host`.",
    "webhook.dispatch_failed": "An unexpected error while webhooks were sent; they are retried.",
    "webhook.given_up": (
        "A buyer's receiver did not accept an event after all attempts. Also `type`, `host`."
    ),
    "webhook.later": (
        "A buyer's receiver did not accept an event; it is retried. Also `type`, `host`."
    ),
    "webhook.not_written": "The result of a webhook could not be stored; it may be sent twice.",
    "worker.dispatch_failed": "An unexpected error while tasks were assigned; it is retried.",
    "worker.extend_failed": "A task's lease could not be extended; it is retried.",
    "worker.lane_failed": (
        "An unexpected error in an attempt; the task is due again once its lease has expired."
    ),
    "worker.lease_lost": "Another attempt has leased the task; this one stops.",
    "worker.not_given_back": (
        "A lease could not be released; the task is due once it has expired."
    ),
    "worker.not_marked": "A submit was not sent, because its mark could not be written first.",
}
