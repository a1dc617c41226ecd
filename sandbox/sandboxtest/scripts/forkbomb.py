# argv: the limit. The children stay; the container's end has to take them along.
children = 0
try:
    while children <= int(sys.argv[1]):
        if os.fork() == 0:
            while True:
                time.sleep(1000)
        children += 1
except OSError as e:
    holds("failed with %s" % e, e.errno == errno.EAGAIN)
holds("%d children" % children, children < int(sys.argv[1]))
import threading
try:
    threading.Thread(target=lambda: None).start()
    broken.append("started a thread above the limit")
except RuntimeError:
    pass
verdict()
