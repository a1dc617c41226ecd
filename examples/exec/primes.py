"""Functions to run with `hearth exec`: the code travels with the call."""


def count(limit):
    """Count the primes below limit, and say how it goes."""
    sieve = bytearray([1]) * limit
    for n in range(2, int(limit**0.5) + 1):
        if sieve[n]:
            sieve[n * n :: n] = bytes(len(range(n * n, limit, n)))
            print("crossed out the multiples of", n)
    return sum(sieve[2:])


calls = 0


def counter():
    """Count the calls of one session."""
    global calls
    calls += 1
    return calls
