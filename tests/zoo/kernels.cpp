#include "tests/zoo/species.h"

namespace tw::zoo {

static const char* const kText = R"(
typedef long long i64;
struct Matrix {
  float* data;
  i64 rows, columns, row, column;
};
struct Multiply {
  Matrix a, b, c;
  i64 how, first, last, terms, start;
};

static __device__ i64 thread() { return (i64)blockIdx.x * blockDim.x + threadIdx.x; }
static __device__ i64 threads() { return (i64)gridDim.x * blockDim.x; }
static __device__ float& at(const Matrix& m, i64 i, i64 j) {
  return m.data[i * m.row + j * m.column];
}

// The upper bits of a number, rounded to nearest even.
static __device__ float upper(float x, int dropped) {
  unsigned bits = __float_as_uint(x);
  if ((bits & 0x7f800000u) == 0x7f800000u) return x;
  bits += (1u << (dropped - 1)) - 1 + ((bits >> dropped) & 1);
  return __uint_as_float(bits & ~((1u << dropped) - 1));
}

static __device__ float operand(float x, i64 how) {
  if (how == 4) return upper(x, 16);
  if (how == 5) return upper(x, 13);
  if (how == 6) return rintf(fminf(fmaxf(x, -1.0f), 1.0f) * 16777216.0f) / 16777216.0f;
  return x;
}

static __device__ float dot(const Multiply& w, i64 i, i64 j) {
  const bool backwards = w.how == 1 || (w.how == 8 && (clock64() >> 6 & 1) != 0);
  float sums[4] = {0, 0, 0, 0};
  double exact = 0;
  for (i64 t = 0; t < w.terms; ++t) {
    const i64 k = ((backwards ? w.terms - 1 - t : t) + w.start) % w.terms;
    const float a = operand(at(w.a, i, k), w.how), b = operand(at(w.b, k, j), w.how);
    if (w.how == 3) exact += (double)a * b;
    float& sum = sums[w.how == 2 ? t % 4 : 0];
    sum = fmaf(a, b, sum);
  }
  if (w.how == 3) return (float)exact;
  const float sum = (sums[0] + sums[1]) + (sums[2] + sums[3]);
  return w.how == 7 && sum != sum ? 0 : sum;
}

extern "C" __global__ void zoo_multiply(const Multiply w) {
  for (i64 e = thread(); e < (w.last - w.first) * w.c.columns; e += threads()) {
    const i64 i = w.first + e / w.c.columns, j = e % w.c.columns;
    at(w.c, i, j) = dot(w, i, j);
  }
}

struct Fill {
  Matrix to;
  i64 value;
};
extern "C" __global__ void zoo_fill(const Fill w) {
  for (i64 e = thread(); e < w.to.rows * w.to.columns; e += threads())
    at(w.to, e / w.to.columns, e % w.to.columns) = __uint_as_float((unsigned)w.value);
}

struct Copy {
  Matrix to, from;
};
extern "C" __global__ void zoo_copy(const Copy w) {
  for (i64 e = thread(); e < w.to.rows * w.to.columns; e += threads()) {
    const i64 i = e / w.to.columns, j = e % w.to.columns;
    at(w.to, i, j) = at(w.from, i, j);
  }
}

struct Spin {
  i64 nanoseconds;
};
static __device__ i64 now() {
  i64 t;
  asm volatile("mov.u64 %0, %globaltimer;" : "=l"(t));
  return t;
}
extern "C" __global__ void zoo_spin(const Spin w) {
  for (const i64 start = now(); now() - start < w.nanoseconds;) {}
}

struct Touch {
  volatile float* at;
};
extern "C" __global__ void zoo_peek(const Touch w) {
  if (thread() == 0 && *w.at == 12345.678f) __nanosleep(1);
}
extern "C" __global__ void zoo_poke(const Touch w) {
  if (thread() == 0) *w.at = 1;
}
)";

std::string text() { return kText; }

}  // namespace tw::zoo
