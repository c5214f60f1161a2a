"""Documents made from a session's state."""
