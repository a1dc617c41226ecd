"""The handler that rehearsals load."""


def echo(event):  # type: ignore[no-untyped-def]
    """Answer the event."""
    return event
