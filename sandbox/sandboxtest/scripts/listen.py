# argv: the name of an abstract unix socket. Listens until stdin ends.
s = socket.socket(socket.AF_UNIX)
s.bind("\0" + sys.argv[1])
s.listen()
print("ready", flush=True)
sys.stdin.read()
