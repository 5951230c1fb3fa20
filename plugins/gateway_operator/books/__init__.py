"""The books: income, refunds and costs, and their comparison with the chain.

Without HTTP and click: page, API and `gateway books` render these results.
"""
