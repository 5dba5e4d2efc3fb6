#include <algorithm>
#include <cmath>
#include <cstring>
#include <fmt/format.h>

#include "tw/num/codec.h"

#include "tests/micro/micro.h"

namespace tw::test {

namespace {

constexpr int64_t kThreads = 32;
const char* const kOps[] = {"add", "min", "max", "and", "or", "xor", "exch", "cas"};

/// "relaxed_block", ..
std::vector<std::string> places_of_atomics() {
  std::vector<std::string> all;
  for (const char* order : {"relaxed", "acquire", "release", "acq_rel"}) {
    for (const char* scope : {"block", "device", "system"})
      all.push_back(fmt::format("{}_{}", order, scope));
  }
  return all;
}

std::vector<DType> types_of(const std::string& op) {
  if (op == "cas") return {u8, u16, i32, u32, i64, u64};
  if (op == "and" || op == "or" || op == "xor") return {i32, u32, i64, u64};
  return {i32, u32, i64, u64, f32, f64};
}

/// Numbers of every kind; `of` tells operands apart. Of floats none whose sums round or vanish.
uint64_t operand(DType t, int64_t i, int64_t of) {
  const double special[] = {0.0, -0.0, INFINITY, -INFINITY, NAN, 1.5, -2.25, 3e5};
  if (is_float(t)) return encode(t, special[(i / (of == 0 ? 1 : 4) + of) % 8] * double(1 + i % 4));
  uint64_t x = static_cast<uint64_t>(i * 3 + of + 1) * 0x9e3779b97f4a7c15;
  x ^= x >> 31;
  return bits(t) == 64 ? x : x & ((1ull << bits(t)) - 1);
}

/// The number as it is after the operation.
uint64_t after(const std::string& op, DType t, uint64_t old, uint64_t v, uint64_t expected) {
  const uint64_t mask = bits(t) == 64 ? ~0ull : (1ull << bits(t)) - 1;
  if (op == "exch") return v;
  if (op == "cas") return old == expected ? v : old;
  if (op == "and") return old & v;
  if (op == "or") return old | v;
  if (op == "xor") return old ^ v;
  if (is_float(t)) {
    const double a = decode(t, old), b = decode(t, v);
    if (op == "add") return encode(t, a + b);
    // What is no number wins; -0 is below +0.
    if (std::isnan(a) || std::isnan(b)) return encode(t, NAN);
    const bool less = a < b || (a == b && std::signbit(a));
    return less == (op == "min") ? old : v;
  }
  if (op == "add") return (old + v) & mask;
  const int up = 64 - bits(t);
  const bool less =
      is_signed_int(t) ? static_cast<int64_t>(old << up) < static_cast<int64_t>(v << up) : old < v;
  return less == (op == "min") ? old : v;
}

/// Each thread on an element of its own, in global or in shared memory.
MicroKernel atomic_micro(const std::string& op, bool shared) {
  const std::vector<std::string> places = places_of_atomics();
  const auto count = static_cast<int64_t>(places.size());
  std::vector<std::string> of, parts;
  for (const std::string& p : places) of.push_back(fmt::format("tw_atomic_{}_{}", op, p));
  MicroMaker m("atomics", fmt::format("atomic_{}{}", op, shared ? "_shared" : ""), of);
  std::string body;
  int arg = 0;
  for (const DType t : types_of(op)) {
    const auto how =
        is_float(t) && op != "exch" ? MicroResult::How::numbers : MicroResult::How::bytes;
    const Tensor before = tensor_of_bits(t, {count, kThreads},
                                         [&](int64_t i) { return operand(t, i % kThreads, 0); });
    const Tensor value = tensor_of_bits(t, {kThreads}, [&](int64_t i) { return operand(t, i, 1); });
    const auto expected = [&](int64_t i) {
      return i % 3 == 0 ? operand(t, i, 2) : operand(t, i, 0);
    };
    const Tensor want = tensor_of_bits(t, {count, kThreads}, [&](int64_t i) {
      return after(op, t, operand(t, i % kThreads, 0), operand(t, i % kThreads, 1),
                   expected(i % kThreads));
    });
    parts.clear();
    for (const std::string& f : of) parts.push_back(fmt::format("{} {}", f, name(t)));
    m.input(before).input(value).input(tensor_of_bits(t, {kThreads}, expected));
    m.output(before, parts).output(want, parts, how);
    body += fmt::format(
        "  {{\n    {0}* m = {1};\n", name(t),
        shared ? fmt::format("({}*)tw_shared()", name(t)) : fmt::format("x{}", arg + 4));
    body += fmt::format("    for (int i = 0; i < {}; ++i) m[i * 32 + t] = x{}[i * 32 + t];\n",
                        count, arg);
    for (int64_t p = 0; p < count; ++p)
      body += fmt::format("    x{0}[{1} + t] = {2}(m + {1} + t, x{3}[t]{4});\n", arg + 3,
                          p * kThreads, of[static_cast<size_t>(p)], arg + 1,
                          op == "cas" ? fmt::format(", x{}[t]", arg + 2) : "");
    if (shared)
      body += fmt::format(
          "    for (int i = 0; i < {}; ++i) x{}[i * 32 + t] = m[i * 32 + t];\n"
          "    tw_sync();\n",
          count, arg + 4);
    body += "  }\n";
    arg += 5;
  }
  if (shared) m.shared(count * kThreads * 8);
  return m.make(1, static_cast<int>(kThreads), body);
}

/// All threads of two blocks on one element.
MicroKernel contended_micro() {
  const char* const ops[] = {"add", "min", "max", "and", "or", "xor"};
  constexpr int64_t kAll = 128;
  MicroMaker m("atomics", "atomic_contended", {});
  std::string body;
  for (const DType t : {i32, u32, i64, u64}) {
    const Tensor value = tensor_of_bits(t, {kAll}, [&](int64_t i) { return operand(t, i, 1); });
    const Tensor before = tensor_of_bits(t, {6}, [&](int64_t i) { return operand(t, i, 0); });
    std::vector<std::string> parts;
    const size_t arg = static_cast<size_t>(t == i32 ? 0 : t == u32 ? 2 : t == i64 ? 4 : 6);
    for (size_t k = 0; k < 6; ++k) {
      parts.push_back(fmt::format("{} {}", ops[k], name(t)));
      body +=
          fmt::format("  tw_atomic_{0}_relaxed_device(x{1} + {2}, x{3}[tw_block() * 64 + t]);\n",
                      ops[k], arg + 1, k, arg);
    }
    m.input(value).changed(before,
                           tensor_of_bits(t, {6},
                                          [&](int64_t k) {
                                            uint64_t x = operand(t, k, 0);
                                            for (int64_t i = 0; i < kAll; ++i)
                                              x = after(ops[k], t, x, operand(t, i, 1), 0);
                                            return x;
                                          }),
                           parts);
  }
  return m.make(2, 64, body);
}

/// Sums that are subnormal, in global and in shared memory. Those of f32 in global memory are zeros
/// (PTX ISA, atom).
MicroKernel subnormal_micro() {
  MicroMaker m("subnormals", "atomic_add_subnormals", {});
  std::string body;
  for (const DType t : {f32, f64}) {
    const double unit = t == f32 ? 0x1p-149 : 0x1p-1074;
    const auto a = [&](int64_t i) { return unit * double(i * 1000 + 1); };
    const auto b = [&](int64_t i) { return unit * double(7 - i * 300); };
    const Tensor sum = tensor_of(t, {2, kThreads}, [&](int64_t i) {
      return t == f32 && i < kThreads ? 0.0 : a(i % kThreads) + b(i % kThreads);
    });
    const int arg = t == f32 ? 0 : 3;
    m.input(tensor_of(t, {kThreads}, a)).input(tensor_of(t, {kThreads}, b));
    m.output(sum, {fmt::format("global {}", name(t)), fmt::format("shared {}", name(t))});
    body += fmt::format(R"(  {{
    {0}* m = ({0}*)tw_shared() + {1} * 32;
    x{4}[t] = x{2}[t];
    m[t] = x{2}[t];
    tw_atomic_add_relaxed_block(x{4} + t, x{3}[t]);
    tw_atomic_add_relaxed_block(m + t, x{3}[t]);
    x{4}[32 + t] = m[t];
  }}
)",
                        name(t), t == f32 ? 0 : 1, arg, arg + 1, arg + 2);
  }
  return m.shared(512).make(1, static_cast<int>(kThreads), body);
}

}  // namespace

std::vector<MicroKernel> atomic_micros() {
  std::vector<MicroKernel> all;
  for (const char* op : kOps) {
    for (const bool shared : {false, true}) all.push_back(atomic_micro(op, shared));
  }
  all.push_back(contended_micro());
  all.push_back(subnormal_micro());
  return all;
}

}  // namespace tw::test
