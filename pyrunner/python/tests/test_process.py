"""What touches the process: each test runs in a forked child of its own, and the
child's status says how it went."""

import gc
import os
import random
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
import traceback
import unittest
import uuid

from hearth_pyrunner import baseline, birth, channel, descriptors, framing, hugepages, message, process, rehearsal, reseed, stdio, surroundings


def forked(test):
    """Run a test method in a child."""

    def run(self):
        sys.stdout.flush()
        sys.stderr.flush()
        pid = os.fork()
        if pid == 0:
            status = 1
            try:
                test(self)
                status = 0
            except BaseException:
                os.write(2, traceback.format_exc().encode())
            finally:
                process.end_children()
                os._exit(status)
        self.assertEqual(os.waitpid(pid, 0)[1], 0)

    run.__name__ = test.__name__
    return run


class Children(unittest.TestCase):
    @forked
    def test_none(self):
        self.assertFalse(process.has_children())
        self.assertEqual(process.end_children(), [])

    @forked
    def test_daemons_fall_to_us_and_are_ended(self):
        process.adopt_orphans()
        ready, write = os.pipe()
        script = "trap '' TERM HUP; setsid sh -c 'setsid sleep 1000 & echo x; sleep 1000' & setsid sleep 1000 & wait"
        subprocess.Popen(["sh", "-c", script], stdout=write)
        os.close(write)
        self.assertEqual(os.read(ready, 2), b"x\n")
        self.assertTrue(process.has_children())
        self.assertGreaterEqual(len(process.end_children()), 3)
        self.assertFalse(process.has_children())
        self.assertEqual(os.read(ready, 1), b"")  # nobody holds the other end

    @forked
    def test_the_spared_live(self):
        one, two = (subprocess.Popen(["sleep", "1000"]) for _ in range(2))
        (ended,) = process.end_children({one.pid})
        self.assertEqual(ended.split()[0], str(two.pid))
        self.assertIsNone(one.poll())
        process.end_children()

    @forked
    def test_a_zombie_and_a_stopped_child(self):
        subprocess.Popen(["true"])
        stopped = subprocess.Popen(["sleep", "1000"])
        os.kill(stopped.pid, signal.SIGSTOP)
        process.end_children()
        self.assertFalse(process.has_children())

    @forked
    def test_walk_finds_what_the_children_files_find(self):
        children = sorted(subprocess.Popen(["sleep", "1000"]).pid for _ in range(3))
        self.assertEqual(sorted(process._children()), children)
        self.assertEqual(sorted(process._children_by_walk()), children)
        process.end_children()

    @forked
    def test_threads_are_counted(self):
        go = threading.Event()
        self.assertEqual(process.threads(), 1)
        thread = threading.Thread(target=go.wait)
        thread.start()
        self.assertEqual(process.threads(), 2)
        go.set()
        thread.join()


class Descriptors(unittest.TestCase):
    @forked
    def test_raised_and_known_by_what_they_are(self):
        low, other = os.pipe()
        was = descriptors.identity(low)
        high = descriptors.raise_high(low)
        self.assertGreaterEqual(high, 24)
        self.assertFalse(os.get_inheritable(high))
        self.assertTrue(descriptors.same(high, was))
        os.dup2(os.open("/dev/null", os.O_RDONLY), high)
        self.assertFalse(descriptors.same(high, was))
        os.close(high)
        self.assertFalse(descriptors.same(high, was))

    @forked
    def test_a_small_table_is_enough(self):
        import resource

        resource.setrlimit(resource.RLIMIT_NOFILE, (64, 64))
        self.assertIn(descriptors.raise_high(os.open("/dev/null", os.O_RDONLY)), range(24, 64))

    @forked
    def test_listing_and_closing(self):
        descriptors.close_all_but([])
        self.assertEqual(descriptors.listing([]), [])
        kept = os.open("/dev/null", os.O_RDONLY)
        dropped = os.open("/dev/zero", os.O_RDONLY)
        self.assertEqual(descriptors.listing([kept]), [f"{dropped} /dev/zero"])
        descriptors.close_all_but([kept])
        self.assertEqual(descriptors.listing([]), [f"{kept} /dev/null"])


