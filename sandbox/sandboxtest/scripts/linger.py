# Leaves processes behind in every way there is; each holds descriptor 3 open. They
# are there, and have said so, before the program ends.
heard, told = os.pipe()


def linger():
    os.write(3, b"d")
    os.write(told, b"d")
    while True:
        time.sleep(1000)


if os.fork() == 0:  # a daemon
    os.setsid()
    if os.fork() == 0:
        for s in (signal.SIGTERM, signal.SIGHUP, signal.SIGINT):
            signal.signal(s, signal.SIG_IGN)
        linger()
    os._exit(0)
if os.fork() == 0:  # same session, same group
    linger()
if os.fork() == 0:  # stopped
    os.write(3, b"d")
    os.write(told, b"d")
    os.kill(os.getpid(), signal.SIGSTOP)
for _ in range(3):
    os.read(heard, 1)
print("HELD", flush=True)
os._exit(0)
