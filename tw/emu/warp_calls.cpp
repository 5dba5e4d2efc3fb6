#include <cstring>
#include <fmt/format.h>

#include "tw/emu/impl/machine.h"
#include "tw/num/codec.h"

namespace tw::emu {

void Machine::shuffle(Warp& warp, const std::string& kind) {
  for (Thread* t : warp.lanes) {
    if (!t || !t->call.kind) continue;
    const int argument = t->call.argument & (kLanes - 1);  // hardware takes five bits
    int from = kind == "tw_shuffle_xor"  ? t->lane ^ argument
               : kind == "tw_shuffle_up" ? t->lane - argument
                                         : argument;
    if (from < 0) from = t->lane;
    const Thread* source = warp.lanes[static_cast<size_t>(from)];
    if (source && source->call.kind) {
      std::memcpy(t->call.out, source->call.in, t->call.bytes);
      continue;
    }
    find({EmuFault::uninitialised,
          fmt::format("thread {} of block {} gets the value of lane {}, which has ended, by {} @0",
                      t->text.thread, t->text.block, from, kind),
          {at_line(t->call.line)}});
  }
}

void Machine::vote(Warp& warp, bool ballot) {
  uint32_t bits = 0;
  for (const Thread* t : warp.lanes) {
    if (t && t->call.kind && *static_cast<const bool*>(t->call.in)) bits |= 1u << t->lane;
  }
  const uint32_t result = ballot ? bits : bits != 0;
  for (Thread* t : warp.lanes) {
    if (t && t->call.kind) std::memcpy(t->call.out, &result, sizeof(result));
  }
}

// ---- matrices

constexpr int kRowBytes = 16;

/// Each lane gives a row, so it is the one that reads or writes it.
void Machine::access_row(const Call& call) {
  void* row = nullptr;
  std::memcpy(&row, call.in, sizeof(row));
  expect_aligned(row, kRowBytes, call.line);
  access(row, kRowBytes, std::strcmp(call.kind, "tw_stmatrix_x4") == 0, at_line(call.line));
}

/// Register m of lane l holds two elements of the matrix whose rows lanes 8 m .. 8 m + 7 gave:
/// 2 (l % 4) and the next of row l / 4, or of that column.
void Machine::load_matrix(Warp& warp, bool transposed) {
  for (Thread* t : warp.lanes) {
    if (!t || !t->call.kind) continue;
    uint16_t out[4][2] = {};
    for (int m = 0; m < 4; ++m) {
      for (int i = 0; i < 2; ++i) {
        const int along = t->lane % 4 * 2 + i, across = t->lane / 4;
        const int row = 8 * m + (transposed ? along : across);
        const Thread* giver = warp.lanes[static_cast<size_t>(row)];
        if (!giver || !giver->call.kind) continue;
        const char* from = nullptr;
        std::memcpy(&from, giver->call.in, sizeof(from));
        std::memcpy(&out[m][i], from + 2 * (transposed ? across : along), 2);
      }
    }
    std::memcpy(t->call.out, out, sizeof(out));
  }
}

/// Register m of lane l goes to where load_matrix() would bring it from.
void Machine::store_matrix(Warp& warp) {
  for (Thread* giver : warp.lanes) {
    if (!giver || !giver->call.kind) continue;
    const int m = giver->lane / 8;
    const size_t row = static_cast<size_t>(giver->lane) % 8;
    char* to = nullptr;
    std::memcpy(&to, giver->call.in, sizeof(to));
    for (size_t q = 0; q < 4; ++q) {
      const Thread* from = warp.lanes[row * 4 + q];
      if (!from || !from->call.kind) continue;
      const char* registers = static_cast<const char*>(from->call.in) + sizeof(to);
      std::memcpy(to + 4 * q, registers + 4 * m, 4);
    }
  }
}

/// The same lane at each call of a launch.
void Machine::elect(Warp& warp) {
  for (Thread* t : warp.lanes) {
    const uint32_t is_it = t && t->lane == elected_;
    if (t && t->call.kind) std::memcpy(t->call.out, &is_it, sizeof(is_it));
  }
}

namespace {

using Lanes = std::array<Thread*, kLanes>;
constexpr int kRows = 16, kColumns = 8;

/// Element `i` of a 32-bit register. f32 stands for tf32, whose last 13 bits mean nothing.
double element(uint32_t word, int i, DType t) {
  if (t == f32) return decode(f32, word & 0xffffe000);
  const int bits = 8 * static_cast<int>(bytes(t));
  const uint64_t code = (word >> (i * bits)) & ((uint64_t{1} << bits) - 1);
  if (t == i8) return static_cast<int8_t>(code);
  return t == u8 ? static_cast<double>(code) : decode(t, code);
}

uint32_t word_of(const Thread& t, int i) {
  uint32_t word = 0;
  std::memcpy(&word, static_cast<const char*>(t.call.in) + 4 * i, sizeof(word));
  return word;
}

/// The fragments of m16n8k8, m16n8k16 and m16n8k32, by lane: group l / 4, place l % 4 in it.
struct Fragments {
  double a[kRows][32] = {}, b[32][kColumns] = {};
  int k = 0;
};
Fragments fragments(const Lanes& lanes, DType a, DType b) {
  Fragments f;
  const int each = 4 / static_cast<int>(bytes(a));
  f.k = 8 * each;
  for (int lane = 0; lane < kLanes; ++lane) {
    const Thread& t = *lanes[static_cast<size_t>(lane)];
    const int group = lane / 4, place = lane % 4;
    for (int i = 0; i < each; ++i) {
      for (int r = 0; r < 4; ++r) {
        f.a[group + 8 * (r % 2)][place * each + r / 2 * 4 * each + i] =
            element(word_of(t, r), i, a);
      }
      for (int r = 0; r < 2; ++r) {
        f.b[place * each + r * 4 * each + i][group] = element(word_of(t, 4 + r), i, b);
      }
    }
  }
  return f;
}

/// Sums of exact products, rounded once; an i32 wraps.
template <class T>
void multiply_small(const Lanes& lanes, DType a, DType b) {
  const Fragments f = fragments(lanes, a, b);
  for (int lane = 0; lane < kLanes; ++lane) {
    T* d = static_cast<T*>(lanes[static_cast<size_t>(lane)]->call.out);
    for (int r = 0; r < 4; ++r) {
      const int row = lane / 4 + 8 * (r / 2), column = lane % 4 * 2 + r % 2;
      double sum = static_cast<double>(d[r]);
      for (int k = 0; k < f.k; ++k) sum += f.a[row][k] * f.b[k][column];
      if constexpr (std::is_integral_v<T>) {
        d[r] = static_cast<T>(static_cast<uint32_t>(static_cast<int64_t>(sum)));
      } else {
        d[r] = static_cast<T>(sum);
      }
    }
  }
}

void multiply_f64(const Lanes& lanes) {
  double a[8][4], b[4][8];
  for (int lane = 0; lane < kLanes; ++lane) {
    const auto* in = static_cast<const double*>(lanes[static_cast<size_t>(lane)]->call.in);
    a[lane / 4][lane % 4] = in[0];
    b[lane % 4][lane / 4] = in[1];
  }
  for (int lane = 0; lane < kLanes; ++lane) {
    auto* d = static_cast<double*>(lanes[static_cast<size_t>(lane)]->call.out);
    for (int i = 0; i < 2; ++i) {
      for (int k = 0; k < 4; ++k) d[i] += a[lane / 4][k] * b[k][lane % 4 * 2 + i];
    }
  }
}

}  // namespace

bool multiply(const std::string& kind, const std::array<Thread*, kLanes>& lanes) {
  for (const Thread* t : lanes) {
    if (!t || !t->call.kind) return false;
  }
  const auto byte = [&](char letter) { return letter == 's' ? i8 : u8; };
  const std::string bytes_kind = "tw_mma_m16n8k32_i32_";
  if (kind == "tw_mma_m16n8k16_f32_bf16") {
    multiply_small<float>(lanes, bf16, bf16);
  } else if (kind == "tw_mma_m16n8k16_f32_f16") {
    multiply_small<float>(lanes, f16, f16);
  } else if (kind == "tw_mma_m16n8k8_f32_tf32") {
    multiply_small<float>(lanes, f32, f32);
  } else if (kind == "tw_mma_m8n8k4_f64") {
    multiply_f64(lanes);
  } else if (kind.starts_with(bytes_kind)) {
    multiply_small<int32_t>(lanes, byte(kind[bytes_kind.size()]),
                            byte(kind[bytes_kind.size() + 3]));
  } else {
    return false;
  }
  return true;
}

}  // namespace tw::emu
