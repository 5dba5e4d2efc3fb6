#include "tw/runtime/launch.h"

#include <algorithm>
#include <atomic>
#include <random>
#include <set>

#include "tw/base/error.h"
#include "tw/runtime/device.h"
#include "tw/runtime/overlap.h"

#include "tests/support/expect_error.h"

namespace tw {

static CpuMachine machine() {
  CpuMachine m = machine_named("avx2");
  m.l3 = 1 << 20;
  m.cores = 4;
  return m;
}

/// A [M,K] and bias [N*2] are read, C [M,N] is written, D [M,8] is read and written; `shift` is a
/// plain integer; K is a multiple of 4.
static Signature example() {
  const Expr m = Expr::symbol(SymbolKind::dim, 0), n = Expr::symbol(SymbolKind::dim, 1),
             k = Expr::symbol(SymbolKind::dim, 2);
  LaunchSpec s;
  s.dims = {{"M", 1}, {"N", 1}, {"K", 4}, {"shift", 1}};
  s.args = {{"A", f32, 2, false, true, {m, k}},
            {"C", f32, 2, true, false, {m, n}},
            {"bias", bf16, 1, false, true, {n * 2}},
            {"D", i32, 2, true, true, {m, Expr(8)}}};
  s.grid = {cdiv(m, 4), n};
  return Signature("demo", s, machine(), {});
}

struct Example {
  Signature signature = example();
  Tensor a, bias, c, d;
  int64_t shift = 3;
  explicit Example(int64_t m = 6, int64_t n = 5, int64_t k = 8)
      : a(host_tensor(f32, {m, k})),
        bias(host_tensor(bf16, {2 * n})),
        c(host_tensor(f32, {m, n})),
        d(host_tensor(i32, {m, 8})) {}
  Call call() const {
    const TensorView in[] = {a, bias}, out[] = {c, d};
    const DimValue dims[] = {{"shift", shift}};
    return Call(signature, in, out, dims);
  }
  std::string facts() const { return to_string(call().specialisation(), signature.arg_names()); }
};

/// The arguments as an entry sees them.
struct Seen {
  std::vector<const void*> data;
  std::vector<int64_t> dims, strides;
  bool scratch_aligned = true;
  std::atomic<int64_t> tasks{0};
};
static thread_local Seen* seen = nullptr;

static int record(const TwArgs* args) {
  seen->data.assign(args->data, args->data + 4);
  seen->dims.assign(args->dims, args->dims + 4);
  seen->strides.assign(args->strides, args->strides + 7);
  args->host->par(
      args->host, 10,
      [](void* ctx, int64_t lo, int64_t hi, void* scratch) {
        Seen& s = *static_cast<Seen*>(ctx);
        s.tasks += hi - lo;
        s.scratch_aligned &= reinterpret_cast<uintptr_t>(scratch) % 64 == 0;
      },
      seen);
  return 0;
}

TEST(Launch, AnEntrySeesTheArgumentsInDeclarationOrder) {
  Example e;
  Tensor wide = host_tensor(f32, {8, 12});
  e.a = wide.transpose(0, 1).slice(0, 0, 12, 2);
  ThreadPool pool(2);
  Seen s;
  seen = &s;
  e.call().run(record, 100, pool, 0, {});
  EXPECT_EQ(s.data, (std::vector<const void*>{e.a.view().data, e.c.view().data, e.bias.view().data,
                                              e.d.view().data}));
  EXPECT_EQ(s.dims, (std::vector<int64_t>{6, 5, 8, 3}));
  EXPECT_EQ(s.strides, (std::vector<int64_t>{2, 12, 5, 1, 1, 8, 1}));
  EXPECT_EQ(s.tasks, 10);
  EXPECT_TRUE(s.scratch_aligned);
}

TEST(Launch, AnEmptyGridRunsNothing) {
  Example e(0, 5, 8);
  EXPECT_TRUE(e.call().empty_grid());
  ThreadPool pool(1);
  Seen s;
  seen = &s;
  e.call().run(record, 0, pool, 0, {});
  EXPECT_TRUE(s.data.empty());
  EXPECT_FALSE(Example(6, 5, 0).call().empty_grid()) << "an empty sum still writes zeros";
}

TEST(Launch, AFailingEntryIsAnInternalError) {
  ThreadPool pool(1);
  TW_EXPECT_ERROR(InternalError, "demo: the kernel returned 7",
                  [&] { Example().call().run([](const TwArgs*) { return 7; }, 0, pool, 0, {}); });
}

TEST(Launch, FactsFollowTheLayout) {
  EXPECT_EQ(Example().facts(),
            "A f32 rank 2 unit 1 aligned; C f32 rank 2 unit 1; bias bf16 rank 1 unit 0 aligned; "
            "D i32 rank 2 unit 1 aligned; fits32");
  Example e;
  e.a = host_tensor(f32, {8, 6}).transpose(0, 1);
  EXPECT_EQ(e.call().specialisation().params[0], (ParamFacts{f32, 2, 0, 0, false}));
  e.a = host_tensor(f32, {1, 8}).expand({6, 8});
  EXPECT_EQ(e.call().specialisation().params[0], (ParamFacts{f32, 2, 1, 1, true}));
  e.a = host_tensor(f32, {6, 17}).slice(1, 1, 17, 2);
  EXPECT_EQ(e.call().specialisation().params[0], (ParamFacts{f32, 2, -1, 0, false}));
  e.a = host_tensor(f32, {6, 12}).slice(1, 1, 9);
  EXPECT_EQ(e.call().specialisation().params[0], (ParamFacts{f32, 2, 1, 0, false}));
}

TEST(Launch, OfGpusWholeRunsAreFactsAndSizesAreNot) {
  Example e;
  e.signature = Signature("demo", e.signature.spec(), {});
  EXPECT_EQ(e.facts(),
            "A f32 rank 2 unit 1 aligned whole; C f32 rank 2 unit 1; "
            "bias bf16 rank 1 unit 0 aligned; D i32 rank 2 unit 1 aligned whole; fits64");
  e.a = host_tensor(f32, {6, 12}).slice(1, 0, 8);
  EXPECT_TRUE(e.call().specialisation().params[0].whole) << "whatever the stride of rows is";
  e.a = host_tensor(f32, {8, 6}).transpose(0, 1);
  EXPECT_FALSE(e.call().specialisation().params[0].whole) << "columns of 6 elements";
}

TEST(Launch, ExtentsOfOneSelectNoOtherVariant) {
  const Example many(6, 5, 8);
  const Specialisation want = many.call().specialisation();
  Example one(1, 5, 8);
  EXPECT_EQ(one.call().specialisation(), want);
  one.a = host_tensor(f32, {77, 8}).slice(0, 3, 4).expand({1, 8});
  EXPECT_EQ(one.call().specialisation(), want) << "whatever the stride of the axis is";
  TensorView odd = one.a;
  odd.strides[0] = int64_t{1} << 62;
  one.a = Tensor(odd, std::make_shared<Tensor>(one.a));
  EXPECT_EQ(one.call().specialisation(), want);
}

TEST(Launch, LargeDimsThatPassedAreNotCheckedAgain) {
  Example e(6, 5, 8);
  int checks = 0;
  const auto check = [&](std::span<const int64_t> dims) {
    ++checks;
    if (dims[1] == 7) throw UserError("an index is too large", "take less");
  };
  e.signature = Signature("demo", e.signature.spec(), {.limit = 5, .check = check});
  for (int i = 0; i < 3; ++i) (void)e.call();
  EXPECT_EQ(checks, 1);
  e.shift = 4;
  (void)e.call();
  EXPECT_EQ(checks, 2) << "of other dims nothing is known";
  e.shift = 3;
  (void)e.call();
  EXPECT_EQ(checks, 2);
  Example large(6, 7, 8);
  large.signature = e.signature;
  for (int i = 0; i < 2; ++i) EXPECT_THROW((void)large.call(), UserError);
  EXPECT_EQ(checks, 4) << "what failed fails again";
  Example small(2, 5, 4);
  small.signature = e.signature;
  (void)small.call();
  EXPECT_EQ(checks, 4);
}

TEST(Launch, LongOffsetsAndLargeOutputsAreFacts) {
  Example e;
  EXPECT_TRUE(e.call().specialisation().fits32);
  EXPECT_FALSE(e.call().specialisation().streaming);
  // Only the address arithmetic matters: nothing is read.
  TensorView far = e.a;
  far.data = reinterpret_cast<void*>(uintptr_t{1} << 45);
  far.strides[0] = (int64_t{1} << 29) / 5 - 8;
  e.a = Tensor(far, std::make_shared<Tensor>(e.a));
  EXPECT_TRUE(e.call().specialisation().fits32);
  far.strides[0] += 8;
  e.a = Tensor(far, std::make_shared<Tensor>(e.a));
  EXPECT_FALSE(e.call().specialisation().fits32);
  far.strides[0] = -far.strides[0] - 8;
  e.a = Tensor(far, std::make_shared<Tensor>(e.a));
  EXPECT_FALSE(e.call().specialisation().fits32) << "negative offsets count too";

  Example large(4096, 8, 4);  // writes 2 * 128 KB, the share of a core
  EXPECT_TRUE(large.call().specialisation().streaming);
  EXPECT_FALSE(Example(4095, 8, 4).call().specialisation().streaming);

  CpuMachine vast = machine();
  vast.l3 = int64_t{480} << 20;
  Example many(1 << 19, 8, 4);  // writes 2 * 16 MB, less than the share of a core, but enough
  many.signature = Signature("demo", many.signature.spec(), vast, {});
  EXPECT_TRUE(many.call().specialisation().streaming);
  many = Example((1 << 19) - 1, 8, 4);
  many.signature = Signature("demo", many.signature.spec(), vast, {});
  EXPECT_FALSE(many.call().specialisation().streaming);
}

TEST(IndexCases, IDX_05) {
  // An aligned and a misaligned call select different variants.
  Example e(6, 1, 8);
  Tensor bytes = host_tensor(u8, {64});
  auto bias_at = [&](int64_t offset) {
    TensorView v{bytes.data<char>() + offset, bf16, {2}, {1}};
    e.bias = Tensor(v, std::make_shared<Tensor>(bytes));
    return e.call().specialisation().params[2].aligned;
  };
  EXPECT_TRUE(bias_at(0));
  EXPECT_FALSE(bias_at(2));
  EXPECT_TRUE(bias_at(16));
  TW_EXPECT_ERROR(UserError, "wanted a multiple of 2 bytes", [&] { bias_at(3); });
}

TEST(Launch, WrongCountsTypesAndExtentsAreNamed) {
  auto wrong = [](const char* part, auto&& spoil) {
    Example e;
    spoil(e);
    TW_EXPECT_ERROR(UserError, part, [&] { e.call(); });
  };
  wrong("demo: input 'A' is f64[6,8] strides [8,1]: wanted f32 of rank 2", [](Example& e) {
    e.a = host_tensor(f64, {6, 8});
  });
  wrong("output 'C' is f32[6,5,1]", [](Example& e) { e.c = host_tensor(f32, {6, 5, 1}); });
  wrong("dim 'M' is 6 in 'A' and 7 in 'C'", [](Example& e) { e.c = host_tensor(f32, {7, 5}); });
  wrong("dim 'K' is 6 in 'A': promised a multiple of 4", [](Example& e) {
    e.a = host_tensor(f32, {6, 6});
  });
  wrong("input 'bias' is bf16[11] strides [1]: wanted N*2 = 10 for axis 0",
        [](Example& e) { e.bias = host_tensor(bf16, {11}); });
  wrong("output 'D' is i32[6,9] strides [9,1]: wanted 8 = 8 for axis 1", [](Example& e) {
    e.d = host_tensor(i32, {6, 9});
  });
  wrong("dim 'shift' is -1: wanted >= 0", [](Example& e) { e.shift = -1; });
  auto with = [](TensorView v) { return Tensor(v, nullptr); };
  wrong("has 1 strides for 2 dims", [&](Example& e) {
    e.a = with({e.a.view().data, f32, {6, 8}, {1}});
  });
  wrong("wanted extents >= 0", [&](Example& e) { e.a = with({nullptr, f32, {6, -8}, {1, 1}}); });
  wrong("without memory", [&](Example& e) { e.a = with({nullptr, f32, {6, 8}, {8, 1}}); });
  wrong("past 2^63", [&](Example& e) {
    e.a = with({e.a.view().data, f32, {6, 8}, {int64_t{1} << 61, 1}});
  });
}

TEST(Launch, PackedTensorsHaveRowsOfBytes) {
  const Expr m = Expr::symbol(SymbolKind::dim, 0), n = Expr::symbol(SymbolKind::dim, 1);
  LaunchSpec s;
  s.dims = {{"M", 1}, {"N", 1}};
  s.args = {{"Q", i4, 2, false, true, {m, n}},
            {"S", f32, 2, false, true, {m, cdiv(n, 32)}},
            {"Y", e2m1, 2, true, false, {m, n}}};
  s.grid = {m};
  const Signature signature("packed", s, machine(), {});
  const Tensor q = host_tensor(i4, {4, 40}), y = host_tensor(e2m1, {4, 40});
  const auto call = [&](const TensorView& weights, int64_t scales) {
    const Tensor kept = host_tensor(f32, {4, scales});
    const TensorView in[] = {weights, kept}, out[] = {y};
    return Call(signature, in, out, {}).specialisation();
  };
  EXPECT_EQ(call(q, 2).params[0].unit_axis, 1);
  EXPECT_FALSE(call(q, 2).params[0].aligned) << "rows of 20 bytes";
  TW_EXPECT_ERROR(UserError, "packed: input 'S' is f32[4,3] strides [3,1]: wanted cdiv(N, 32) = 2",
                  [&] { call(q, 3); });
  TensorView odd = q;
  odd.strides[0] = 39;
  TW_EXPECT_ERROR(UserError,
                  "input 'Q' is i4[4,40] strides [39,1]: rows of packed elements begin "
                  "with a byte, so stride 39 must be a multiple of 2",
                  [&] { call(odd, 2); });
  odd.strides = {80, 2};
  TW_EXPECT_ERROR(UserError, "packed elements need stride 1 along the last axis",
                  [&] { call(odd, 2); });
}

TEST(Launch, WrongCallsAreNamed) {
  Example e;
  const TensorView in[] = {e.a, e.bias}, out[] = {e.c, e.d};
  auto call = [&](std::span<const TensorView> i, std::span<const TensorView> o,
                  std::vector<DimValue> dims) {
    return [&, i, o, dims] { Call(e.signature, i, o, dims); };
  };
  const std::span<const TensorView> ins(in), outs(out);
  TW_EXPECT_ERROR(UserError, "1 inputs: wanted 2 (A, bias)", call(ins.first(1), outs, {}));
  TW_EXPECT_ERROR(UserError, "1 outputs: wanted 2 (C, D)", call(ins, outs.first(1), {}));
  TW_EXPECT_ERROR(UserError, "dim 'shift' is determined by no tensor", call(ins, outs, {}));
  TW_EXPECT_ERROR(UserError, "no dim 'Q'", call(ins, outs, {{"Q", 1}}));
  TW_EXPECT_ERROR(UserError, "dim 'M' is 9 in the call and 6 in 'A'",
                  call(ins, outs, {{"shift", 1}, {"M", 9}}));
  EXPECT_NO_THROW(call(ins, outs, {{"shift", 1}, {"M", 6}})());
}

TEST(Launch, OutputsOverlapNothing) {
  Tensor memory = host_tensor(f32, {400});
  auto matrix = [&](int64_t from, std::vector<int64_t> dims, std::vector<int64_t> strides) {
    return Tensor({memory.data<float>() + from, f32, std::move(dims), std::move(strides)},
                  std::make_shared<Tensor>(memory));
  };
  Example e;
  e.a = matrix(0, {6, 8}, {8, 1});
  e.c = matrix(47, {6, 5}, {5, 1});
  TW_EXPECT_ERROR(UserError, "output 'C' overlaps input 'A'", [&] { e.call(); });
  e.c = matrix(48, {6, 5}, {5, 1});
  EXPECT_NO_THROW(e.call());

  // Columns 0..7 and 8..12 of one matrix share no element; 7..11 do.
  e.a = matrix(0, {6, 8}, {13, 1});
  e.c = matrix(8, {6, 5}, {13, 1});
  EXPECT_NO_THROW(e.call());
  e.c = matrix(7, {6, 5}, {13, 1});
  TW_EXPECT_ERROR(UserError, "output 'C' overlaps input 'A'", [&] { e.call(); });
  e.c = matrix(9, {6, 5}, {13, 1});
  TW_EXPECT_ERROR(UserError, "output 'C' overlaps input 'A'", [&] { e.call(); });
  e.c = matrix(8 + 5 * 13, {6, 5}, {-13, 1});
  EXPECT_NO_THROW(e.call()) << "rows backwards";

  Example d;
  d.d = d.c.bitcast(i32).slice(0, 0, 1).expand({6, 5}).slice(1, 0, 1).expand({6, 8});
  TW_EXPECT_ERROR(UserError, "output 'D' is i32[6,8] strides [0,0]: its elements overlap",
                  [&] { d.call(); });
  d = Example();
  d.c = matrix(0, {6, 5}, {4, 1});
  TW_EXPECT_ERROR(UserError, "output 'C' is f32[6,5] strides [4,1]: its elements overlap",
                  [&] { d.call(); });
  d.c = matrix(0, {6, 5}, {8, 1});
  d.d = matrix(40, {6, 8}, {8, 1}).bitcast(i32);
  TW_EXPECT_ERROR(UserError, "output 'C' overlaps output 'D'", [&] { d.call(); });
}

TEST(Launch, InputsMayOverlapEachOther) {
  LaunchSpec s;
  const Expr n = Expr::symbol(SymbolKind::dim, 0);
  s.dims = {{"N", 1}};
  s.args = {{"x", f32, 1, false, true, {n}},
            {"y", f32, 1, false, true, {n}},
            {"z", f32, 1, true, false, {n}}};
  s.grid = {n};
  Signature signature("add", s, machine(), {});
  Tensor x = host_tensor(f32, {9}), z = host_tensor(f32, {8});
  const TensorView in[] = {x.slice(0, 0, 8), x.slice(0, 1, 9)}, out[] = {z};
  EXPECT_NO_THROW(Call(signature, in, out, {}));
}

TEST(Launch, GridsThatCannotBeCountedAreRefused) {
  LaunchSpec s;
  s.dims = {{"N", 1}};
  const Expr n = Expr::symbol(SymbolKind::dim, 0);
  s.args = {{"z", f32, 1, true, false, {8}}};
  s.grid = {n, n, 3};
  Signature signature("large", s, machine(), {});
  Tensor z = host_tensor(f32, {8});
  const TensorView out[] = {z};
  const auto call = [&](int64_t extent) {
    const DimValue dims[] = {{"N", extent}};
    return Call(signature, {}, out, dims).empty_grid();
  };
  EXPECT_FALSE(call(int64_t{1} << 30));
  EXPECT_TRUE(call(0));
  TW_EXPECT_ERROR(UserError, "a grid of 4294967296 x 4294967296 x 3 instances",
                  [&] { call(int64_t{1} << 32); });
}

/// Whether two views share an element, by looking at every one.
static bool share(const TensorView& a, const TensorView& b) {
  auto offsets = [](const TensorView& t) {
    std::set<int64_t> all;
    for (int64_t i = 0; i < t.count(); ++i) {
      const int64_t at = reinterpret_cast<int64_t>(t.data) + t.offset(i) * bytes(t.dtype);
      for (int64_t b = 0; b < bytes(t.dtype); ++b) all.insert(at + b);
    }
    return all;
  };
  const auto x = offsets(a), y = offsets(b);
  return std::any_of(x.begin(), x.end(), [&](int64_t o) { return y.count(o) > 0; });
}

TEST(Overlap, IsSoundOnRandomViews) {
  std::mt19937 random(7);
  auto pick = [&](int lo, int hi) {
    return std::uniform_int_distribution<int64_t>(lo, hi)(random);
  };
  std::vector<char> memory(1 << 16);
  int interleaved = 0, nested = 0;
  for (int repeat = 0; repeat < 20000; ++repeat) {
    TensorView v[2];
    const int64_t pitch = pick(1, 12);
    for (TensorView& t : v) {
      t.dtype = pick(0, 1) ? f32 : i8;
      const int64_t scale = t.dtype == i8 ? 4 : 1;
      t.dims = {pick(1, 4), pick(1, 3)};
      t.strides = {pick(0, 1) ? pitch * scale : pick(-9, 9), pick(-2, 3)};
      t.data = memory.data() + (1 << 15) + 4 * pick(0, 12);
    }
    if (interleave(v[0], v[1])) {
      ++interleaved;
      ASSERT_FALSE(share(v[0], v[1])) << to_string(v[0]) << " " << to_string(v[1]);
    }
    if (!overlaps_itself(v[0])) {
      ++nested;
      std::set<int64_t> offsets;
      for (int64_t i = 0; i < v[0].dims[0]; ++i) {
        for (int64_t j = 0; j < v[0].dims[1]; ++j) {
          ASSERT_TRUE(offsets.insert(i * v[0].strides[0] + j * v[0].strides[1]).second)
              << to_string(v[0]);
        }
      }
    }
  }
  EXPECT_GT(interleaved, 200);
  EXPECT_GT(nested, 2000);
}

}  // namespace tw
