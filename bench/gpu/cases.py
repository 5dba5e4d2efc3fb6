"""What is compared: each case is a kernel of the library beside the PyTorch code that one would
write, with what the results are in float64. Nothing here needs torch until a case is made."""
import dataclasses
import math
import typing

EPS = 1e-5  # of the library's norms
HEAD = 128  # elements of a head of rope


@dataclasses.dataclass(frozen=True)
class Step:
    """A kernel of the library and the tensors that its arguments are."""
    kernel: str
    extents: dict
    dtype: str
    choices: dict
    tensors: tuple = ()  # names; empty: those of the arguments


@dataclasses.dataclass(frozen=True)
class Case:
    name: str
    steps: typing.Callable      # (m, n, dtype) -> list of Step
    peer: typing.Callable       # (torch, tensors by name) -> function and what it is called with
    reference: typing.Callable  # (torch, slices by name) -> [(output, exact, sums of magnitudes)]
    accuracy: typing.Callable   # (m, n, dtype) -> {output: (family, dtype, terms, ulps)}
    split: dict                 # axis along which each tensor is sliced for the reference
    extra: typing.Callable = lambda m, n, t: {}  # {tensor: (dtype, dims)}, not those of arguments
    dtypes: tuple = ("bf16", "f32")
    streams: bool = True        # reads and writes once, all of it
    peer_off: float = 0.05      # of PyTorch's results, whose types and orders are its own: norms


def one(kernel, axes="mn", **choices):
    """Steps of one kernel whose axes have the extents of the matrix."""
    return lambda m, n, dtype: [Step(kernel, {axes[0]: m, axes[1]: n}, dtype, choices)]


def accuracy(family, output="Y", dtype=None, terms="n", ulps=0):
    def of(m, n, main):
        count = {"1": 1, "n": n, "m": m}[terms]
        return {output: (family, dtype or main, count, ulps)}
    return of


def exact_of(output, value):
    return [(output, value, value.new_zeros(()).expand_as(value))]


# ---- rows


def softmax_reference(torch, t):
    x = t["X"].double()
    off = x - x.amax(-1, keepdim=True)
    e = off.exp()
    y = e / e.sum(-1, keepdim=True)
    return [("Y", y, torch.where(y == 0, 0.0, y * (1 + off.abs())))]


def layernorm_peer(torch, t):
    norm, x = torch.nn.functional.layer_norm, t["X"]
    return (lambda x, gamma, beta: norm(x, x.shape[-1:], gamma, beta, EPS),
            (x, t["gamma"].to(x.dtype), t["beta"].to(x.dtype)))


def layernorm_reference(torch, t):
    x, gamma, beta = t["X"].double(), t["gamma"].double(), t["beta"].double()
    d = x - x.mean(-1, keepdim=True)
    rstd = 1 / (d.square().mean(-1, keepdim=True) + EPS).sqrt()
    magnitude = x.abs().mean(-1, keepdim=True) + x.abs() + d.abs()
    return [("Y", d * rstd * gamma + beta, magnitude * rstd * gamma.abs() + beta.abs())]


def rmsnorm_peer(torch, t):
    return (lambda x, gamma: torch.nn.functional.rms_norm(x, x.shape[-1:], gamma, EPS),
            (t["X"], t["gamma"].to(t["X"].dtype)))


def normalised(x, gamma):
    y = x / (x.square().mean(-1, keepdim=True) + EPS).sqrt() * gamma
    return ("Y", y, y.abs())


def rmsnorm_reference(torch, t):
    return [normalised(t["X"].double(), t["gamma"].double())]


def add_rmsnorm_peer(torch, t):
    def add_rmsnorm(x, r, gamma):
        s = x + r
        return s, torch.nn.functional.rms_norm(s, s.shape[-1:], gamma, EPS)
    return add_rmsnorm, (t["X"], t["R"], t["gamma"].to(t["X"].dtype))


def add_rmsnorm_reference(torch, t):
    s = t["X"].double() + t["R"].double()
    return [("S", s, s.abs()), normalised(s, t["gamma"].double())]


def cross_entropy_peer(torch, t):
    return (lambda x, labels: torch.nn.functional.cross_entropy(x, labels, reduction="none"),
            (t["X"], t["labels"].long()))


def cross_entropy_reference(torch, t):
    x = t["X"].double()
    base = x.amax(-1, keepdim=True)
    weight = (x - base).exp()
    total = weight.sum(-1)
    spread = (weight * (x - base).abs()).sum(-1) / total
    base = base.squeeze(-1)
    lse, magnitude = base + total.log(), 1 + spread + total.log().abs() + base.abs()
    at_label = x.gather(-1, t["labels"].long().unsqueeze(-1)).squeeze(-1)
    return [("loss", lse - at_label, magnitude + at_label.abs()), ("LSE", lse, magnitude)]


# ---- elementwise


def gelu_reference(torch, t):
    x = t["A"].double()
    return [("Y", 0.5 * x * (1 + torch.erf(x / math.sqrt(2.0))), x.abs())]


