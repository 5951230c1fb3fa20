"""Prometheus metrics; prometheus_client is imported only if they are on.

Sales, money and states must survive a restart, so each scrape reads them from the database.
`instruments` counts rates and times of this process.
"""
