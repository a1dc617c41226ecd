"""Calls that are rehearsed before forks."""

import os
import pickle
import sys
import unittest
from unittest import mock

from hearth_pyrunner import descriptors, executor, process, rehearsedcalls


def state():
    return (
        descriptors.listing([]), [descriptors.identity(fd) for fd in (0, 1, 2)], process.threads(),
        id(sys.stdout), id(sys.stderr), sorted(sys.modules), os.getcwd(), dict(os.environ),
    )


class Rehearsals(unittest.TestCase):
    def setUp(self):
        self.told = []
        self._note("encode_json", executor.encode_json)
        self._note("encode_pickle", pickle.dumps)  # not every interpreter has cloudpickle

    def _note(self, name, encode):
        patch = mock.patch.object(executor, name, lambda envelope: self.told.append((name, envelope)) or encode(envelope))
        patch.start()
        self.addCleanup(patch.stop)

    def test_it_leaves_the_process_as_it_was(self):
        rehearsedcalls.rehearse()  # what is imported by the way is there then
        before = state()
        rehearsedcalls.rehearse()
        self.assertEqual(state(), before)

    def test_calls_of_both_kinds_succeed(self):
        rehearsedcalls.rehearse()
        value = {"ok": True, "value": 1, "output": []}
        self.assertEqual(self.told, [("encode_json", value), ("encode_pickle", value)] * rehearsedcalls._TIMES)


if __name__ == "__main__":
    unittest.main()
