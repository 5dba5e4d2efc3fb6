"""Largest errors that results may have: check::bound of tw/check/bound.h, over arrays of numpy or
torch (`xp`) in float64. tests/tools/gpu_bound_test.py holds both against each other."""
import math

# of a type: bits of the mantissa, least exponent, largest finite value
FLOATS = {"f64": (52, -1022, math.ldexp(2 - 2.0**-52, 1023)),
          "f32": (23, -126, math.ldexp(2 - 2.0**-23, 127)),
          "bf16": (7, -126, math.ldexp(2 - 2.0**-7, 127)),
          "f16": (10, -14, 65504.0), "e4m3": (3, -6, 448.0), "e5m2": (2, -14, 57344.0)}
FAMILY_ULPS = {"norm": 2, "softmax": 1}
ADDS_PRODUCTS = ("gemm", "norm")


def ulp(xp, dtype, x):
    mantissa, least, _ = FLOATS[dtype]
    _, exponent = xp.frexp(x)
    exponent = xp.where((x == 0) | ~xp.isfinite(x), least, exponent - 1)
    return xp.ldexp(xp.ones_like(x), xp.where(exponent < least, least, exponent) - mantissa)


def bound(xp, accuracy, exact, sum_abs):
    family, dtype, terms, ulps = accuracy
    if family == "exact" or dtype not in FLOATS:
        return xp.zeros_like(exact)
    sums = "f64" if dtype == "f64" else "f32"
    unit = math.ldexp(1.0, -FLOATS[sums][0] - 1)
    root = 8 * math.sqrt(max(terms, 1))
    functions = FAMILY_ULPS.get(family, 0) + ulps
    least = math.ldexp(0.5, FLOATS[sums][1] - FLOATS[sums][0])
    eta = root * least if family in ADDS_PRODUCTS else 0.0
    return ulp(xp, dtype, exact) + (root + 2 * functions) * unit * sum_abs + eta


def error_ratio(xp, dtype, got, exact, most):
    """Errors over their bounds; infinite where the kinds of value differ, as check::error_ratio."""
    both = xp.isfinite(got) & xp.isfinite(exact)
    error = xp.where(both, xp.abs(xp.where(both, got, 0.0) - xp.where(both, exact, 0.0)), math.nan)
    ratio = xp.where(most > 0, error / xp.where(most > 0, most, 1.0),
                     xp.where(error == 0, 0.0, math.inf))
    both_nan = xp.isnan(got) & xp.isnan(exact)
    same_infinity = xp.isinf(got) & (got == exact)
    ratio = xp.where(both_nan | same_infinity, 0.0, ratio)
    ratio = xp.where(xp.isnan(ratio), math.inf, ratio)
    if dtype not in FLOATS:
        return ratio
    mantissa, _, largest = FLOATS[dtype]
    threshold = largest * (1 + 2.0**-mantissa / 4)
    overflows = (xp.isinf(got) & xp.isfinite(exact) & (xp.signbit(got) == xp.signbit(exact))
                 & (xp.abs(exact) + most >= threshold))
    return xp.where(overflows, 0.0, ratio)
