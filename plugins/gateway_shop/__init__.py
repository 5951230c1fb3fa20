"""Pages for people: shop, product, code samples, brand."""
