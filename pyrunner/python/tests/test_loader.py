"""Loading: what a handler may look like, and what its author is told."""

import os
import sys
import tempfile
import unittest
from test_process import forked

from hearth_pyrunner import loader, message, singlethreaded


def load(source, name="app", function="handle"):
    with tempfile.TemporaryDirectory() as folder:
        folder = os.path.realpath(folder)
        with open(os.path.join(folder, name + ".py"), "w", encoding="utf-8") as file:
            file.write(source)
        return loader.load(folder, name, function)


class Loading(unittest.TestCase):
    def refused(self, source, code, words, **named):
        with self.assertRaises(loader.Refused) as caught:
            load(source, **named)
        self.assertEqual(caught.exception.code, code)
        self.assertIn(words, caught.exception.text)
        self.assertLessEqual(len(caught.exception.text.encode()), loader.MAX_TEXT)

    @forked
    def test_takes_context(self):
        for parameters, wanted in {
            "event": False,
            "event, context": True,
            "event, ctx": True,
            "event, context=None": True,
            "event, retries=3": False,
            "*args": True,
            "event, /": False,
            "event, **options": False,
            "event, context, more=1": True,
        }.items():
            sys.modules.pop("app", None)
            with self.subTest(parameters):
                self.assertIs(load(f"def handle({parameters}): pass\n").takes_context, wanted)

    @forked
    def test_refused_handlers(self):
        self.refused("x = 1\n", message.HANDLER_INVALID, "it defines no function")

    @forked
    def test_names_that_are_taken(self):
        self.refused("def handle(e): pass\n", message.HANDLER_INVALID, "taken by a module of Python itself", name="struct")

    @forked
    def test_failed_import_names_the_users_line(self):
        self.refused("\n\nimport nosuch\n", message.LOAD_FAILED, "app.py:3: module nosuch is not there")

    @forked
    def test_endless_texts_are_bounded(self):
        self.refused("raise ValueError('ü' * 1_000_000)\n", message.LOAD_FAILED, "ValueError")


class Threads(unittest.TestCase):
    @forked
    def test_asked_for_one_and_put_back(self):
        os.environ.clear()
        os.environ["OMP_NUM_THREADS"] = "4"
        with singlethreaded.asked():
            self.assertEqual(os.environ["OPENBLAS_NUM_THREADS"], "1")
            self.assertEqual(os.environ["OMP_NUM_THREADS"], "4")
            os.environ["NEW"] = "kept"
        self.assertEqual(dict(os.environ), {"OMP_NUM_THREADS": "4", "NEW": "kept"})
