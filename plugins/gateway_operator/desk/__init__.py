"""What an operator may see and do, over the open parts of a gateway. No HTTP and no click.

Every function takes a `Desk`, and an `Actor` where it acts, and returns attrs classes. Page, JSON
and command line only print them.
"""
