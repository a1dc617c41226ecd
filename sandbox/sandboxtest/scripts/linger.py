# Leaves processes behind in every way there is; each holds descriptor 3 open.
def daemon():
    if os.fork() == 0:
        os.setsid()
        if os.fork() == 0:
            for s in (signal.SIGTERM, signal.SIGHUP, signal.SIGINT):
                signal.signal(s, signal.SIG_IGN)
            os.write(3, b"d")
            while True:
                time.sleep(1000)
        os._exit(0)


daemon()
if os.fork() == 0:  # same session, same group
    os.write(3, b"d")
    while True:
        time.sleep(1000)
if os.fork() == 0:  # stopped
    os.write(3, b"d")
    os.kill(os.getpid(), signal.SIGSTOP)
print("HELD", flush=True)
os._exit(0)
