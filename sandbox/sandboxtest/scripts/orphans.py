# Pid 1 reaps: orphans of every kind leave no zombie.
for _ in range(50):
    if os.fork() == 0:
        if os.fork() == 0:
            os._exit(0)
        os._exit(0)
    os.wait()
deadline = time.monotonic() + 10
while time.monotonic() < deadline:
    left = [n for n in os.listdir("/proc") if n.isdigit()]
    if len(left) <= 2:
        break
holds("processes %s" % left, len(left) <= 2)
verdict()
