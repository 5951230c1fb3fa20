"""The gateway's metrics for Prometheus; prometheus_client is imported only where they are on.

What must be right after a restart (sales, money, states) is read from the database at each scrape.
Rates and times of this process are counted by `instruments`.
"""
