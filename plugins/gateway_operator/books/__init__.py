"""The books: income, refunds and costs, and their comparison with the chain. No HTTP, no click."""
