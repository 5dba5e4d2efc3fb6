// Mistakes that the C++ compiler must catch. traps_test.py compiles this file with each TRAPS
// value; on a line that ends in the number and a text the compilers must complain so, and only
// there. A template complains once in a file, so uses of one trap have numbers of their own.
#include "tw/lang/lang.h"

using namespace tw;

#ifndef TRAPS
#define TRAPS 0
#endif

void fine() {
  Trace k("fine");
  Index N = k.dim("N");
  Tile a = k.zeros(f32, {8}), b = k.zeros(f32, {8});
  const double d = 0.5;
  const size_t n = 3;
  const char c = 2;
  a = a * d + n * b - c / a + N * a + true;
  a = max(a, 0) + min(0.5, b) + max(N, a);
  Index i = max(N, 0) + min(4, N) + n * N - 1 + cdiv(64, 8) + cdiv(N, n) + 7 / N % c;
  k.when(N < 4, [&] { a = b; });
  k.when(
      eq(i, N), [&] { a += b; }, [&] { b -= a; });
  for (Index j : k.range(N)) a = where(eq(a, b), a, j);
  Tile mask = (a < b) & ~ne(a, 0) & (1 > b) & (N <= a);
  a = where(mask, -a, +1) * -N;
}

void traps() {
  Trace k("traps");
  Index N = k.dim("N"), i = N;
  Tile a = k.zeros(f32, {64, 64}), b = k.zeros(f32, {64, 64});
#if TRAPS == 1
  if (a < b) a = b;                  // 1: a Tile has no truth value while tracing
  if (N < 4) a = b;                  // 1: a Cond has no truth value while tracing
  k.when(a < b, [&] { a = b; });     // 1: k.when takes a condition on Index values
  k.range(a);                        // 1: k.range takes Index values
  for (Index j : k.range(N)) i = j;  // 1: deleted
  k.when(N < 4, [=] { a = b; });     // 1: discards qualifiers|no viable overloaded '='
  if (a == b) a = b;  // 1: invalid operands to binary expression|no match for .operator==.
  if (N) a = b;       // 1: could not convert|not contextually convertible
  int plain = N;      // 1: (cannot convert|conversion from) .tw::Index. to .int
  Tile tile = N;      // 1: conversion from .tw::Index. to (non-scalar type )?.tw::Tile
  Index real = 1.5;   // 1: conversion from .double. to (non-scalar type )?.tw::Index
#elif TRAPS == 2
  Tile both = (a < 1) && (b < 1);  // 2: a Tile has no truth value while tracing
  k.when(N < 4 && i < 4, [] {});   // 2: a Cond has no truth value while tracing
#elif TRAPS == 3
  a = !a ? a : b;       // 3: a Tile has no truth value while tracing
  while (i < N) a = b;  // 3: a Cond has no truth value while tracing
#endif
}
