-- The hash of the request as the buyer sent it, without the endpoint's defaults: a repeat is known
-- by it after the endpoint has changed. NULL: an earlier release recorded the payment.
ALTER TABLE payments ADD COLUMN sent_hash TEXT;

INSERT INTO meta (key, value) VALUES ('readable_by', '1')
    ON CONFLICT (key) DO UPDATE SET value = excluded.value;
