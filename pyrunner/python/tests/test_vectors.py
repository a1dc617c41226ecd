"""The golden vectors that the Go side writes and checks too."""

import json
import os
import unittest

from hearth_pyrunner import framing, message

TESTDATA = os.path.join(os.path.dirname(__file__), "..", "..", "testdata")


def vectors(name):
    with open(os.path.join(TESTDATA, name), encoding="utf-8") as file:
        return json.load(file)


def source(stream, piece):
    """A recv_into that fills at most piece bytes at a time."""
    rest = memoryview(stream)

    def recv_into(view):
        nonlocal rest
        size = min(piece, len(view), len(rest))
        view[:size] = rest[:size]
        rest = rest[size:]
        return size

    return recv_into


class Frames(unittest.TestCase):
    def test_vectors(self):
        errors = {"truncated": framing.Truncated, "chunk": framing.TooLarge, "message": framing.TooLarge}
        for vector in vectors("frames.json"):
            stream = bytes.fromhex(vector["stream"])
            for piece in (1, 3, 1 << 20):
                with self.subTest(vector["name"], piece=piece):
                    reader = framing.Reader(source(stream, piece), vector.get("limit") or framing.MAX_MESSAGE)
                    if "error" in vector:
                        with self.assertRaises(errors[vector["error"]]):
                            reader.read()
                        continue
                    want = bytes.fromhex(vector["message"])
                    self.assertEqual(reader.read(), want)
                    self.assertIsNone(reader.read())
                    self.assertEqual(framing.encode(want, vector["chunk"]), stream)

    def test_several_messages_in_one_read(self):
        stream = b"".join(framing.encode(m) for m in (b"a", b"", b"bc" * 50_000, b"d"))
        for piece in (1000, 1 << 20):
            reader = framing.Reader(source(stream, piece))
            self.assertEqual([reader.read() for _ in range(5)], [b"a", b"", b"bc" * 50_000, b"d", None])

    def test_write_agrees_with_encode(self):
        for size in (0, 1, 64 << 10, (64 << 10) + 1, 5 << 20):
            wrote = []
            framing.write(lambda data: wrote.append(bytes(data)), b"x" * size)
            self.assertEqual(b"".join(wrote), framing.encode(b"x" * size))
            self.assertEqual(len(wrote) == 1, size <= 64 << 10)

    def test_a_claim_alone_allocates_little(self):
        taken = []

        def recv_into(view):
            taken.append(len(view))
            if len(taken) == 1:
                view[:8] = framing.MAX_CHUNK.to_bytes(8, "big")
                return 8
            return 0

        with self.assertRaises(framing.Truncated):
            framing.Reader(recv_into).read()
        self.assertLessEqual(max(taken), 4 << 20)


class Messages(unittest.TestCase):
    def test_vectors(self):
        for vector in vectors("messages.json"):
            with self.subTest(vector["name"]):
                packed = bytes.fromhex(vector["packed"])
                if vector.get("bad"):
                    with self.assertRaises(message.Malformed):
                        message.unpack(packed)
                    continue
                fields = [bytes.fromhex(f) if isinstance(f, str) else f for f in vector["fields"] or []]
                self.assertEqual(message.pack(vector["kind"], *fields), packed)
                kind, got = message.unpack(packed)
                got = [message.number(g) if isinstance(f, int) else g for f, g in zip(fields, got)]
                self.assertEqual((kind, got), (vector["kind"], fields))

    def test_texts(self):
        kind, fields = message.unpack(message.pack(7, "ü\ud800"))
        self.assertEqual(message.text(fields[0]), "ü\\ud800")
        self.assertEqual(message.text(b"\xff"), "\\xff")
        with self.assertRaises(message.Malformed):
            message.number(b"1234567")
