"""Memory that is cheap to fork."""

import unittest

from hearth_pyrunner import hugepages


def heap():
    with open("/proc/self/maps", encoding="utf-8") as maps:
        pieces = [line.split()[0].split("-") for line in maps if line.rstrip().endswith("[heap]")]
    return int(pieces[0][0], 16), int(pieces[-1][1], 16)


def together(made):
    start, end = heap()
    return sum(1 for thing in made if start <= id(thing) < end) / len(made)


class Gathered(unittest.TestCase):
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

    def test_hooks_are_left_alone(self):
        hooked = hugepages._allocator(hugepages._OBJECTS)
        hooked.context = 1
        self.assertFalse(hugepages._plain({hugepages._OBJECTS: hooked}))


if __name__ == "__main__":
    unittest.main()
