"""Kernels of libtilewright.so through ctypes. Tensors are anything that says where its memory lies:
see Memory."""
import ctypes
import dataclasses

INT, UINT, FLOAT, BFLOAT, BOOL, E4M3, E5M2 = 0, 1, 2, 4, 6, 10, 12
CODES = {"f64": (FLOAT, 64), "f32": (FLOAT, 32), "f16": (FLOAT, 16), "bf16": (BFLOAT, 16),
         "e4m3": (E4M3, 8), "e5m2": (E5M2, 8), "i8": (INT, 8), "i16": (INT, 16), "i32": (INT, 32),
         "i64": (INT, 64), "u8": (UINT, 8), "u16": (UINT, 16), "bool": (BOOL, 8)}
USER_ERROR = 2


class CDtype(ctypes.Structure):
    _fields_ = [("code", ctypes.c_uint8), ("bits", ctypes.c_uint8), ("lanes", ctypes.c_uint16)]


class CTensor(ctypes.Structure):
    _fields_ = [("data", ctypes.c_void_p), ("dtype", CDtype), ("rank", ctypes.c_int32),
                ("dims", ctypes.POINTER(ctypes.c_int64)),
                ("strides", ctypes.POINTER(ctypes.c_int64)), ("owner", ctypes.c_void_p)]


class COptions(ctypes.Structure):
    _fields_ = [("size", ctypes.c_size_t), ("threads", ctypes.c_int32),
                ("mapping", ctypes.c_char_p)]


class CArgument(ctypes.Structure):
    _fields_ = [("name", ctypes.c_char_p), ("dtype", CDtype), ("rank", ctypes.c_int32),
                ("dims", ctypes.POINTER(ctypes.c_int64)), ("output", ctypes.c_int32)]


class CAccuracy(ctypes.Structure):
    _fields_ = [("family", ctypes.c_char_p), ("dtype", CDtype), ("terms", ctypes.c_int64),
                ("ulps", ctypes.c_double)]


def c_dtype(name):
    return CDtype(*CODES[name], 1)


def dtype_name(d):
    return next(n for n, code in CODES.items() if code == (d.code, d.bits))


@dataclasses.dataclass(frozen=True)
class Memory:
    """Where a tensor lies: address, name of its type, extents, strides in elements."""
    address: int
    dtype: str
    dims: tuple
    strides: tuple


@dataclasses.dataclass(frozen=True)
class Argument:
    name: str
    dtype: str
    dims: tuple
    output: bool


class Error(Exception):
    def __init__(self, code, text):
        super().__init__(text)
        self.code = code


class Library:
    def __init__(self, path):
        self.c = ctypes.CDLL(str(path))
        for name in ("tw_last_error", "tw_last_error_hint", "tw_version"):
            getattr(self.c, name).restype = ctypes.c_char_p
        self.c.tw_device_free.argtypes = self.c.tw_kernel_free.argtypes = [ctypes.c_void_p]
        self.c.tw_kernel_launch.argtypes = [ctypes.c_void_p, ctypes.POINTER(CTensor),
                                            ctypes.c_size_t, ctypes.c_void_p]

    def check(self, code):
        if code:
            text = self.c.tw_last_error().decode()
            hint = self.c.tw_last_error_hint().decode()
            raise Error(code, f"{text}; {hint}" if hint else text)

    def version(self):
        return self.c.tw_version().decode()

    def device(self, name):
        return Device(self, name)

    def error_bound(self, family, dtype, terms, ulps, exact, sum_abs):
        """The bounds of one element each, as a list."""
        accuracy = CAccuracy(family.encode(), c_dtype(dtype), terms, ulps)
        doubles = ctypes.c_double * len(exact)
        bound = doubles()
        self.check(self.c.tw_error_bound(ctypes.byref(accuracy), ctypes.c_size_t(len(exact)),
                                         doubles(*exact), doubles(*sum_abs), bound))
        return list(bound)


class Device:
    def __init__(self, library, name):
        self.library, self.name, self.handle = library, name, ctypes.c_void_p()
        library.check(library.c.tw_device_open(name.encode(), ctypes.byref(self.handle)))

    def __del__(self):
        self.library.c.tw_device_free(self.handle)

    def kernel(self, name, shape, dtype, choices="", mapping=None):
        """`shape` and `choices`: "m=64,n=32", or dicts."""
        return Kernel(self, name, text_of(shape), dtype, text_of(choices), mapping)


def text_of(pairs):
    if isinstance(pairs, dict):
        return ",".join(f"{name}={value}" for name, value in sorted(pairs.items()))
    return pairs


class Kernel:
    def __init__(self, device, name, shape, dtype, choices, mapping):
        self.library, self.handle = device.library, ctypes.c_void_p()
        options = COptions(ctypes.sizeof(COptions), 0, mapping.encode() if mapping else None)
        self.library.check(self.library.c.tw_kernel_open(
            device.handle, name.encode(), shape.encode(), c_dtype(dtype), choices.encode(),
            ctypes.byref(options), ctypes.byref(self.handle)))
        self.arguments = [self._argument(i) for i in range(self._count())]

    def __del__(self):
        self.library.c.tw_kernel_free(self.handle)

    def _count(self):
        count = ctypes.c_size_t()
        self.library.check(self.library.c.tw_kernel_argument_count(self.handle,
                                                                   ctypes.byref(count)))
        return count.value

    def _argument(self, i):
        a = CArgument()
        self.library.check(self.library.c.tw_kernel_argument(self.handle, ctypes.c_size_t(i),
                                                             ctypes.byref(a)))
        return Argument(a.name.decode(), dtype_name(a.dtype), tuple(a.dims[:a.rank]),
                        bool(a.output))

    def mapping(self):
        text = ctypes.c_char_p()
        self.library.check(self.library.c.tw_kernel_mapping(self.handle, ctypes.byref(text)))
        return text.value.decode()

    def bind(self, memories):
        """A call on these tensors, one Memory an argument, which the caller keeps alive."""
        return Call(self, memories)


class Call:
    def __init__(self, kernel, memories):
        self.kernel, self.n = kernel, len(memories)
        self.tensors = (CTensor * self.n)()
        self.kept = []
        for c, m in zip(self.tensors, memories):
            numbers = ctypes.c_int64 * len(m.dims)
            dims, strides = numbers(*m.dims), numbers(*m.strides)
            self.kept.append((dims, strides))
            c.data, c.dtype, c.rank = m.address, c_dtype(m.dtype), len(m.dims)
            c.dims = ctypes.cast(dims, ctypes.POINTER(ctypes.c_int64))
            c.strides = ctypes.cast(strides, ctypes.POINTER(ctypes.c_int64))
        library = kernel.library
        self._launch, self._check, self._handle = (library.c.tw_kernel_launch, library.check,
                                                   kernel.handle)

    def prepare(self):
        self._check(self.kernel.library.c.tw_kernel_prepare(self._handle, self.tensors,
                                                            ctypes.c_size_t(self.n)))

    def source(self):
        text = ctypes.c_char_p()
        self._check(self.kernel.library.c.tw_kernel_source(
            self._handle, self.tensors, ctypes.c_size_t(self.n), ctypes.byref(text)))
        return text.value.decode()

    def launch(self, stream=0):
        self._check(self._launch(self._handle, self.tensors, self.n, stream or None))