class Channels(unittest.TestCase):
    @forked
    def test_a_replaced_socket_is_not_written_to(self):
        ours, theirs = socket.socketpair()
        conn = channel.Channel(theirs.detach())
        conn.send(message.READY, 7)
        ours.settimeout(10)
        self.assertEqual(len(ours.recv(1000)), 8 + 1 + 12 + 8)
        bait, hook = socket.socketpair()
        os.dup2(hook.fileno(), conn.fileno())
        with self.assertRaises(channel.Gone):
            conn.send(message.READY, 7)
        os.close(conn.fileno())
        with self.assertRaises(channel.Gone):
            conn.send(message.READY, 7)
        bait.setblocking(False)
        with self.assertRaises(BlockingIOError):
            bait.recv(1)

    @forked
    def test_a_descriptor_comes_along(self):
        ours, theirs = socket.socketpair()
        conn = channel.ControlChannel(theirs.detach())
        file = os.open("/dev/null", os.O_RDONLY)
        socket.send_fds(ours, [len(raw := message.pack(2)).to_bytes(8, "big") + raw + bytes(8)], [file])
        self.assertEqual(conn.receive(), (2, []))
        self.assertEqual(os.readlink(f"/proc/self/fd/{conn.take_descriptor()}"), "/dev/null")
        with self.assertRaises(message.Malformed):
            conn.take_descriptor()
        ours.close()
        with self.assertRaises(channel.Closed):
            conn.receive()


class Baselines(unittest.TestCase):
    @forked
    def test_everything_is_put_back(self):
        os.chdir("/tmp")
        os.environ["KEPT"] = "1"
        signal.signal(signal.SIGUSR1, lambda *_: None)
        before = self.state()
        base = baseline.Baseline()
        os.chdir("/")
        os.umask(0)
        os.environ.clear()
        os.environ["NEW"] = "1"
        signal.signal(signal.SIGUSR1, signal.SIG_IGN)
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGUSR2})
        signal.alarm(100)
        sys.setrecursionlimit(5000)
        gc.disable()
        sys.setprofile(lambda *_: None)
        base.restore()
        self.assertEqual(self.state(), before)
        os._exit(0)

    def state(self):
        mask = os.umask(0)
        os.umask(mask)
        handlers = [signal.getsignal(n) for n in (signal.SIGUSR1, signal.SIGTERM)]
        blocked = signal.pthread_sigmask(signal.SIG_BLOCK, ())
        settings = sys.getrecursionlimit(), gc.isenabled(), sys.getprofile(), signal.getitimer(signal.ITIMER_REAL)
        return os.getcwd(), mask, dict(os.environ), handlers, blocked, settings

    @forked
    def test_a_removed_folder_does_not_stop_the_rest(self):
        folder = tempfile.mkdtemp()
        os.chdir(folder)
        base = baseline.Baseline()
        os.chdir("/")
        os.rmdir(folder)
        os.environ["NEW"] = "1"
        base.restore()
        self.assertNotIn("NEW", os.environ)


class Streams(unittest.TestCase):
    @forked
    def test_closed_and_replaced_streams_come_back(self):
        read, write = os.pipe()
        os.dup2(write, 1)
        streams = stdio.Streams()
        for spoil in (
            lambda: os.close(1),
            lambda: sys.stdout.close(),
            lambda: os.dup2(os.open("/dev/null", os.O_WRONLY), 1),
            lambda: setattr(sys, "stdout", None),
            lambda: os.set_blocking(1, False),
            lambda: os.closerange(0, 3),
        ):
            spoil()
            streams.flush()
            streams.restore()
            print("here")
            self.assertEqual(os.read(read, 100), b"here\n")
            self.assertTrue(os.get_blocking(1))

    @forked
    def test_any_text_can_be_printed(self):
        read, write = os.pipe()
        os.dup2(write, 1)
        streams = stdio.Streams()
        print("ü \ud800", end="")
        streams.flush()
        self.assertEqual(os.read(read, 100), "ü \\ud800".encode())


class Reseeding(unittest.TestCase):
    def test_siblings_differ(self):
        random.seed(1)
        uuid.uuid1()
        seen = set()
        for _ in range(50):
            read, write = os.pipe()
            pid = os.fork()
            if pid == 0:
                reseed.reseed()
                os.write(write, f"{random.random()} {uuid.uuid4()} {os.path.basename(tempfile.mktemp())}".encode())
                os._exit(0)
            os.close(write)
            with open(read, encoding="ascii") as answer:
                seen.update(answer.read().split())
            os.waitpid(pid, 0)
        self.assertEqual(len(seen), 150)

    def test_a_restored_process_differs_too(self):
        random.seed(1)
        state = random.getstate()
        reseed.reseed()
        first = random.random()
        random.setstate(state)  # as a checkpoint would
        reseed.reseed()
        self.assertNotEqual(random.random(), first)


class Parents(unittest.TestCase):
    def test_a_child_dies_with_its_parent(self):
        read, write = os.pipe()
        parent = os.fork()
        if parent == 0:
            if os.fork() == 0:
                process.die_with(os.getppid())
                os.write(write, b"x")
                time.sleep(1000)
            time.sleep(1000)
        os.close(write)
        self.assertEqual(os.read(read, 1), b"x")
        os.kill(parent, signal.SIGKILL)
        os.waitpid(parent, 0)
        self.assertEqual(os.read(read, 1), b"")  # both ends are closed: the child is gone
        os.close(read)


