"""Measures submit to result of a ProcessPoolExecutor and of Dask: SECONDS CALLERS."""

import multiprocessing
import sys
import threading
import time
from concurrent.futures import ProcessPoolExecutor


def empty():
    return 1


def imports():
    import numpy, pandas  # noqa: E401, F401

    return 1


def measure(name, submit, seconds, callers):
    for function in (empty, imports):
        for _ in range(2 * callers):
            submit(function)  # every process has done its imports then
        took = []

        def call():
            until = time.perf_counter() + seconds
            mine = []
            while (begin := time.perf_counter()) < until:
                assert submit(function) == 1
                mine.append(time.perf_counter() - begin)
            took.extend(mine)

        threads = [threading.Thread(target=call) for _ in range(callers)]
        begin = time.perf_counter()
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        elapsed = time.perf_counter() - begin
        took.sort()
        p50, p99 = took[len(took) // 2], took[min(len(took) * 99 // 100, len(took) - 1)]
        print(f"{name:22} {function.__name__:8} {callers:3} callers  p50 {p50 * 1e3:8.2f} ms  p99 {p99 * 1e3:8.2f} ms  {len(took) / elapsed:6.0f}/s", flush=True)


def main(seconds, callers):
    cores = multiprocessing.cpu_count()
    # The script has no file that a spawned process could import it from.
    with ProcessPoolExecutor(cores, mp_context=multiprocessing.get_context("fork")) as pool:
        for n in callers:
            measure("ProcessPoolExecutor", lambda f: pool.submit(f).result(), seconds, n)
    from distributed import Client

    with Client(n_workers=cores, threads_per_worker=1, dashboard_address=None) as client:
        for n in callers:
            measure("Dask distributed", lambda f: client.submit(f, pure=False).result(), seconds, n)


if __name__ == "__main__":
    main(float(sys.argv[1]), [int(n) for n in sys.argv[2].split(",")])
