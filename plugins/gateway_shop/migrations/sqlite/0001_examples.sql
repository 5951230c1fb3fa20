-- One result per endpoint, which the pages show. It is the operator's, not a buyer's.
CREATE TABLE shop_examples (
    slug TEXT PRIMARY KEY,
    model TEXT NOT NULL,
    prompt TEXT NOT NULL,
    made_at REAL NOT NULL,
    text TEXT,
    width INTEGER,                      -- of the picture `large`
    height INTEGER,
    digest TEXT,                        -- of the picture
    large BLOB,                         -- WebP, as `card` and `thumb`
    card BLOB,
    thumb BLOB,
    CHECK ((text IS NULL) = (large IS NOT NULL))
) STRICT;
