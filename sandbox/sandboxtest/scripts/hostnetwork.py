# argv: the port of a TCP listener and the name of an abstract unix socket of the host.
with socket.create_connection(("127.0.0.1", int(sys.argv[1])), 5) as s:
    holds("the host's network was asked for and is not there", s.send(b"x") == 1)
holds("localhost has no address", socket.getaddrinfo("localhost", 80))
holds("no resolver", not os.path.exists("/etc/resolv.conf") or open("/etc/resolv.conf").read() is not None)


def dial():
    with socket.socket(socket.AF_UNIX) as s:
        s.connect("\0" + sys.argv[2])


refused("abstract socket of the host", dial)
for family in (16, 17):  # netlink is there for the resolver, raw packets are not
    if family == 17:
        refused("packet socket", lambda: socket.socket(family, socket.SOCK_RAW), errno.EAFNOSUPPORT)
    else:
        socket.socket(family, socket.SOCK_RAW, 0).close()
refused("raw socket", lambda: socket.socket(socket.AF_INET, socket.SOCK_RAW, 1), errno.EPERM)
verdict()
