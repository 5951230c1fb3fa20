-- Payments by further methods, such as vouchers: the core keeps their proofs and cannot read them.
-- Everything here is added: the release before this one still runs on the database.

-- The method that took the money; NULL: USDC on the chain. Such a payment has flow 'direct', because
-- the release before reads only the flows it knows. There it stays open, and is sent nowhere.
ALTER TABLE payments ADD COLUMN method TEXT;
CREATE INDEX payments_open_methods ON payments (id)
    WHERE method IS NOT NULL AND state IN ('reserved', 'settling');

CREATE TABLE method_proofs (
    payment_id INTEGER PRIMARY KEY REFERENCES payments (id),
    claim TEXT NOT NULL UNIQUE,        -- <method>:<key>; the same is in claims
    proof BLOB NOT NULL CHECK (length(proof) BETWEEN 1 AND 16384),
    value_units INTEGER NOT NULL CHECK (value_units > 0),
    payer TEXT NOT NULL,               -- who pays, in the method's words
    refund_to TEXT,                    -- the address that the proof names for a refund in USDC
    answer TEXT                        -- the settler's receipt, or why it refused
) STRICT;
-- The operator's pages find the payments of one payer by it.
CREATE INDEX method_proofs_payer ON method_proofs (payer);

-- Nobody proved an address, so no refund is sent without the operator; the zero address is none.
CREATE TRIGGER methods_begin_reserved BEFORE INSERT ON payments
WHEN NEW.method IS NOT NULL AND NOT (
    NEW.flow = 'direct' AND NEW.state = 'reserved' AND NEW.payer_proven = 0
    AND NEW.payer = '0x0000000000000000000000000000000000000000')
BEGIN
    SELECT RAISE(ABORT, 'a payment by a method begins reserved, without an address');
END;

CREATE TRIGGER methods_do_not_change BEFORE UPDATE OF method ON payments
WHEN OLD.method IS NOT NEW.method
BEGIN
    SELECT RAISE(ABORT, 'the method of a payment never changes');
END;

-- A settler is asked only after the payment is written down as settling.
CREATE TRIGGER methods_legal BEFORE UPDATE OF state ON payments
WHEN NEW.method IS NOT NULL AND OLD.state = 'reserved' AND NEW.state = 'settled'
BEGIN
    SELECT RAISE(ABORT, 'a payment by a method was settled before it was settling');
END;

-- What paid is the whole proof, and the proof is of this payment's own claim.
CREATE TRIGGER methods_paid BEFORE UPDATE OF state ON payments
WHEN NEW.method IS NOT NULL AND OLD.state != 'settled' AND NEW.state = 'settled' AND NOT EXISTS (
    SELECT 1 FROM method_proofs m JOIN claims c ON c.key = m.claim
    WHERE m.payment_id = NEW.id AND c.payment_id = NEW.id AND m.value_units = NEW.paid_units)
BEGIN
    SELECT RAISE(ABORT, 'a payment by a method without its own claim');
END;

CREATE TRIGGER method_proofs_do_not_change BEFORE UPDATE ON method_proofs
WHEN OLD.answer IS NOT NULL OR NEW.answer IS NULL
    OR OLD.payment_id != NEW.payment_id OR OLD.claim != NEW.claim OR OLD.proof != NEW.proof
    OR OLD.value_units != NEW.value_units OR OLD.payer != NEW.payer
    OR OLD.refund_to IS NOT NEW.refund_to
BEGIN
    SELECT RAISE(ABORT, 'a proof is never changed, and is answered once');
END;

CREATE TRIGGER method_proofs_are_kept BEFORE DELETE ON method_proofs
BEGIN
    SELECT RAISE(ABORT, 'a proof is never deleted');
END;

-- The oldest schema whose gateway may run on this one. Every file names it anew.
INSERT INTO meta (key, value) VALUES ('readable_by', '5')
ON CONFLICT (key) DO UPDATE SET value = excluded.value;
