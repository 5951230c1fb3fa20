"""The meaning of each log event, for docs/logs.md.

A test fails if the code logs an event that is not here, or an event here is no longer logged.
"""

EVENTS: dict[str, str] = {
    "alarm.ended": "A condition was gone for five minutes (docs/alarms.md).",
    "alarm.not_sent": "A channel rejected a message; retried for a day (`given_up`).",
    "alarm.not_written": "A message's delivery was not recorded; it may be sent twice.",
    "alarm.raised": "A condition needs you; `alarm` is the key for `gateway alarms mute`.",
    "alarm.sent": "A channel accepted messages.",
    "alarms.failed": "A check for conditions failed; retried in 30 seconds.",
    "alarms.from_memory": (
        "The database takes no writes: alarms come from memory and may repeat after a restart, and "
        "the heartbeat stops."
    ),
    "background.failed": ("A fault ended background work until the next start: restart."),
    "connections.refused": (
        "All connections that the limit of open files allows are in use, and the address with most "
        "gets no more: raise LimitNOFILE."
    ),
    "part.failed": (
        "A fault in a call of a plugin, which loses that feature only. One line a minute for each "
        "call."
    ),
    "plugin.blocks_database": (
        "A plugin's function of the database did not return in time. It was rolled back, and the "
        "plugin's functions rest for a minute: update or disable it."
    ),
    "backup.before_migration": "The copy before a migration was not uploaded; retried.",
    "backup.done": "A copy of the database was stored.",
    "backup.failed": "No copy was stored; retried.",
    "backup.old_copies": "Expired copies could not be deleted.",
    "catalog.not_reloaded": (
        "A reload found a mistake in a plugin's endpoints; all of them stay as they were."
    ),
    "catalog.reload_not_noted": (
        "The data folder takes no writes, so `gateway reload` cannot show a reload's outcome."
    ),
    "catalog.reloaded": "`gateway reload` added, removed or changed endpoints.",
    "chain.silent": "No RPC endpoint answered at the start; open payments wait.",
    "clock.off": (
        "This machine's clock is over 15 s from the newest block. Fix NTP; x402 stops beyond 60 s."
    ),
    "database.failed_over": (
        "PostgreSQL failed over (from timeline `known` to `found`) and may lack its newest "
        "payments. Earlier transfers are refused; `gateway transfers unused --hours 0` lists "
        "them."
    ),
    "disk.full": "A write failed on a full disk. Purchases are refused uncharged.",
    "disk.low": "The disk is near its limit (`free_mb`, `floor_mb`); below it nothing is sold.",
    "disk.recovered": "The disk has space again.",
    "disk.writable": "The database takes writes again.",
    "documents.cannot_read_pictures": "The parser has no OCR, so scanned pages give no text.",
    "draining": "The process ends: purchases get 503; running attempts (`tasks`) finish.",
    "drill.done": (
        "A trial restore of the newest copy succeeded; fields show what a restore would lose."
    ),
    "drill.failed": "The newest copy could not be restored. Fix this first.",
    "endpoint.below_cost": (
        "An endpoint sells below its cost, by `allow_loss = true` or a changed cost."
    ),
    "endpoint.off_sale": (
        "The vendor does not serve an endpoint's model; off sale for at least `pause_s`. If the "
        "model is gone, set another one or disable the endpoint."
    ),
    "endpoint.on_sale": "An endpoint is on sale again, on trial.",
    "endpoint.paused": "The operator took an endpoint off sale; running tasks finish.",
    "endpoint.priced": "The operator set an endpoint's price, or restored the file's.",
    "endpoint.resumed": "The operator put an endpoint on sale again.",
    "events.forgotten": "Events were deleted after 30 days, as no plugin reads them.",
    "events.not_registered": "Plugins were not registered for events; retried in an hour.",
    "events.no_database": "Events wait, as the database takes no writes; retried.",
    "events.on_taken_failed": "A plugin took events, then failed.",
    "events.not_taken": "A plugin failed to take events; retried.",
    "facilitator.listing": "The state of an endpoint's Bazaar listing.",
    "facilitator.not_settled": "The facilitator refused a settlement; the chain decides.",
    "facilitator.refused": "The facilitator rejected a request.",
    "gas.low": (
        "The settlement keys (`keys`) can pay for fewer than 200 `settlements`; urgent below 20. "
        "Send ETH."
    ),
    "gas.recovered": "The settlement keys hold enough ETH again.",
    "idle.ends": (
        "No request used the gateway for `idle_s` seconds, and nothing is pending: it ends with "
        "code 0 (docs/scale-to-zero.md)."
    ),
    "idle.stays": "It is idle, but stays for `pending` work.",
    "heartbeat.not_paused": (
        "The gateway goes to sleep, and its monitor was not informed: it will raise an alarm."
    ),
    "heartbeat.paused": "The gateway goes to sleep, and its monitor expects no heartbeat.",
    "heartbeat.failed": "GATEWAY_HEARTBEAT_URL did not answer as expected; retried.",
    "process.not_recovered": (
        "After a standstill the parts in `failed` could not renew what is old. Sales go on, and "
        "are refused if the chain or the clock is an obstacle."
    ),
    "process.recovered": "Connections, leases and the chain were checked; it sells again.",
    "process.stood_still": (
        "The process stood still for `gap` seconds, or its clock moved by `clock_moved`, or lags "
        "by `clock_behind` (docs/scale-to-zero.md#suspended-machines)."
    ),
    "job.not_stopped": "A late job could not be cancelled; the vendor may bill it.",
    "job.poll_failed": (
        "A poll failed unexpectedly; retried. Also the fields of a vendor's failure."
    ),
    "key.low": (
        "The refund key (`key`, `address`, `holds`) can pay for fewer than 20 refunds; urgent at "
        "none. Send ETH."
    ),
    "key.recovered": "The refund key holds enough ETH again.",
    "leadership.changed": "This node became the leader, or no longer is.",
    "leadership.not_released": "The leader's lease was not released at shutdown; it expires.",
    "leadership.not_renewed": (
        "The leader's lease was not renewed, as the database did not answer. Another node leads "
        "within 15 seconds."
    ),
    "limits.redis_answers": "Redis counts the requests of all nodes again.",
    "limits.redis_silent": (
        "The Redis of GATEWAY_LIMITS_URL fails or is slow: each node counts alone, and retries "
        "every five seconds."
    ),
    "log.dropped": "Lines were dropped, as standard output blocked.",
    "loop.blocked": (
        "A plugin or the gateway blocks the event loop, so every request waits; `frames` shows the "
        "code."
    ),
    "loop.released": "The event loop runs again.",
    "machine.short": (
        "This machine lacks descriptors, processes, memory or disk space; the work is retried "
        "here, and no provider is blamed."
    ),
    "mcp.response_failed": (
        "The response to a paid purchase by MCP failed; the buyer uses `get_task`."
    ),
    "metrics.failed": "The numbers for `/metrics` were not read.",
    "output.not_fetched": "A vendor's link to a result was not downloaded; retried.",
    "output.not_stored": "A result, or a task's end, was not written; retried.",
    "output.not_shown": ("An MCP response has only the link of a picture that was not read."),
    "migration.waits": "Another session uses the tables; the migration continues once it ends.",
    "outputs.bucket_failed": "The bucket fails; outputs are kept on the disk for now.",
    "node.clock": (
        "This machine's clock is too far from the database's: no new tasks until that is fixed "
        "(logged too)."
    ),
    "node.unfit": (
        "This process may not use the database: it drains and exits with code 1, to be restarted."
    ),
    "payment.chain_silent": "A settlement's outcome is unknown: no RPC endpoint answers.",
    "payment.driver_failed": "A fault during settlement; the next sweep continues.",
    "payment.fault_after_disconnect": "A fault in a purchase whose buyer had disconnected.",
    "payment.method_invalid": (
        "A payment method returned neither Taken nor Refused; the payment stays open."
    ),
    "payment.method_missing": (
        "A payment stays open, because its method's plugin is not installed."
    ),
    "payment.method_refused": "A payment method will never take this payment.",
    "payment.method_silent": "A payment method failed or timed out; retried.",
    "payment.not_prepared": "A settler failed or took long to read ahead; its check reads again.",
    "payment.not_sent": "A settlement was not sent; retried. A wait for a nonce is logged once.",
    "payment.open": "A settlement's outcome is still unknown; the sweep continues.",
    "payment.receipt_failed": ("A way to pay made no receipt; the buyer got the task without one."),
    "payment.store_silent": (
        "A settlement's outcome is not stored yet: the database does not answer; retried."
    ),
    "payment.settled": ("The buyer's USDC arrived, or the payment `method` took the money."),
    "plugin.session_not_ended": (
        "A function of a plugin hangs, and its session of PostgreSQL was not ended; the server "
        "ends it a minute after its last statement."
    ),
    "capability.broken": (
        "A function of a plugin's capability cannot be loaded; its endpoints are off sale. Repair "
        "the plugin."
    ),
    "capability.not_checked": (
        "The sandbox could not start, so it is not known whether a capability's functions load; "
        "tried again."
    ),
    "plugin.left_out": ("A plugin failed to load or conflicts with another; the rest is on sale."),
    "provider.close_failed": "A provider failed while it was closed.",
    "provider.does_not_stop": "A provider continues after cancellation; no longer waited for.",
    "provider.off_sale": (
        "A provider's endpoints are off sale for at least `pause_s`; `reason` has the vendor's "
        "status, code and message. Fix a wrong key or an empty account; other causes resolve "
        "themselves."
    ),
    "provider.on_sale": "A provider's endpoints are on sale again.",
    "provider.unhealthy": "A provider's `health` failed at the start; its endpoints stay on sale.",
    "proxy.no_address": (
        "A request had no address in GATEWAY_CLIENT_IP_HEADER and counts for the proxy. If all "
        "lack it, all buyers share one limit. Logged once."
    ),
    "refund.chain_silent": "A refund waits: no RPC endpoint answers.",
    "refund.failed": "The token refuses a refund for good: `gateway refunds list`.",
    "refund.not_advanced": "A fault while a refund was sent; retried.",
    "refund.paid": "A refund arrived.",
    "refunds.not_sent": "Signed refunds were not sent again; retried.",
    "refunds.promise_changed": (
        "Automatic refunds are now promised for prices up to `units` (10⁻⁶ USDC; 0: none)."
    ),
    "request": "An HTTP request was served. `rule` is the route, never the requested path.",
    "request.failed": "A fault in a route; the client got 500.",
    "request.not_validated": "A provider's `validate` failed; the request was accepted without it.",
    "restore.done": "GATEWAY_RESTORE replaced the database by a copy and kept the old one.",
    "restore.already_done": "GATEWAY_RESTORE names a copy that was already restored.",
    "retention.failed": "Expired outputs were not deleted; retried.",
    "retention.stuck": "One task's outputs cannot be deleted.",
    "retention.waits": (
        "Expired outputs are kept: the process has just resumed, or the clock is wrong or cannot "
        "be compared with the chain."
    ),
    "retention.swept": "Tasks whose expired outputs were deleted.",
    "retention.strays_deleted": "Files without a task were deleted.",
    "trial.end_not_noted": "The end of such a generation could not be written.",
    "trial.failed": "A generation from the page of an endpoint ended by a fault.",
    "rpc.not_shared": (
        "An RPC endpoint did not take a simulation that sales share, or did not answer it in time. "
        "Later sales ask the next endpoint; without one, each is simulated alone. The next attempt "
        "follows within five minutes, and no line until one succeeds."
    ),
    "rpc.failed": "An RPC endpoint failed; `endpoint` is its position in GATEWAY_RPC_URLS.",
    "setting.of_disabled_plugin": "Settings of a disabled plugin are set; they have no effect.",
    "setting.unread": "A value from the page Settings has no effect.",
    "setting.unknown": "A variable resembles a setting, but is none.",
    "settlement.key_can_pay": "One of several settlement keys can pay for gas again.",
    "settlement.batch": "A transaction with several payments was sent.",
    "settlement.no_multicall": ("There is no Multicall3, so each payment is settled alone."),
    "settlement.key_cannot_pay": "One of several settlement keys is out of ETH; the others go on.",
    "settlement.batch_burned": (
        "A payer's code used up a batch's gas: `fee_wei` counts for the hourly limit, and the "
        "payments are sent one by one."
    ),
    "settlement.not_judged": "The cause of a failed settlement is not known yet.",
    "settlement.not_ready": (
        "Payments cannot be taken. `obstacle` is `chain`, `settler` (mostly gas), `token`, "
        "`wallet` or `clock`; `problem` has the remedy."
    ),
    "settlement.ready": "That obstacle is gone.",
    "settlement.reverted": ("A settlement reverted and cost gas; `cause` may bar the payer."),
    "started": "The gateway serves.",
    "stop.drain_failed": "A fault during shutdown; unfinished work is on disk.",
    "stop.tasks_left": "The process ended although these calls of plugins ignored their end.",
    "stopped": "The process shut down.",
    "sweep.chain_silent": "Background work got no answer from the chain.",
    "sweep.failed": "A fault in background work; retried.",
    "task.attempt_failed": (
        "An attempt failed; the next line has the consequence. Also the fields of a vendor's "
        "failure."
    ),
    "task.completed": "The buyer can read the result.",
    "task.failed": ("The task failed for good, and its refund is due. `details` is the reason."),
    "task.retry_scheduled": "The task is retried after `delay_s`.",
    "tracing.failed": "A tracing plugin failed; the work went on.",
    "transfers.search_failed": "A fault in a search for transfers (`search`); retried.",
    "wallet.changed": "Payments now go to another wallet than at the last start (`before`).",
    "wallet.is_known": "The wallet or a key is from examples, on a real chain: nothing is sold.",
    "wallet.is_contract": ("GATEWAY_WALLET has code: nothing is sold, as payments might be lost."),
    "wallet.not_checked": ("Nothing is sold until the chain shows whether the wallet has code."),
    "wake.failed": "A fault while listening to other nodes; retried in a second.",
    "wake.restored": "This node gets the other nodes' notifications again.",
    "wake.lost": (
        "The connection for other nodes' notifications is lost: until it is back, this node polls, "
        "every second for waiting requests, every five for work and webhooks."
    ),
    "wake.not_sent": ("A notification about a task was not sent; other nodes poll."),
    "webhook.delivered": "A receiver accepted an event. Also `task`, `type`, `host`.",
    "webhook.dispatch_failed": "A fault while webhooks were sent; retried.",
    "webhook.given_up": "A receiver accepted no attempt. Also `type`, `host`.",
    "webhook.retry_scheduled": "A receiver did not accept an event; retried. Also `type`, `host`.",
    "webhook.not_written": "A webhook's result was not recorded; it may be sent twice.",
    "worker.dispatch_failed": "A fault while tasks were assigned; retried.",
    "worker.extend_failed": "A task's lease could not be extended; retried.",
    "worker.attempt_failed": "A fault in an attempt; the task is due once its lease expires.",
    "worker.lease_lost": "Another attempt has the task; this one stops.",
    "worker.not_given_back": "A task was not returned; it is due once its lease expires.",
    "worker.not_marked": "A submit was not sent, because its mark was not written.",
}
