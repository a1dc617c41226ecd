"""Memory that is cheap to fork."""

import os
import subprocess
import sys
import unittest

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
sys.path.insert(0, ROOT)

from hearth_pyrunner import hugepages  # noqa: E402


def heap():
    with open("/proc/self/maps", encoding="utf-8") as maps:
        pieces = [line.split()[0].split("-") for line in maps if line.rstrip().endswith("[heap]")]
    return int(pieces[0][0], 16), int(pieces[-1][1], 16)


def together(made):
    start, end = heap()
    return sum(1 for thing in made if start <= id(thing) < end) / len(made)


class Gathered:
    def test_what_is_made_meanwhile_lies_in_the_heap(self):
        with hugepages.gathered():
            within = [[n] for n in range(20000)]
        after = [[n] for n in range(20000)]
        self.assertGreater(together(within), 0.95)
        self.assertLess(together(after), 0.5)
        self.assertTrue(all(a == b for a, b in zip(within, after)))

    def test_memory_goes_back_to_where_it_came_from(self):
        before = [bytearray(n % 700) for n in range(20000)]
        with hugepages.gathered():
            within = [bytearray(n % 700) for n in range(20000)]
            for n, piece in enumerate(before):
                piece.extend(b"x" * (n % 300))
            del before[::2]
        for n, piece in enumerate(within):
            piece.extend(b"x" * (n % 300))
        del within[::2]
        more = [bytearray(b"y" * (n % 700)) for n in range(20000)]
        for kept in (before, within):
            self.assertTrue(all(p == bytes(n % 700) + b"x" * (n % 300) for p, n in zip(kept, range(1, 20000, 2))))
        self.assertEqual(sum(map(len, more)), sum(n % 700 for n in range(20000)))

    def test_it_ends_with_an_error(self):
        usual = hugepages._allocator(hugepages._OBJECTS)
        with self.assertRaises(KeyError), hugepages.gathered():
            raise KeyError
        self.assertEqual(bytes(hugepages._allocator(hugepages._OBJECTS)), bytes(usual))


class Elsewhere(unittest.TestCase):
    def test_in_an_interpreter_without_flags(self):
        ran = subprocess.run([sys.executable, "-I", os.path.abspath(__file__)], stderr=subprocess.PIPE, text=True)
        self.assertEqual(ran.returncode, 0, ran.stderr)
        self.assertIn("Ran 3 tests", ran.stderr)

    def test_hooks_are_left_alone(self):
        script = f"import sys; sys.path.insert(0, {ROOT!r})\nfrom hearth_pyrunner import hugepages\n"
        script += "usual = bytes(hugepages._allocator(2))\nwith hugepages.gathered(): assert bytes(hugepages._allocator(2)) == usual"
        subprocess.run([sys.executable, "-I", "-X", "dev", "-c", script], check=True)


if __name__ == "__main__":

    class Here(Gathered, unittest.TestCase):
        pass

    unittest.main(defaultTest="Here")
