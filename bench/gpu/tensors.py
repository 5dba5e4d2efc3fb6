"""Tensors of a case, the library's calls on them, and what they must hold afterwards."""
import math

import bound
import tilewright

PART = {"cuda": 2**26, "cpu": 2**20}  # elements that are verified at a time
TORCH = {"f64": "float64", "f32": "float32", "f16": "float16", "bf16": "bfloat16",
         "e4m3": "float8_e4m3fn", "e5m2": "float8_e5m2", "i8": "int8", "i16": "int16",
         "i32": "int32", "i64": "int64", "u8": "uint8", "bool": "bool"}
NAMES = {text: name for name, text in TORCH.items()}


def memory_of(tensor):
    name = NAMES[str(tensor.dtype).removeprefix("torch.")]
    return tilewright.Memory(tensor.data_ptr(), name, tuple(tensor.shape), tuple(tensor.stride()))


def values(torch, name, dtype, dims, m, n, case, generator):
    """What an input holds: N(0, 1), weights that bf16 has too, labels and ids in range."""
    device = generator.device
    if name == "labels":
        return torch.randint(0, n, dims, dtype=torch.int32, device=device, generator=generator)
    if name == "ids" and case == "embedding":  # each row once, so that bytes can be counted
        return torch.randperm(m, device=device, generator=generator).to(torch.int32)
    if name == "ids":
        ids = torch.randint(0, m, dims, dtype=torch.int32, device=device, generator=generator)
        return ids.sort().values if case.endswith("sorted") else ids
    if dtype in ("u8", "i8"):
        return torch.empty(dims, dtype=getattr(torch, TORCH[dtype]),
                           device=device).random_(generator=generator)
    x = torch.empty(dims, dtype=getattr(torch, TORCH[dtype]), device=device)
    x.normal_(generator=generator)
    if name in ("gamma", "beta"):
        return x.bfloat16().to(x.dtype)
    if name in ("cos", "sin"):
        return getattr(x, name)()
    return x


class Work:
    """A case at one shape and type on one device: kernels, and sets of tensors that calls take in
    turn."""

    def __init__(self, torch, device, case, m, n, dtype, mapping=None):
        self.torch, self.case, self.shape, self.dtype = torch, case, (m, n), dtype
        self.device = device
        self.steps = case.steps(m, n, dtype)
        self.kernels = [device.kernel(s.kernel, s.extents, s.dtype, s.choices, mapping)
                        for s in self.steps]
        self.known = {a.name: a for k in self.kernels for a in k.arguments}
        self.named = {a.name: (a.dtype, a.dims) for a in self.known.values()}
        if extra := case.extra(m, n, dtype):
            self.named = extra
        self.outputs = list(case.accuracy(m, n, dtype))
        self.tensors, self.calls = [], []

    def bytes(self):
        return sum(math.prod(dims) * tilewright.CODES[dtype][1] // 8
                   for name, (dtype, dims) in self.named.items() if name != "parts")

    def add_set(self, seed):
        torch, (m, n) = self.torch, self.shape
        place = self.device.name if self.device.name.startswith("cuda") else "cpu"
        generator = torch.Generator(place).manual_seed(seed)
        tensors = {}
        for name, (dtype, dims) in self.named.items():
            if name in self.outputs or name == "parts":
                tensors[name] = torch.empty(dims, dtype=getattr(torch, TORCH[dtype]), device=place)
            else:
                tensors[name] = values(torch, name, dtype, dims, m, n, self.case.name, generator)
        self.tensors.append(tensors)
        calls = []
        for step, kernel in zip(self.steps, self.kernels):
            names = step.tensors or [a.name for a in kernel.arguments]
            calls.append(kernel.bind([memory_of(self.tensor(tensors, name)) for name in names]))
        self.calls.append(calls)

    def prepare(self, i):
        for call in self.calls[i]:
            call.prepare()

    @staticmethod
    def tensor(tensors, name):
        return tensors[name[:-4]].view(-1) if name.endswith(".all") else tensors[name]

    def launch(self, i, stream=0):
        for call in self.calls[i]:
            call.launch(stream)

    def poison(self):
        for tensors in self.tensors:
            for name in (*self.outputs, *(["parts"] if "parts" in tensors else [])):
                tensors[name].view(self.torch.uint8).fill_(0xff)

    def mapping(self):
        return self.kernels[0].mapping()

    def slices(self, tensors):
        """Dicts of slices of all tensors, which cover those that are split."""
        split = self.case.split
        largest = max(t.numel() for t in tensors.values())
        extents = [tensors[name].shape[axis] for name, axis in split.items() if name in tensors]
        if not extents:
            yield tensors
            return
        place = "cuda" if self.device.name.startswith("cuda") else "cpu"
        step = max(1, extents[0] * PART[place] // max(largest, 1))
        for begin in range(0, extents[0], step):
            count = min(step, extents[0] - begin)
            yield {name: t.narrow(split[name], begin, count) if name in split else t
                   for name, t in tensors.items()}

    def worst(self, i):
        """The largest error of a set's outputs over its bound: infinite where one is wrong."""
        torch, worst = self.torch, 0.0
        accuracies = self.case.accuracy(*self.shape, self.dtype)
        for part in self.slices(self.tensors[i]):
            for name, exact, sums in self.case.reference(torch, part):
                accuracy, got = accuracies[name], part[name].double()
                if got.shape != exact.shape:
                    got = got.reshape(exact.shape)
                most = bound.bound(torch, accuracy, exact, sums)
                ratio = bound.error_ratio(torch, accuracy[1], got, exact, most)
                worst = max(worst, ratio.max().item() if ratio.numel() else 0.0)
        return worst

    def check_peer(self, i, results):
        """ValueError when PyTorch's results are those of some other function."""
        results = results if isinstance(results, tuple) else (results,)
        named = dict(zip(self.outputs, results))
        if self.case.name == "quantize_fp8":
            named = {"S": results[1]}
        for part in self.slices({**self.tensors[i], **named}):
            for name, exact, _ in self.case.reference(self.torch, part):
                if name in named:
                    off = part[name].double().reshape(exact.shape) - exact
                    if not off.norm() <= self.case.peer_off * exact.norm():
                        raise ValueError(f"PyTorch's {name} is not what is compared")
            return
