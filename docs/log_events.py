"""What each log event means and what to do about it; docs/logs.md is made of this and the code.

A test fails where the code logs an event that is not here, or no longer logs one that is.
"""

_VENDOR = "`error`, `status`, `vendor_code`, `said`, `at`"

EVENTS: dict[str, str] = {
    "alarm.ended": "A condition was gone for five minutes (docs/alarms.md).",
    "alarm.not_told": (
        "A channel did not take a message; it is tried again until it is a day old (`given_up`)."
    ),
    "alarm.not_written": "What came of a message could not be written down; it may come twice.",
    "alarm.raised": "Something needs you: `alarm` is the key for `gateway alarms mute`.",
    "alarm.told": "A channel took messages about these `alarms`.",
    "alarms.failed": "A look at what needs you failed (`work`); the next one is in 30 seconds.",
    "alarms.from_memory": (
        "The database takes no writes, as `error` says: alarms are told from memory, and the "
        "heartbeat is silent. A restart meanwhile tells them again."
    ),
    "background.failed": (
        "A fault ended work beside the requests (`work`) until the next start. Please report it, "
        "and start the gateway again."
    ),
    "part.failed": (
        "One step of a part of the gateway (`part`, `step`) failed; the other parts go on. Please "
        "report it."
    ),
    "backup.before_migration": "The copy from before a migration was not sent; it is tried again.",
    "backup.done": "A copy of the database was made and stored.",
    "backup.failed": "No copy could be made or stored; `error` says why, and it is tried again.",
    "backup.old_copies": "Copies that are older than what is kept could not be deleted.",
    "chain.silent": "At the start no RPC endpoint answered; open payments wait.",
    "clock.off": (
        "This machine's clock and the chain's newest block differ by more than 15 s. Set it by "
        "NTP; beyond 60 s x402 stops."
    ),
    "database.dated_anew": (
        "Another PostgreSQL server stands in for the one of the start before (`known`, `found`: "
        "their timelines) and may lack its newest payments. Transfers from before this start are "
        "refused; `gateway transfers unclaimed --hours 0` lists them."
    ),
    "disk.full": (
        "A write failed for want of room. Purchases are refused, uncharged, until there is room."
    ),
    "disk.low": "The disk is near its floor (`free_mb`, `floor_mb`); under it nothing is sold.",
    "disk.well": "There is room on the disk again.",
    "disk.writable": "The database takes writes again.",
    "documents.cannot_read_pictures": "The parser has no OCR, so scanned pages give no text.",
    "draining": (
        "SIGTERM came: purchases get 503, everything else goes on until `tasks` attempts have "
        "ended."
    ),
    "drill.done": "The newest copy was restored for a try; what a restore now would forget.",
    "drill.failed": "The newest copy could not be restored: look at it before you need it.",
    "endpoint.below_cost": (
        "An endpoint is sold for less than it costs, as `sold` says: its table in the settings "
        "file has allow_loss = true, or its cost has changed while the gateway runs."
    ),
    "endpoint.off_sale": (
        "The vendor does not serve an endpoint's model, as `reason` says: it is not sold for "
        "`pause_s` seconds at least, and the vendor's other models are. A model that is gone needs "
        "you: name another one in the settings, or switch the endpoint off."
    ),
    "endpoint.on_sale": "An endpoint whose model was not served is sold again, to be tried.",
    "endpoint.paused": "The operator took an endpoint off sale; what runs is finished.",
    "endpoint.priced": "The operator set an endpoint's price, or took it back to the file's.",
    "endpoint.resumed": "The operator put an endpoint on sale again.",
    "events.forgotten": "Events were deleted after 30 days, because no plugin reads them.",
    "events.not_taken": (
        "A plugin failed to take events. They are kept, and it is tried again after `pause_s`."
    ),
    "facilitator.listing": (
        "The facilitator said what became of an endpoint's listing in its Bazaar."
    ),
    "facilitator.not_settled": (
        "The facilitator refused a settlement; the chain is asked what is true."
    ),
    "facilitator.refused": "The facilitator did not accept a request of the gateway's.",
    "gas.low": (
        "The settlement keys (`keys`) pay for fewer than 200 `settlements`, urgent under 20. "
        "Send ETH."
    ),
    "gas.well": "The settlement keys hold enough ETH again.",
    "heartbeat.not_heard": "GATEWAY_HEARTBEAT_URL did not answer as it should; it is asked again.",
    "job.not_stopped": (
        "A job that took too long could not be cancelled at the vendor; it may be billed."
    ),
    "job.odd_answer": f"A poll failed in an unexpected way and is repeated. Also {_VENDOR}.",
    "key.low": (
        "The refund key (`key`, `address`, `holds`) pays for fewer than 20 refunds; urgent at "
        "none. Send ETH."
    ),
    "key.well": "The refund key holds enough ETH again.",
    "leadership.changed": "Of several nodes this one begins, or ceases, to do what one does.",
    "leadership.not_given_up": "The lead could not be given up at the stop; it ends by itself.",
    "leadership.not_kept": "The lead could not be kept: the database did not answer. Another node "
    "leads after 15 seconds.",
    "limits.redis_answers": "Redis counts the requests of all nodes again.",
    "limits.redis_silent": (
        "The Redis of GATEWAY_LIMITS_URL fails or is slow, as `problem` says: each node counts a "
        "client's requests by itself, and one request in five seconds asks Redis again."
    ),
    "log.dropped": (
        "Standard output took no lines for a while: nobody read it, or its disk was full. So many "
        "`lines` were dropped, so that sales went on."
    ),
    "loop.blocked": (
        "A plugin, or the gateway, holds the event loop: every request waits. `frames` say where."
    ),
    "loop.released": "The event loop runs again.",
    "mcp.sold_not_shown": (
        "A purchase by MCP was paid, and its answer failed; the buyer asks by `get_task`."
    ),
    "metrics.failed": "The numbers for `/metrics` could not be read; the next scrape tries again.",
    "output.not_fetched": "A vendor's link to a result could not be downloaded; it is tried again.",
    "output.not_kept": "A result could not be written to disk or bucket; it is tried again.",
    "output.not_shown": (
        "A picture could not be read for an answer of MCP; the answer has the link only."
    ),
    "migration.waits": (
        "Something reads or changes the tables; a new release changes the schema when it has ended."
    ),
    "outputs.bucket_failed": (
        "The bucket refuses or is silent; outputs are kept on the disk meanwhile."
    ),
    "node.clock": (
        "This machine's clock is too far from the database's, as `problem` says: it works on "
        "nothing new until the clock is right, which is logged, too."
    ),
    "node.unfit": (
        "This process may not go on with the database, as `problem` says: it drains and ends with "
        "code 1, to be started again."
    ),
    "payment.chain_silent": (
        "The outcome of a settlement is not known yet: no RPC endpoint answers."
    ),
    "payment.driver_failed": "A fault while a payment was settled; the next sweep goes on with it.",
    "payment.fault_unseen": "A fault in a purchase whose buyer had hung up.",
    "payment.method_confused": (
        "A payment method answered neither Taken nor Refused; the payment stays open."
    ),
    "payment.method_missing": (
        "A payment stays open, because the plugin of its payment method is not installed."
    ),
    "payment.method_refused": "A payment method said that it will never take this payment.",
    "payment.method_silent": "A payment method failed or was silent; it is asked again.",
    "payment.not_sent": "The settler could not send a settlement; it is tried again.",
    "payment.open": "A settlement's outcome is open after its time; the sweep goes on with it.",
    "payment.receipt_failed": (
        "A way to pay failed to make its receipt; the buyer got the task without one."
    ),
    "payment.settled": (
        "The buyer's USDC arrived by this `transaction`, or the payment `method` took the money."
    ),
    "plugin.left_out": "A plugin failed to load, or takes what another one has; the rest is sold.",
    "provider.close_failed": "A provider failed while it was closed, at the end.",
    "provider.does_not_stop": (
        "A provider goes on after it was cancelled; the gateway no longer waits."
    ),
    "provider.off_sale": (
        "Its endpoints are not sold for `pause_s` seconds at least: `reason` has the vendor's "
        "status, code and words. A wrong key or an empty account needs you; all else mends "
        "itself."
    ),
    "provider.on_sale": "Its endpoints are sold again.",
    "provider.unwell": (
        "A provider's `health` failed at the start; its endpoints are sold all the same."
    ),
    "proxy.no_address": (
        "A request had no client's address in GATEWAY_CLIENT_IP_HEADER, so the proxy's own was "
        "counted: where all requests are so, all buyers share one limit. Told once."
    ),
    "refund.chain_silent": "A refund waits: no RPC endpoint answers.",
    "refund.failed": "The token refuses a refund for good. Decide anew: `gateway refunds list`.",
    "refund.not_advanced": "A fault while a refund was sent; the next sweep tries again.",
    "refund.paid": "A refund arrived by this `transaction`.",
    "refunds.not_sent": "Refunds on their way could not be sent again; the next sweep tries.",
    "refunds.room_changed": (
        "Refunds can be promised as automatic, or no longer: the refund key and the daily cap "
        "cover a price of up to `units` (10⁻⁶ USDC); 0: none."
    ),
    "request": (
        "One HTTP request was answered. `rule` is the route, never the address that was asked."
    ),
    "request.failed": "A fault in a route: the client got 500. Please report it.",
    "request.not_validated": (
        "A provider's own check of requests failed; the request was taken without it."
    ),
    "restore.done": "GATEWAY_RESTORE put a copy in the database's place, and the old one aside.",
    "restore.remembered": "GATEWAY_RESTORE names a copy that was restored before: nothing is done.",
    "retention.failed": "Old outputs could not be deleted now; it is tried again.",
    "retention.stuck": "The outputs of one task cannot be deleted.",
    "retention.swept": "The outputs of so many tasks were deleted after their time.",
    "retention.tidied": "So many files without a task were deleted.",
    "rpc.failed": (
        "An RPC endpoint (`endpoint`: its place in GATEWAY_RPC_URLS) did not answer properly."
    ),
    "setting.of_disabled_plugin": "Settings are set whose plugin is disabled: they do nothing.",
    "setting.unknown": "A variable resembles a setting and is none.",
    "settlement.key_can_pay": "One of several settlement keys can pay for gas again.",
    "settlement.batch": "A transaction of several payments was sent (GATEWAY_SETTLEMENT_BATCH).",
    "settlement.no_multicall": (
        "No Multicall3 answers at its address, so each payment is settled alone."
    ),
    "settlement.key_cannot_pay": "One of several settlement keys is out of ETH; the others go on.",
    "settlement.batch_burned": (
        "A batch was undone as a whole, since a payer's code used up its gas: `fee_wei` counts for "
        "the hour, and its payments are sent one by one."
    ),
    "settlement.not_judged": "Why a settlement failed could not be found out yet.",
    "settlement.not_ready": (
        "Something keeps payments from being taken: `obstacle` is `chain` (it does not answer), "
        "`settler` (mostly gas), `token`, `wallet` or `clock`, and `problem` says what to do. Once "
        "for each change."
    ),
    "settlement.ready": "That obstacle is gone.",
    "settlement.reverted": (
        "A settlement was mined and failed: gas was spent. `cause` may bar the payer."
    ),
    "started": "The gateway serves: what, where and on whose wallet.",
    "stop.drain_failed": (
        "A fault while the gateway stopped; what was not finished waits on the disk."
    ),
    "stopped": "The process has put everything down and ends.",
    "sweep.chain_silent": "A background look at the chain got no answer.",
    "sweep.failed": "A fault in background work, which is repeated.",
    "task.attempt_failed": (
        f"An attempt failed; what follows from it is logged next. Also {_VENDOR}."
    ),
    "task.completed": "The result is stored and shown to the buyer.",
    "task.failed": (
        "The task has failed for good, and its refund is due. `details` is the kind of reason."
    ),
    "task.later": "The task is tried again after `delay_s` seconds.",
    "tracing.failed": "A plugin that writes traces failed at a `span`; the work went on.",
    "unclaimed.failed": (
        "The search for transfers that bought nothing met a fault; the next look goes on."
    ),
    "wallet.is_contract": (
        "GATEWAY_WALLET has code: nothing is sold, because payments might be lost."
    ),
    "wallet.not_checked": (
        "Whether the wallet has code is not known yet; nothing is sold until then."
    ),
    "wake.failed": "A fault while this node listened to the others; it listens again in a second.",
    "wake.found": "This node hears of the others' tasks again.",
    "wake.lost": (
        "The connection on which this node hears of the others' tasks is lost: until it is back, "
        "the node looks for them, every second for who waits and every five to work and to tell."
    ),
    "wake.not_sent": "The others were not told of a task; they find it when they look.",
    "webhook.delivered": "A buyer's receiver took an event. Also `task`, `type`, `host`.",
    "webhook.dispatch_failed": "A fault while webhooks were sent; they are tried again.",
    "webhook.given_up": (
        "A buyer's receiver did not take an event after all attempts. Also `type`, `host`."
    ),
    "webhook.later": (
        "A buyer's receiver did not take an event; it comes again. Also `type`, `host`."
    ),
    "webhook.not_written": "What became of a webhook could not be written down; it may come twice.",
    "worker.dispatch_failed": "A fault while tasks were handed out; it is tried again.",
    "worker.extend_failed": "A task's lease could not be prolonged; it is tried again.",
    "worker.lane_failed": (
        "A fault in an attempt; the task is due again once its lease has run out."
    ),
    "worker.lease_lost": "Another attempt has the task by now; this one stops.",
    "worker.not_given_back": (
        "A task could not be given back; it is due once its lease has run out."
    ),
    "worker.not_marked": "A submit was not sent, because it could not be written down first.",
}
