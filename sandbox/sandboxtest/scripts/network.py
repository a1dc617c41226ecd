# argv: the port of a TCP listener and the name of an abstract unix socket of the host.
port, name = int(sys.argv[1]), sys.argv[2]


def dial(family, address, kind=socket.SOCK_STREAM):
    with socket.socket(family, kind) as s:
        s.settimeout(2)
        s.connect(address)
        return s.send(b"x")


refused("127.0.0.1", lambda: dial(socket.AF_INET, ("127.0.0.1", port)))
refused("::1", lambda: dial(socket.AF_INET6, ("::1", port)))
refused("metadata service", lambda: dial(socket.AF_INET, ("169.254.169.254", 80)))
refused("udp out", lambda: dial(socket.AF_INET, ("192.0.2.1", 53), socket.SOCK_DGRAM))
refused("abstract socket of the host", lambda: dial(socket.AF_UNIX, "\0" + name))
devices = [line.split(":")[0].strip() for line in open("/proc/net/dev") if ":" in line]
holds("devices %s" % devices, set(devices) <= {"lo", "sit0", "tunl0", "ip6tnl0", "gre0", "gretap0", "erspan0", "ip_vti0", "ip6_vti0", "ip6gre0"})
verdict()