def swiglu_reference(torch, t):
    x = t["A"].double()
    y = x / (1 + (-x).exp()) * t["B"].double()
    return [("Y", y, y.abs())]


def rope_peer(torch, t):
    """As language models have it: the tables are of the type of x and as wide."""
    x = t["X"]
    cos, sin = (torch.cat((t[k], t[k]), -1).unsqueeze(1).to(x.dtype) for k in ("cos", "sin"))

    def rope(x, cos, sin):
        half = x.shape[-1] // 2
        turned = torch.cat((-x[..., half:], x[..., :half]), -1)
        return x * cos + turned * sin
    return rope, (x, cos, sin)


def rope_reference(torch, t):
    a, b = t["X"].double().chunk(2, -1)
    c, s = t["cos"].double().unsqueeze(1), t["sin"].double().unsqueeze(1)
    value = torch.cat((a * c - b * s, b * c + a * s), -1)
    magnitude = torch.cat(((a * c).abs() + (b * s).abs(), (b * c).abs() + (a * s).abs()), -1)
    return [("Y", value, magnitude)]


def fp8_peer(torch, t):
    def quantize(x):
        scale = x.abs().amax(-1, keepdim=True).float() / 448
        return (x.float() / scale).to(torch.float8_e4m3fn), scale.squeeze(-1)
    return quantize, (t["X"],)


def fp8_reference(torch, t):
    x = t["X"].double()
    scale = (x.abs().amax(-1, keepdim=True) / 448).float()
    q = (x / scale.double()).float().clamp(-448, 448).to(torch.float8_e4m3fn).double()
    return exact_of("Q", q) + exact_of("S", scale.squeeze(-1).double())


# ---- sums, places


def sum_reference(axis):
    return lambda torch, t: [("Y", t["X"].sum(axis, dtype=torch.float64),
                              t["X"].double().abs().sum(axis))]


