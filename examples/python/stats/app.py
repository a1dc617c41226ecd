"""Describes a list of numbers with numpy, imported once when the Run is created."""

try:
    import numpy
except ImportError:
    numpy = None


def describe(event):
    values = event["values"]
    if numpy is None:
        return {"numpy": False, "hint": "numpy is not installed for the interpreter of this Runtime Server", "count": len(values)}
    data = numpy.asarray(values, dtype=float)
    return {"numpy": True, "count": int(data.size), "mean": float(data.mean()), "std": float(data.std())}