class Births(unittest.TestCase):
    @forked
    def test_a_sibling_is_our_parents(self):
        read, write = os.pipe()
        told = read_end, write_end = os.pipe()
        middle = os.fork()
        if middle == 0:
            pid = birth.Forks().fork(birth.SIBLING)
            if pid == 0:
                os.write(write, str(os.getppid()).encode())
                os._exit(7)
            os.write(write_end, str(pid).encode())
            os._exit(0)
        os.waitpid(middle, 0)
        pid = int(os.read(read_end, 100))
        self.assertEqual(os.read(read, 100), str(os.getpid()).encode())
        self.assertEqual(os.waitpid(pid, 0), (pid, 7 << 8))
        for fd in (read, write, *told):
            os.close(fd)

    @forked
    def test_what_modules_register_is_done(self):
        forks = birth.Forks()
        done = []
        os.register_at_fork(after_in_child=lambda: done.append("too early"))
        forks.begin()
        for name in "ab":
            os.register_at_fork(
                before=lambda name=name: done.append("before " + name),
                after_in_child=lambda name=name: done.append("child " + name),
                after_in_parent=lambda name=name: done.append("parent " + name),
            )
        original, birth._CLONE_NEWPID = birth._CLONE_NEWPID, 0  # which needs rights
        for kin in (birth.CHILD, birth.FIRST):
            del done[:]
            read, write = os.pipe()
            pid = forks.fork(kin)
            if pid == 0:
                os.write(write, ", ".join(done).encode())
                os._exit(0)
            self.assertEqual(os.read(read, 1000), b"before b, before a, child a, child b")
            self.assertEqual(done, ["before b", "before a", "parent a", "parent b"])
        birth._CLONE_NEWPID = original
        del done[:]
        pid = os.fork()  # as for everybody else
        if pid == 0:
            os._exit(0 if done[-2:] == ["child a", "child b"] else 1)
        self.assertEqual(os.waitpid(pid, 0)[1], 0)


class Rehearsals(unittest.TestCase):
    @forked
    def test_a_rehearsal_leaves_nothing(self):
        rehearsal.rehearse()  # what it caches is there then

        def state():
            return (
                os.getcwd(), dict(os.environ), time.tzname, sorted(sys.modules), sys.path[:], sys.argv, sys.dont_write_bytecode,
                id(sys.stdout), id(sys.__stderr__), sorted(sys.path_importer_cache), descriptors.listing([]),
            )

        os.chdir("/")
        os.environ["TZ"] = "XYZ3"
        time.tzset()
        before = state()
        rehearsal.rehearse()
        self.assertEqual(state(), before)
        self.assertNotIn("echo", sys.modules)


class Surroundings(unittest.TestCase):
    @forked
    def test_the_whole_environment_is_replaced(self):
        os.environ["LOST"] = "1"
        os.environ["TZ"] = "UTC"
        time.tzset()
        surroundings.take_environment([b"A=b=c", b"EMPTY=", b"TZ=XYZ3", "Ü=ü".encode()])
        self.assertEqual(dict(os.environ), {"A": "b=c", "EMPTY": "", "TZ": "XYZ3", "Ü": "ü"})
        self.assertEqual(time.tzname[0], "XYZ")
        self.assertEqual(subprocess.run(["/bin/sh", "-c", "echo $A$LOST"], capture_output=True).stdout, b"b=c\n")
        surroundings.take_environment([])
        self.assertEqual((dict(os.environ), time.tzname[0]), ({}, "UTC"))

    @forked
    def test_streams_and_folder(self):
        read, write = os.pipe()
        surroundings.take("/", [], [os.dup(write), write])
        os.write(1, b"out ")
        os.write(2, b"err")
        self.assertEqual((os.read(read, 100), os.getcwd()), (b"out err", "/"))
        with self.assertRaises(OSError):
            os.fstat(write)


class HugePages(unittest.TestCase):
    @forked
    def test_memory_stays_what_it_is(self):
        kept = [bytes([n]) * 5000 for n in range(256) for _ in range(8)]
        self.assertGreaterEqual(hugepages.collapse(), 0)
        self.assertTrue(all(piece == piece[:1] * 5000 for piece in kept))


class OneNumber(unittest.TestCase):
    @forked
    def test_tell_is_send(self):
        ours, theirs = socket.socketpair()
        conn = channel.ControlChannel(theirs.detach())
        for number in (0, 7, -1, 1 << 40):
            conn.tell(message.FORKED, number)
            self.assertEqual(ours.recv(1000), framing.encode(message.pack(message.FORKED, number)))
