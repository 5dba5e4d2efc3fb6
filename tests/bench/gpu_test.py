"""bench/gpu without PyTorch and without a GPU: its bindings of the C ABI on this machine and on a
driver that only writes launches down, and its bounds beside those of the library.

gpu_test.py libtilewright.so libfake_cuda.so"""
import ctypes
import math
import os
import pathlib
import sys
import unittest

import numpy

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.append(str(ROOT / "bench/gpu"))

import bound  # noqa: E402  (found through the line above)
import cases  # noqa: E402
import rows  # noqa: E402
import suites  # noqa: E402
import tilewright  # noqa: E402
import timing  # noqa: E402

LIBRARY = tilewright.Library(sys.argv[1])
FAKE = sys.argv[2]


def memory(array):
    strides = tuple(s // array.itemsize for s in array.strides)
    return tilewright.Memory(array.ctypes.data, "f32", array.shape, strides)


class Bindings(unittest.TestCase):
    def test_a_kernel_runs_on_tensors_of_this_machine(self):
        kernel = LIBRARY.device("cpu:0").kernel("elementwise", {"m": 3, "n": 4}, "f32", "op=mul")
        self.assertEqual([(a.name, a.dtype, a.dims, a.output) for a in kernel.arguments],
                         [("A", "f32", (3, 4), False), ("B", "f32", (3, 4), False),
                          ("Y", "f32", (3, 4), True)])
        a = numpy.arange(12, dtype=numpy.float32).reshape(4, 3).T
        b, y = numpy.full((3, 4), 2, numpy.float32), numpy.zeros((3, 4), numpy.float32)
        call = kernel.bind([memory(a), memory(b), memory(y)])
        call.prepare()
        call.launch()
        numpy.testing.assert_array_equal(y, a * 2)
        self.assertIn("tw_mul", call.source())
        self.assertTrue(kernel.mapping().startswith("cpu1"))

    def test_errors_have_code_text_and_hint(self):
        with self.assertRaisesRegex(tilewright.Error, "called 'sofmax'; .*'softmax'") as caught:
            LIBRARY.device("cpu:0").kernel("sofmax", "", "f32")
        self.assertEqual(caught.exception.code, tilewright.USER_ERROR)

    def test_calls_reach_the_driver_with_their_stream(self):
        os.environ["TW_CUDA_DRIVER"] = FAKE
        os.environ.setdefault("VIRTUAL_ENV", str(ROOT / ".venv"))
        device = LIBRARY.device("cuda:0")
        kernel = device.kernel("softmax", "m=16,n=256", "f32")
        x, y = (memory_of_gpu((16, 256)) for _ in range(2))
        call = kernel.bind([x, y])
        call.prepare()
        call.launch()
        stream = ctypes.create_string_buffer(64)  # as the driver's are that capture nothing
        call.launch(ctypes.addressof(stream))
        self.assertIn("__global__", call.source())
        self.assertTrue(kernel.mapping().startswith("cuda1"))
        host = numpy.zeros((16, 256), numpy.float32)
        with self.assertRaisesRegex(tilewright.Error, "'X'"):
            kernel.bind([memory(host), y]).launch()


def memory_of_gpu(dims):
    driver, context, address = ctypes.CDLL(FAKE), ctypes.c_void_p(), ctypes.c_void_p()
    driver.cuDevicePrimaryCtxRetain(ctypes.byref(context), 0)
    driver.cuCtxPushCurrent_v2(context)
    driver.cuMemAlloc_v2(ctypes.byref(address), ctypes.c_size_t(4 * math.prod(dims)))
    driver.cuCtxPopCurrent_v2(ctypes.byref(context))
    return tilewright.Memory(address.value, "f32", dims, (dims[1], 1))


class Bounds(unittest.TestCase):
    def test_are_those_of_the_library(self):
        numbers = numpy.random.default_rng(1)
        exact = numpy.concatenate([numbers.normal(size=50) * 2.0**numbers.integers(-140, 120, 50),
                                   [0.0, 1.0, -2.0, 65504.0, 448.0]])
        sums = numpy.abs(exact) * numbers.uniform(1, 1000, len(exact))
        for family in ("exact", "elementwise", "reduction", "norm", "softmax", "gemm"):
            for dtype in bound.FLOATS:
                if dtype == "f64" and family in ("norm", "softmax"):
                    continue  # of f32, as here
                accuracy = (family, dtype, 4097, 3.5)
                want = LIBRARY.error_bound(*accuracy, exact, sums)
                got = bound.bound(numpy, accuracy, exact, sums)
                ratio = got / numpy.where(got == 0, 1, want)
                self.assertEqual(float(numpy.abs(ratio - (got != 0)).max().round(12)), 0.0,
                                 accuracy)

    def test_kinds_of_values_must_agree(self):
        inf, nan = math.inf, math.nan
        got = numpy.array([1.0, nan, nan, inf, -inf, inf, 2.0, inf])
        exact = numpy.array([1.5, nan, 1.0, inf, inf, 3.5e38, inf, 1.0])
        ratio = bound.error_ratio(numpy, "f32", got, exact, numpy.ones(8))
        self.assertEqual(ratio.tolist(), [0.5, 0, inf, 0, inf, 0, inf, inf])
        exact = bound.error_ratio(numpy, "i64", numpy.array([3.0, 4.0]), numpy.array([3.0, 5.0]),
                                  numpy.zeros(2))
        self.assertEqual(exact.tolist(), [0, inf])


class Rows(unittest.TestCase):
    def test_have_what_the_schema_wants(self):
        import json
        schema = json.loads((ROOT / "bench/schema.json").read_text())
        times = {"ours": [10.0, 11.0, 12.0], "eager": [20.0, 22.0, 18.0], "copy": [9.0, 9.0, 9.0]}
        shared = {"kernel": "softmax", "shape": "m=4,n=8", "program": "softmax m=4,n=8",
                  "dtype": "bf16", "cache": "cold", "mapping": "cuda1", "device": "NVIDIA H200",
                  "driver": "", "toolchain": "", "date": "", "commit": "", "suite": "memory",
                  "verified": True,
                  "max_err_over_bound": 0.5, "launch": "graph", "clocks": ""}
        row, = rows.of_times(shared, times, {"eager": "torch"}, 4.8e7, 0.0)
        self.assertEqual(set(schema["required"]) - set(row), set())
        self.assertEqual(set(row) - set(schema["properties"]), set())
        self.assertEqual((row["time_us"], row["ratio"], row["limit_us"]), (11.0, 2.0, 10.0))
        self.assertEqual(row["ci95"], [1.5, 2.0])

    def test_name_the_calls_of_the_library(self):
        def program(name, m, n):
            return rows.program_text(cases.case_named(name).steps(m, n, "bf16"))
        self.assertEqual(program("row_sum", 64, 32), "row_reduce m=64,n=32 op=sum")
        self.assertEqual(program("rope", 64, 256), "rope d=128,h=2,s=64")
        self.assertEqual(program("sum", 64, 16384),
                         "sum n=1048576 parts=16; sum n=16 parts=1")

    def test_blocks_time_all_in_both_orders(self):
        seen = []

        class Watch:
            def __init__(self, name):
                self.name = name

            def us_of_call(self):
                seen.append(self.name)
                return 4.0
        times = timing.blocks({"a": Watch("a"), "b": Watch("b")}, 2)
        self.assertEqual("".join(seen), "abbaabba")
        self.assertEqual(times, {"a": [4.0, 4.0], "b": [4.0, 4.0]})

    def test_sets_exceed_the_cache(self):
        for bytes_ in (1e4, 6.7e7, 4e9):
            sets = suites.sets_of(bytes_)
            self.assertTrue(2 <= sets <= 64)
            self.assertTrue(sets == 64 or sets * bytes_ >= suites.KEPT)
        self.assertEqual(suites.sets_of(9e9), 1)

    def test_every_case_is_a_kernel_or_missing(self):
        """Kernels of the cases have the arguments that references and accuracies name."""
        device = LIBRARY.device("cpu:0")
        for case in (*cases.CASES, cases.COPY, cases.GEMM):
            for step in case.steps(256, 256, case.dtypes[0]):
                kernel = device.kernel(step.kernel, step.extents, step.dtype, step.choices)
                names = {a.name for a in kernel.arguments}
                if not step.tensors:
                    self.assertLessEqual(set(case.accuracy(256, 256, "f32")), names, case.name)
                    self.assertLessEqual(set(case.split), names, case.name)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
