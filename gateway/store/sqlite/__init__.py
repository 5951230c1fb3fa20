"""SQLite: connections, the single writer, file size, copies and migrations.

The transactions themselves are one folder up; both databases share them.
"""
