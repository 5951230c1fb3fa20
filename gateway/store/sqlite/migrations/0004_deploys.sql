-- Whether the settlement deploys the payer's smart wallet (ERC-6492), which costs us more gas: a day's
-- deployments are counted. An earlier release recorded none.
ALTER TABLE payments ADD COLUMN deploys INTEGER NOT NULL DEFAULT 0;
CREATE INDEX payments_deploying ON payments (created_at) WHERE deploys = 1;

INSERT INTO meta (key, value) VALUES ('readable_by', '1')
    ON CONFLICT (key) DO UPDATE SET value = excluded.value;
