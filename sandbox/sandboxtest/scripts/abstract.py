# argv: the name of an abstract unix socket that another container listens on.
def dial():
    with socket.socket(socket.AF_UNIX) as s:
        s.connect("\0" + sys.argv[1])


refused("abstract socket of another container", dial)
verdict()