def sum_all_reference(torch, t):
    x = t["X"]
    magnitude = sum(part.double().abs().sum() for part in x.split(max(1, 2**24 // x.shape[1])))
    return [("Y", x.sum(dtype=torch.float64).reshape(1), magnitude.reshape(1))]


def parts_of(m, n):
    """Parts of 8192 or 16384 elements, 1024 longer ones, which all run at once."""
    most = 4096 if m * n <= 4096 * 16384 else 1024
    return next(p for p in (4096, 2048, 1024, 256, 16, 1)
                if p == 1 or p <= most and m * n >= p * 8192)


def sum_all_steps(m, n, dtype):
    parts = parts_of(m, n)
    return [Step("sum", {"n": m * n}, dtype, {"parts": str(parts)}, ("X.all", "parts")),
            Step("sum", {"n": parts}, "f32", {"parts": "1"}, ("parts", "Y"))]


def argmax_reference(torch, t):
    x = t["X"]
    columns = torch.arange(x.shape[1], device=x.device).expand_as(x)
    largest = x == x.amax(-1, keepdim=True)
    return exact_of("Y", torch.where(largest, columns, x.shape[1]).amin(-1).double())


def cumsum_reference(torch, t):
    x = t["X"].double()
    return [("Y", x.cumsum(-1), x.abs().cumsum(-1))]


def index_add_reference(torch, t):
    base, ids, x = t["base"].double(), t["ids"].long(), t["X"].double()
    return [("Y", base.index_add(0, ids, x), base.abs().index_add_(0, ids, x.abs()))]


def index_add_peer(torch, t):
    return (lambda base, ids, x: torch.index_add(base, 0, ids, x),
            (t["base"], t["ids"], t["X"]))


def rows_steps(kernel):
    """A table of m rows, looked up or added to m times."""
    return lambda m, n, dtype: [Step(kernel, {"v": m, "d": n, "n": m}, dtype, {})]


def peer_of(make, *names):
    """make(torch) is PyTorch code of these tensors."""
    return lambda torch, t: (make(torch), tuple(t[name] for name in names))


def index_add_case(name):
    return Case(name, rows_steps(name), index_add_peer, index_add_reference,
                # no id of m drawn from m comes as often
                lambda m, n, t: {"Y": ("reduction", "f32", 16, 0)}, {"base": 1, "X": 1, "Y": 1},
                dtypes=("f32",), streams=False)


ROWS = {"X": 0, "Y": 0}
CASES = [
    Case("softmax", one("softmax"), peer_of(lambda torch: lambda x: torch.softmax(x, -1), "X"),
         softmax_reference, accuracy("softmax"), ROWS),
    Case("layernorm", one("layernorm", weights="same"), layernorm_peer, layernorm_reference,
         accuracy("norm"), ROWS),
    Case("rmsnorm", one("rmsnorm", weights="same"), rmsnorm_peer, rmsnorm_reference,
         accuracy("norm"), ROWS),
    Case("add_rmsnorm", one("add_rmsnorm", weights="same"), add_rmsnorm_peer,
         add_rmsnorm_reference,
         lambda m, n, t: {"S": ("norm", t, n, 0), "Y": ("norm", t, n, 0)},
         ROWS | {"R": 0, "S": 0}),
    Case("cross_entropy", one("cross_entropy"), cross_entropy_peer, cross_entropy_reference,
         lambda m, n, t: {k: ("softmax", "f32", n, 1) for k in ("loss", "LSE")},
         {"X": 0, "labels": 0, "loss": 0, "LSE": 0}),
    Case("gelu", one("elementwise", op="gelu"),
         peer_of(lambda torch: torch.nn.functional.gelu, "A"),
         gelu_reference, accuracy("elementwise", terms="1", ulps=10), {"A": 0, "Y": 0}),
    Case("swiglu", one("elementwise", op="swiglu"),
         peer_of(lambda torch: lambda a, b: torch.nn.functional.silu(a) * b, "A", "B"),
         swiglu_reference, accuracy("elementwise", terms="1", ulps=4), {"A": 0, "B": 0, "Y": 0}),
    Case("rope", lambda m, n, t: [Step("rope", {"s": m, "h": n // HEAD, "d": HEAD}, t, {})],
         rope_peer, rope_reference,
         lambda m, n, t: {"Y": ("gemm", t, 2, 0)}, ROWS | {"cos": 0, "sin": 0}),
    Case("quantize_fp8", one("quantize_fp8", axes="mk"), fp8_peer, fp8_reference,
         lambda m, n, t: {"Q": ("exact", "e4m3", 1, 0), "S": ("exact", "f32", 1, 0)},
         {"X": 0, "Q": 0, "S": 0}),
    Case("transpose", one("transpose"),
         peer_of(lambda torch: lambda x: x.t().contiguous(), "X"),
         lambda torch, t: exact_of("Y", t["X"].t().double()), accuracy("exact"),
         {"X": 0, "Y": 1}),
    Case("row_sum", one("row_reduce", op="sum"),
         peer_of(lambda torch: lambda x: x.sum(-1), "X"),
         sum_reference(-1), accuracy("reduction"), ROWS),
    Case("column_sum", one("column_reduce", op="sum"),
         peer_of(lambda torch: lambda x: x.sum(0), "X"),
         sum_reference(0), accuracy("reduction", terms="m"), {"X": 1, "Y": 0}),
    Case("sum", sum_all_steps, peer_of(lambda torch: lambda x: x.sum(), "X"), sum_all_reference,
         lambda m, n, t: {"Y": ("reduction", "f32",
                                m * n // parts_of(m, n) + parts_of(m, n), 0)}, {},
         extra=lambda m, n, t: {"X": (t, (m, n)), "parts": ("f32", (parts_of(m, n),)),
                                "Y": ("f32", (1,))}),
    Case("argmax", one("row_reduce", op="argmax"),
         peer_of(lambda torch: lambda x: x.argmax(-1), "X"),
         argmax_reference, accuracy("exact", dtype="i64"), ROWS),
    Case("cumsum", one("cumsum"), peer_of(lambda torch: lambda x: x.cumsum(-1), "X"),
         cumsum_reference, accuracy("reduction"), ROWS, peer_off=0.5),  # its bf16 sums are of bf16
    Case("embedding", rows_steps("embedding"),
         peer_of(lambda torch: lambda ids, table: torch.nn.functional.embedding(ids, table),
                 "ids", "table"),
         lambda torch, t: exact_of("Y", t["table"][t["ids"].long()].double()), accuracy("exact"),
         {"ids": 0, "Y": 0}, streams=False),
    index_add_case("index_add"),
    index_add_case("index_add_sorted"),
]
COPY = Case("copy", lambda m, n, t: [Step("copy", {"b": 1, "m": m, "n": n}, t, {})],
            peer_of(lambda torch: lambda x: x.clone(), "X"),
            lambda torch, t: exact_of("Y", t["X"].double()), accuracy("exact"), {"X": 1, "Y": 1},
            dtypes=("bf16", "u8"))


def product_reference(torch, t):
    a, b = t["A"].double(), t["B"].double()
    return [("C", a @ b, a.abs() @ b.abs())]


GEMM = Case("gemm", lambda m, n, t: [Step("gemm", {"m": m, "n": n, "k": n}, t, {})],
            peer_of(lambda torch: lambda a, b: a @ b, "A", "B"), product_reference,
            lambda m, n, t: {"C": ("gemm", t, n, 0)}, {"A": 0, "C": 0},
            dtypes=("bf16", "f16", "f32"), streams=False)
MATRICES = [(4096, 4096), (8192, 8192), (16384, 16384), (8192, 65536), (16384, 131072)]


SQUARES = [(1024, 1024), (2048, 2048), (4096, 4096), (8192, 8192)]
SMALL = [(1, 1024), (16, 4096), (256, 1024)]
MANY = (65537, 32800)  # more than 2^31 elements
FEW_ROWS = (3, 2**30 // 3 * 2 + 5)  # as many, in long rows


def case_named(name):
    return next(c for c in (*CASES, COPY, GEMM) if c.name == name)
