"""The books: what was earned, given back and spent, and whether the chain says the same.

No HTTP and no click: page, JSON and `gateway books` print what is returned here.
"""
