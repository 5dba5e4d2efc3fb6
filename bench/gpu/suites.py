"""The items of each suite of bench/gpu/run."""
import dataclasses

import cases

KEPT = 180e6  # bytes that the sets of an item together have at least: three times the L2 of an H200
ONE_SET = 8e9  # bytes of a set from which there is one


@dataclasses.dataclass(frozen=True)
class Item:
    case: cases.Case
    m: int
    n: int
    dtype: str
    launch: str = "graph"

    @property
    def shape(self):
        return f"m={self.m},n={self.n}"

    @property
    def name(self):
        """As results.item_of() names its rows."""
        plain = " plain" if self.launch == "plain" else ""
        return f"{self.case.name} {self.shape} {self.dtype}{plain}"


def grid(all_cases, shapes):
    return [Item(case, m, n, dtype) for case in all_cases for dtype in case.dtypes
            for m, n in shapes]


def memory():
    """The smallest shapes of all kernels first, so that a short run shows something of each."""
    return [Item(case, m, n, dtype) for m, n in cases.MATRICES for case in cases.CASES
            for dtype in case.dtypes]


def copies():
    return grid([cases.COPY], cases.MATRICES)


def latency():
    small = [cases.case_named(name) for name in ("softmax", "gelu", "rmsnorm")]
    return [Item(i.case, i.m, i.n, i.dtype, launch) for i in grid(small, cases.SMALL)
            if i.dtype == "bf16" for launch in ("graph", "plain")]


def compiling():
    """The usual shape of every kernel."""
    return grid([*cases.CASES, cases.COPY, cases.GEMM], [(4096, 4096)])


def big():
    """More than 2^31 elements."""
    named = cases.case_named
    found = [Item(named(name), *cases.MANY, "bf16") for name in ("gelu", "softmax", "embedding")]
    found.append(Item(named("softmax"), *cases.FEW_ROWS, "bf16"))
    found += [Item(cases.COPY, *cases.MANY, dtype) for dtype in cases.COPY.dtypes]
    return found + [Item(named("transpose"), *cases.MANY, "u8")]


SUITES = {"memory": memory, "copy": copies, "latency": latency, "compile": compiling, "big": big,
          "gemm": lambda: grid([cases.GEMM], cases.SQUARES)}


def sets_of(bytes_):
    """How many sets of tensors calls take in turn, so that none is in a cache when it comes."""
    return 1 if bytes_ > ONE_SET else max(2, min(64, -(-int(KEPT) // max(int(bytes_), 1))))
