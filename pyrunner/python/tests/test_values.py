"""JSON, outputs and texts: pure functions."""

import math
import unittest

from hearth_pyrunner import jsoncodec, message, outputs, texts


class Json(unittest.TestCase):
    def test_what_is_refused(self):
        for payload, words in {
            b"": "empty",
            b"\xff": "not UTF-8: byte 0 is 0xff",
            b"[NaN]": "NaN is no JSON",
            b"-Infinity": "-Infinity is no JSON",
            b"{]": "at line 1 column 2",
            b"\xef\xbb\xbf1": "not JSON",
            b"'a'": "not JSON",
            b"9" * 5000: "cannot be read",
            b"[" * 200_000: "nested too deeply",
        }.items():
            with self.subTest(payload[:20]), self.assertRaisesRegex(jsoncodec.Invalid, words):
                jsoncodec.decode(payload)

    def test_round_trips(self):
        for payload in (b'{"a":[1,2.5,null,true]}', '"ü€😀"'.encode(), rb'"\ud800"', b"1" * 4000, rb'"\u0000"'):
            self.assertEqual(jsoncodec.encode(jsoncodec.decode(payload)), payload)

    def test_defined_oddities(self):
        self.assertEqual(jsoncodec.decode(b'{"a":1,"a":2}'), {"a": 2})
        self.assertTrue(math.isinf(jsoncodec.decode(b"1e999")))

    def test_what_cannot_be_carried(self):
        loop = []
        loop.append(loop)
        for value in (math.nan, [math.inf], {1, 2}, b"x", object(), loop, {(1,): 2}):
            with self.subTest(repr(value)), self.assertRaises((TypeError, ValueError)):
                jsoncodec.encode(value)


class Outputs(unittest.TestCase):
    def check(self, value, code):
        with self.assertRaises(outputs.Bad) as caught:
            outputs.fields(value)
        self.assertEqual(caught.exception.code, code)

    def test_bounds(self):
        self.assertEqual(outputs.fields({}), [])
        self.assertEqual(outputs.fields({"ü": "€"}), ["ü".encode(), "€".encode()])
        self.assertEqual(len(outputs.fields({str(n).rjust(128): "v" * 896 for n in range(64)})), 128)
        self.check({str(n): "" for n in range(65)}, message.OUTPUTS_TOO_LARGE)
        self.check({str(n).rjust(128): "v" * 897 for n in range(64)}, message.OUTPUTS_TOO_LARGE)
        self.check({"k": "é" * 4097}, message.OUTPUTS_TOO_LARGE)
        self.check({"é" * 65: ""}, message.OUTPUTS_INVALID)
        for value in (None, [], {"": "v"}, {1: "v"}, {"k": 1}, {"k": None}, {"k": "\udc00"}):
            self.check(value, message.OUTPUTS_INVALID)


class Texts(unittest.TestCase):
    def test_cuts_on_a_character_boundary(self):
        for text in ("a" * 100, "ä" * 100, "😀" * 100, "a" + "€" * 100, "\ud800" * 100, ""):
            for limit in range(8, 120):
                for cut in (texts.head, texts.tail):
                    got = cut(text, limit)
                    self.assertLessEqual(len(got.encode()), limit)
        self.assertEqual(texts.head("short", 10), "short")
        self.assertTrue(texts.tail("x" * 50 + "end", 20).endswith("end"))
        self.assertTrue(texts.head("start" + "x" * 50, 20).startswith("start"))

    def test_message_is_one_bounded_line(self):
        self.assertEqual(texts.message(ValueError("a\nb\t c")), "a b c")
        self.assertLessEqual(len(texts.message(ValueError("ü" * 10_000)).encode()), texts.MAX_MESSAGE)

        class Broken(Exception):
            def __str__(self):
                raise KeyError("no")

        self.assertEqual(texts.message(Broken()), "<Broken whose text raises KeyError>")

    def test_trace_is_bounded_and_keeps_the_end(self):
        def deep(n):
            if n:
                deep(n - 1)
            raise ValueError("the end")

        try:
            deep(500)
        except ValueError as error:
            trace = texts.trace(error)
        self.assertLessEqual(len(trace.encode()), texts.MAX_TRACE)
        self.assertTrue(trace.endswith("ValueError: the end"))
