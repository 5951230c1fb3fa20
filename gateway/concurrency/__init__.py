"""Tasks, threads and timers of the event loop."""
