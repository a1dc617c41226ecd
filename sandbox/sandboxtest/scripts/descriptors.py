# argv: how many descriptors were given; the limit.
given, limit = int(sys.argv[1]), int(sys.argv[2])
for fd in range(given, 65536):
    refused("descriptor %d is open" % fd, lambda: os.fstat(fd), errno.EBADF)
    refused("descriptor %d takes bytes" % fd, lambda: os.write(fd, b"x"), errno.EBADF)
opened = []
try:
    while len(opened) < 100000:
        opened.append(os.open("/dev/null", os.O_RDONLY))
except OSError as e:
    holds("failed with %s" % e, e.errno == errno.EMFILE)
holds("%d descriptors" % len(opened), len(opened) + given == limit)
for fd in opened:
    os.close(fd)
verdict()
