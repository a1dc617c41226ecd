# argv: folder and bytes, twice.
def fill(folder, limit):
    written = 0
    with open(folder + "/big", "wb", buffering=0) as f:
        try:
            while written <= limit:
                written += f.write(b"x" * 65536)
        except OSError as e:
            holds("%s: %s" % (folder, e), e.errno == errno.ENOSPC)
    holds("%s took %d bytes of %d" % (folder, written, limit), written <= limit)
    os.unlink(folder + "/big")
    files = 0
    try:
        while files < limit:
            os.close(os.open("%s/%d" % (folder, files), os.O_CREAT | os.O_WRONLY))
            files += 1
    except OSError as e:
        holds("%s: %s" % (folder, e), e.errno == errno.ENOSPC)
    holds("%s took %d empty files" % (folder, files), files < limit)


fill(sys.argv[1], int(sys.argv[2]))
fill(sys.argv[3], int(sys.argv[4]))
verdict()
