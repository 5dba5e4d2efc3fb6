#include <numeric>
#include <regex>
#include <thread>

#include "tw/base/error.h"
#include "tw/ir/print.h"

#include "tests/jit/cache_support.h"
#include "tests/jit/ejected.h"
#include "tests/jit/scale.h"
#include "tests/support/expect_error.h"
#include "tests/support/guarded.h"

namespace tw::test {
namespace {

/// y = x * w + w * times, w the sum of the row of `weights`: has scratch, a promise, a dim of no
/// tensor, and products that are contracted.
Program add_sums(const std::string& name = "add_sums") {
  return parse(fmt::format(R"(program {}
dim M
dim N multiple_of 4
dim times
in x: f32[M, N]
in weights: f32[M, 16]
out y: f32[M, N]
grid (M)
%0 = load weights{{pid0, 0}} : f32[1,16]
%1 = reduce sum %0 axis 1 : f32[1,1]
%2 = full 0 : f32[1,64]
%6 = for i0 in 0..times step 1 carry (%3 = %2) : f32[1,64] {{
  %4 = add %3, %1 : f32[1,64]
  yield %4
}}
for i1 in 0..cdiv(N, 64) step 1 {{
  %7 = load x{{pid0, i1*64}} : f32[1,64]
  %8 = mul %7, %1 : f32[1,64]
  %9 = add %8, %6 : f32[1,64]
  store %9 to y{{pid0, i1*64}}
}}
)",
                           name));
}

struct Tensors {
  Guarded x{f32, {5, 100}, {120, 1}}, weights{f32, {5, 16}}, y{f32, {5, 100}};
  Tensors() {
    x.fill([](int64_t i) { return static_cast<double>(i) / 3; });
    weights.fill([](int64_t i) { return 1.0 / static_cast<double>(i + 1); });
  }
  std::vector<TensorView> all() const { return {x, weights, y}; }
};

std::string wanted(const Device& device = Device::open("cpu:0")) {
  const Tensors t;
  compile(add_sums(), device)({t.x, t.weights}, {t.y}, {{"times", 3}});
  return t.y.contents();
}

class Eject : public testing::Test {
 protected:
  Eject() { compile(add_sums(), Device::open("cpu:0")).eject(source()); }
  std::string source() const { return folder_.path() + "/own.cpp"; }
  EjectedFunction built(const std::vector<std::string>& flags = {"-O2"}) const {
    return EjectedFunction(find_compiler(), add_sums(), source(), flags);
  }
  TempCache folder_;
};

/// What a caller's pool may do: a thread for every instance, in no order.
void one_by_one(void* pool, int64_t n, void (*fn)(void*, int64_t, int64_t), void* ctx) {
  *static_cast<int64_t*>(pool) = n;
  std::vector<std::thread> threads;
  for (int64_t i = n; i-- > 0;) threads.emplace_back(fn, ctx, i, i + 1);
  for (std::thread& t : threads) t.join();
}

TEST_F(Eject, GivesTheBitsOfTheKernel) {
  const std::string want = wanted();
  for (const char* level : {"-O0", "-O2", "-O3"}) {
    const Tensors t;
    EXPECT_EQ(built({level, "-std=c++20"})(t.all(), {3}), 0) << level;
    EXPECT_EQ(t.y.contents(), want) << level;
    EXPECT_EQ(t.y.damage(), "") << level;
  }
}

TEST_F(Eject, EachIsaGivesTheBitsOfItsKernel) {
  std::vector<std::string> isas = {"generic"};
  const std::string widest = detect_cpu().isa;
  if (widest == "avx512") isas.push_back("avx2");
  if (widest != "generic") isas.push_back(widest);
  for (const std::string& isa : isas) {
    const Device device = Device::open_as(machine_named(isa));
    compile(add_sums(), device).eject(source());
    const Tensors t;
    EXPECT_EQ(built()(t.all(), {3}), 0) << isa;
    EXPECT_EQ(t.y.contents(), wanted(device)) << isa;
  }
}

TEST_F(Eject, RunsOnTheThreadsOfItsCaller) {
  const Tensors t;
  int64_t instances = 0;
  EXPECT_EQ(built()(t.all(), {3}, one_by_one, &instances), 0);
  EXPECT_EQ(instances, 5);
  EXPECT_EQ(t.y.contents(), wanted());
}

TEST_F(Eject, RefusesArgumentsThatItIsNotMadeFor) {
  const EjectedFunction f = built();
  const Tensors t;
  Guarded odd(f32, {5, 99}), apart(f32, {5, 100}, {200, 2}), fewer(f32, {4, 100});
  Guarded narrow(f32, {5, 15}), backward(f32, {5, 100}, {-100, 1});
  EXPECT_EQ(f({t.x, t.weights, fewer}, {3}), 1) << "two values of M";
  EXPECT_EQ(f({t.x, narrow, t.y}, {3}), 1) << "a constant extent";
  EXPECT_EQ(f({odd, t.weights, odd}, {3}), 1) << "a promise";
  EXPECT_EQ(f(t.all(), {-1}), 1) << "a negative dim";
  TensorView negative = t.x;
  negative.dims[0] = -5;
  EXPECT_EQ(f({negative, t.weights, t.y}, {3}), 1);
  EXPECT_EQ(f({apart, t.weights, t.y}, {3}), 2);
  EXPECT_EQ(f({t.x, t.weights, apart}, {3}), 2);
  EXPECT_EQ(t.y.unwritten(), 500) << "nothing was done";
  EXPECT_EQ(f({t.x, t.weights, backward}, {3}), 0) << "only the last axis needs stride 1";
}

TEST_F(Eject, AxesOfAtMostOneElementMayHaveAnyStride) {
  const EjectedFunction f = built();
  Guarded weights(f32, {5, 16}), no_columns(f32, {5, 0}, {1, 7});
  EXPECT_EQ(f({no_columns, weights, no_columns}, {3}), 0);
  const Kernel k = compile(scale(3), Device::open("cpu:0"));
  k.eject(source());
  Guarded x(f32, {1}, {9}), y(f32, {1}, {-4});
  x.fill([](int64_t) { return 2; });
  EXPECT_EQ(EjectedFunction(find_compiler(), k.program(), source())({x, y}), 0);
  EXPECT_EQ(get(y, 0), 6);
}

TEST_F(Eject, SaysWhenMemoryOrInstructionsAreMissing) {
  const Tensors t;
  std::ofstream(source(), std::ios::app)
      << "extern \"C\" void* __wrap_aligned_alloc(size_t, size_t);\n"
         "void* __wrap_aligned_alloc(size_t, size_t) { return nullptr; }\n";
  const EjectedFunction starved = built({"-O2", "-Wl,--wrap=aligned_alloc"});
  EXPECT_EQ(starved(t.all(), {3}), 3);
  int64_t instances = 0;
  EXPECT_EQ(starved(t.all(), {3}, one_by_one, &instances), 3);
  EXPECT_EQ(built({"-O2", "-D__builtin_cpu_supports(x)=0"})(t.all(), {3}), 4);
  EXPECT_EQ(t.y.unwritten(), 500);
}

TEST_F(Eject, FlagsThatLoseSpecialValuesAreRefused) {
  for (const char* flag : {"-ffast-math", "-ffinite-math-only"}) {
    TW_EXPECT_ERROR(std::runtime_error, "keeps NaN, infinities and signed zeros", [&] {
      built({"-O2", flag});
    });
  }
  EXPECT_NO_THROW(built({"-O2", "-fno-finite-math-only"}));
}

TEST_F(Eject, AWordOfCppGetsAnUnderscore) {
  const Program p = add_sums("default");
  compile(p, Device::open("cpu:0")).eject(source());
  const Tensors t;
  EXPECT_EQ(EjectedFunction(find_compiler(), p, source(), {"-O2"}, "default_")(t.all(), {3}), 0);
  EXPECT_EQ(t.y.contents(), wanted());
}

TEST_F(Eject, AMacroGetsAnUnderscore) {
  std::string text = print(add_sums("linux"));
  for (const auto& [name, macro] : {std::pair{"weights", "unix"},
                                    {"times", "NULL"},
                                    {"x", "i386"},
                                    {"y", "SIZE_MAX"},
                                    {"M", "RAND_MAX"},
                                    {"N", "BIG_ENDIAN"}}) {
    text = std::regex_replace(text, std::regex(fmt::format("\\b{}\\b", name)), macro);
  }
  const Program p = parse(text);
  compile(p, Device::open("cpu:0")).eject(source());
  for (const char* standard : {"-std=gnu++17", "-std=c++17"}) {
    const Tensors t;
    const EjectedFunction f(find_compiler(), p, source(), {"-O2", standard}, "linux_");
    EXPECT_EQ(f(t.all(), {3}), 0);
    EXPECT_EQ(t.y.contents(), wanted());
  }
}

TEST_F(Eject, IsCalledAsItsOwnerWants) {
  const Kernel k = compile(add_sums(), Device::open("cpu:0"));
  const Tensors t;
  k.eject(source(), {t.x, t.weights}, {t.y}, {{"times", 3}}, {.name = "my_sums"});
  const EjectedFunction f(find_compiler(), add_sums(), source(), {"-O2"}, "my_sums");
  EXPECT_EQ(f(t.all(), {3}), 0);
  EXPECT_EQ(t.y.contents(), wanted());
  for (const char* name : {"my-sums", "2sums", "sums()", "register", "NULL", "launch", " "}) {
    TW_EXPECT_ERROR(UserError, fmt::format("eject: '{}' is no name for a function; wanted", name),
                    [&] { k.eject(source(), {.name = name}); });
  }
}

TEST_F(Eject, SaysWhatItsTilesWereChosenFor) {
  const Kernel k = compile(scale(3), Device::open("cpu:0"));
  k.eject(source(), {.made_for = "n=64"});
  EXPECT_NE(read(folder_.path() + "/own.h").find("/// Its tiles were chosen for n=64.\n"),
            std::string::npos);
  k.eject(source());
  EXPECT_EQ(read(folder_.path() + "/own.h").find("chosen"), std::string::npos);
}

TEST_F(Eject, TakesTheLayoutOfTensors) {
  const Kernel k = compile(scale(3), Device::open("cpu:0"));
  Guarded x(f32, {70}, {2}), y(f32, {70}, {-3}), want(f32, {70}), dense(f32, {70});
  x.fill([](int64_t i) { return static_cast<double>(i); });
  k({x}, {want});
  k.eject(source(), {x}, {y});
  const EjectedFunction f(find_compiler(), k.program(), source());
  EXPECT_EQ(f({x, y}), 0);
  EXPECT_EQ(y.contents(), want.contents());
  EXPECT_EQ(y.damage(), "");
  EXPECT_EQ(f({want, dense}), 0) << "a stride of 1 is a stride, too";
  Guarded one(f32, {1});
  k.eject(source(), {x.view()}, {y.view()});
  TW_EXPECT_ERROR(UserError, "dim 'N' is 70 in 'x' and 1 in 'y'",
                  [&] { k.eject(source(), {x}, {one}); });
}

TEST_F(Eject, StreamsWhereItIsToldTo) {
  const Kernel k = compile(scale(3), Device::open_as(machine_named("avx2")));
  auto text = [&](bool streaming) {
    k.eject(source(), {.streaming = streaming});
    return read(folder_.path() + "/own.h");
  };
  EXPECT_NE(text(true).find("Stores go around the caches"), std::string::npos);
  EXPECT_EQ(text(false).find("Stores go around the caches"), std::string::npos);
}

TEST_F(Eject, RefusesPathsThatItCannotWrite) {
  const Kernel k = compile(scale(3), Device::open("cpu:0"));
  TW_EXPECT_ERROR(UserError, "eject: 'own.h' is no name of C++ source; wanted a file that ends in",
                  [&] { k.eject("own.h"); });
  TW_EXPECT_ERROR(UserError, "is no name of C++ source", [&] { k.eject(".cpp"); });
  TW_EXPECT_ERROR(UserError,
                  "cannot write '/no/such/folder/own.cpp': No such file or directory; name a file "
                  "in a folder that exists",
                  [&] { k.eject("/no/such/folder/own.cpp"); });
  TW_EXPECT_ERROR(UserError, "an empty Kernel is used", [] { Kernel().eject("own.cpp"); });
}

}  // namespace
}  // namespace tw::test
