"""Raises where the payload makes it: the caller sees the type and the traceback."""


def divide(event):
    return {"quotient": event["a"] / event["b"]}
