"""Greets whoever the payload names."""


def hello(event):
    name = (event or {}).get("name", "world")
    print(f"greeting {name}")  # goes to the Run's log, never into the answer
    return {"greeting": f"Hello, {name}!"}
