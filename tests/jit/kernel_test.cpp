#include "tw/jit/kernel.h"

#include <fstream>
#include <set>
#include <thread>

#include "tw/base/error.h"
#include "tw/jit/module.h"

#include "tests/jit/scale.h"
#include "tests/support/expect_error.h"
#include "tests/support/guarded.h"

namespace tw::test {

TEST(Kernel, RunsOnAnyLengthAndStride) {
  TempCache cache;
  const Kernel k = compile(scale(3), Device::open("cpu:0"));
  for (int64_t n : {0, 1, 63, 64, 65, 1000}) {
    for (int64_t step : {1, 2, -3}) {
      Guarded x(f32, {n}, {step}), y(f32, {n}, {step}, 4);
      x.fill([](int64_t i) { return static_cast<double>(i); });
      k({x}, {y});
      EXPECT_EQ(y.damage(), "");
      for (int64_t i = 0; i < n; ++i) ASSERT_EQ(get(y, i), 3.0 * static_cast<double>(i));
    }
  }
  EXPECT_EQ(cache.litter(), 0);
}

TEST(Kernel, EachVariantIsLoadedOnce) {
  TempCache cache;
  const int before = loaded_modules();
  {
    const Kernel k = compile(scale(4), Device::open("cpu:0"));
    for (int i = 0; i < 5; ++i) EXPECT_EQ(fourth(k, 100 + i), 12);
    EXPECT_EQ(loaded_modules(), before + 1) << "lengths are no facts";
    Tensor x = host_tensor(f32, {200}).slice(0, 0, 200, 2), y = host_tensor(f32, {100});
    k({x}, {y});
    EXPECT_EQ(loaded_modules(), before + 2) << "strides are";
    EXPECT_EQ(fourth(compile(scale(4), Device::open("cpu:0"))), 12);
    EXPECT_EQ(cache.files(".so").size(), 2u) << "another kernel of the same program finds them";
  }
  EXPECT_EQ(loaded_modules(), before) << "modules go with their kernel";
}

TEST(Kernel, ShowsWhatItBecame) {
  TempCache cache;
  const Kernel k =
      compile(scale(5), Device::open("cpu:0"), {.mapping = parse_mapping("cpu1 kc=64")});
  Tensor x = host_tensor(f32, {8}), y = host_tensor(f32, {8});
  EXPECT_EQ(k.mapping(), "cpu1 kc=64");
  EXPECT_EQ(k.program().name, "scale");
  const std::string text = k.source({x}, {y});
  EXPECT_NE(text.find("tw_scale_"), std::string::npos);
  EXPECT_TRUE(cache.files(".so").empty()) << "showing compiles nothing";
  EXPECT_EQ(k.source_path({x}, {y}), "");
  k.prepare({x}, {y});
  const std::string path = k.source_path({x}, {y});
  std::ifstream file(path);
  EXPECT_EQ(std::string((std::istreambuf_iterator<char>(file)), {}), text);
  std::filesystem::remove(path);
  EXPECT_EQ(k.source_path({x}, {y}), "") << "a file that is gone is not named";
}

TEST(Kernel, WrongArgumentsAreNamedBeforeAnythingIsCompiled) {
  TempCache cache;
  const Kernel k = compile(scale(6), Device::open("cpu:0"));
  Tensor x = host_tensor(f32, {8}), y = host_tensor(f32, {9});
  TW_EXPECT_ERROR(UserError, "scale: dim 'N' is 8 in 'x' and 9 in 'y'", [&] { k({x}, {y}); });
  TW_EXPECT_ERROR(UserError, "output 'y' overlaps input 'x'", [&] { k({x}, {x}); });
  TW_EXPECT_ERROR(UserError, "no dim 'Q'", [&] { k.prepare({x}, {x}, {{"Q", 3}}); });
  EXPECT_TRUE(cache.files(".so").empty());
}

TEST(Kernel, ImpossibleOptionsAreRefused) {
  const auto with = [](CompileOptions o) {
    return [o] { compile(scale(6), Device::open("cpu:0"), o); };
  };
  TW_EXPECT_ERROR(UserError, "mapping: kc='0': wanted an integer in",
                  with({.mapping = {.knobs = {{"kc", 0}}}}));
  TW_EXPECT_ERROR(UserError, "mapping: mc='0': wanted an integer in",
                  with({.mapping = {.knobs = {{"mc", 0}}}}));
  TW_EXPECT_ERROR(UserError, "mapping: nc='-1': wanted an integer in",
                  with({.mapping = {.knobs = {{"nc", -1}}}}));
  TW_EXPECT_ERROR(UserError, "mapping: unknown key 'zz'",
                  with({.mapping = {.knobs = {{"zz", 1}}}}));
  TW_EXPECT_ERROR(UserError, "mapping: scheme 'nope'", with({.mapping = {.scheme = "nope"}}));
  TW_EXPECT_ERROR(UserError, "options.threads is -1; wanted a count, or 0", with({.threads = -1}));
}

TEST(Kernel, IndicesBeyondInt64AreRefused) {
  TempCache cache;
  const auto shifted = [](const std::string& by) {
    return parse(
        "program shifted\ndim N\ndim Z\nin x: f32[N]\nout y: f32[N]\n"
        "grid (cdiv(N, 8))\n\n%0 = load x{pid0*8 + " +
            by + "} : f32[8]\nstore %0 to y{pid0*8}\n",
        "f.tw");
  };
  TW_EXPECT_ERROR(UserError, "f.tw:8: error: shifted: a coordinate of 'x'",
                  [&] { compile(shifted("9223372036854775807"), Device::open("cpu:0")); });
  const Kernel k = compile(shifted("Z*Z"), Device::open("cpu:0"));
  Tensor x = host_tensor(f32, {8}), y = host_tensor(f32, {8});
  k({x}, {y}, {{"Z", int64_t{1} << 23}});
  const std::string wanted = "f.tw:8: error: shifted: a coordinate of 'x' ('Z*Z')";
  TW_EXPECT_ERROR(UserError, wanted, [&] { k({x}, {y}, {{"Z", int64_t{1} << 32}}); });
  TW_EXPECT_ERROR(UserError, "a coordinate of 'x'", [&] {
    k.prepare({x}, {y}, {{"Z", INT64_MAX}});
  });
}

TEST(Kernel, NoCompileMakesAMissAnError) {
  TempCache cache;
  const Kernel k = compile(scale(7), Device::open("cpu:0"));
  {
    ScopedEnv no("TW_NO_COMPILE", "1");
    TW_EXPECT_ERROR(UserError, "TW_NO_COMPILE is set and 'scale' is not in the cache '",
                    [&] { fourth(k); });
  }
  EXPECT_EQ(fourth(k), 21) << "a failed build is tried again";
  ScopedEnv no("TW_NO_COMPILE", "1");
  EXPECT_EQ(fourth(scale(7)), 21) << "found on disk";
}

TEST(Kernel, AnObjectWithoutEntryIsOfTheNamedCompiler) {
  TempCache cache;
  const std::string script = cache.path() + "/other";
  std::ofstream(script) << "#!/bin/sh\n"
                           "while [ $# -gt 0 ]; do [ \"$1\" = -o ] && out=$2; shift; done\n"
                           "exec g++ -shared -fPIC -o $out -xc++ /dev/null\n";
  std::filesystem::permissions(script, std::filesystem::perms::owner_all);
  ScopedEnv cxx("TW_CXX", script);
  const std::string wanted = "lacks its entry tw_scale";
  TW_EXPECT_ERROR(EnvError, wanted, [] { fourth(scale(11)); });
  TW_EXPECT_ERROR(EnvError, "made by TW_CXX '" + script, [] { fourth(scale(11)); });
}

TEST(Kernel, KeysHoldOptionsAndMachine) {
  TempCache cache;
  Tensor x = host_tensor(f32, {8}), y = host_tensor(f32, {8});
  std::set<std::string> paths;
  auto add = [&](const CpuMachine& m, CompileOptions o) {
    const Kernel k = compile(scale(8), Device::open_as(m), std::move(o));
    k.prepare({x}, {y});
    paths.insert(k.source_path({x}, {y}));
  };
  const CpuMachine here = detect_cpu();
  CpuMachine other = here;
  other.l2 *= 2;
  add(here, {});
  add(here, {.threads = 1});
  EXPECT_EQ(paths.size(), 1u) << "threads change no text";
  add(here, {.mode = Mode::deterministic});
  add(here, {.mapping = parse_mapping("cpu1 mr=4")});
  add(here, {.debug_info = true});
  add(other, {});
  add(machine_named("generic"), {});
  EXPECT_EQ(paths.size(), 6u);
  EXPECT_EQ(paths.count(""), 0u);
}

TEST(Kernel, LeavesItsStory) {
  TempCache cache;
  fourth(scale(10));
  ScopedEnv dump("TW_DUMP_DIR", cache.path() + "/stories");
  EXPECT_EQ(fourth(scale(10)), 30) << "from the cache, and told all the same";
  std::vector<std::string> names;
  for (const auto& e : std::filesystem::recursive_directory_iterator(cache.path() + "/stories")) {
    if (e.is_directory()) {
      EXPECT_EQ(e.path().filename().string().rfind("scale_", 0), 0u);
    } else {
      EXPECT_GT(e.file_size(), 0u) << e.path();
      names.push_back(e.path().filename());
    }
  }
  std::sort(names.begin(), names.end());
  ASSERT_GE(names.size(), 5u);
  EXPECT_EQ(names[0], "00_canonical.tw");
  EXPECT_EQ(names[1].rfind("01_", 0), 0u);
  EXPECT_EQ(std::vector<std::string>(names.end() - 3, names.end()),
            (std::vector<std::string>{"kernel.cpp", "key.txt", "launch.txt"}));
  setenv("TW_DUMP_DIR", "/proc/nowhere", 1);
  TW_EXPECT_ERROR(EnvError, "TW_DUMP_DIR: '/proc/nowhere/scale_", [] { fourth(scale(10)); });
}

TEST(Kernel, AnEmptyOneIsNamed) {
  TW_EXPECT_ERROR(UserError, "an empty Kernel is used", [] { Kernel()({}, {}); });
}

TEST(Kernel, ExplainsAMiss) {
  TempCache cache;
  Tensor x = host_tensor(f32, {8}), y = host_tensor(f32, {8});
  const Kernel k = compile(scale(9), Device::open("cpu:0"));
  EXPECT_EQ(k.explain_miss({x}, {y}), "no entry is similar\n");
  k.prepare({x}, {y});
  EXPECT_EQ(k.explain_miss({x}, {y}), "");
  Tensor odd = host_tensor(f32, {16}).slice(0, 0, 16, 2);
  EXPECT_EQ(k.explain_miss({odd}, {y}),
            "the most similar entry differs:\n"
            "  it has   specialisation x f32 rank 1 unit 0 aligned; y f32 rank 1 unit 0 aligned; "
            "fits32\n"
            "  wanted   specialisation x f32 rank 1; y f32 rank 1 unit 0 aligned; fits32\n");
  const std::string other = compile(scale(9, "add"), Device::open("cpu:0")).explain_miss({x}, {y});
  EXPECT_NE(other.find("wanted   %2 = add"), std::string::npos) << other;
}

TEST(Kernel, PreparesManyAtOnce) {
  TempCache cache;
  const int before = loaded_modules();
  std::vector<Preparation> all;
  Tensor x = host_tensor(f32, {8}), y = host_tensor(f32, {8});
  for (int i = 0; i < 4; ++i) {
    all.push_back({compile(scale(20 + i), Device::open("cpu:0")), {x}, {y}, {}});
  }
  prepare_all(all);
  EXPECT_EQ(loaded_modules(), before + 4);
  all[2].outputs = {x};
  TW_EXPECT_ERROR(UserError, "output 'y' overlaps input 'x'", [&] { prepare_all(all); });
}

TEST(ProcessCases, PROC_01) {
  TempCache cache;
  EXPECT_EQ(fourth(scale(30)), 90) << "threads run before the workers are forked";
  std::vector<pid_t> workers;
  for (int w = 0; w < 4; ++w) {
    workers.push_back(start_child([w] {
      Tensor x = host_tensor(f32, {8}), y = host_tensor(f32, {8});
      for (int i = 0; i < 8; ++i) {
        compile(scale(100 + 8 * w + i), Device::open("cpu:0")).prepare({x}, {y});
      }
      return fourth(scale(100 + 8 * w)) == 3 * (100 + 8 * w) ? 0 : 1;
    }));
  }
  for (pid_t w : workers) EXPECT_EQ(end_of(w), 0);
  EXPECT_EQ(cache.files(".so").size(), 33u);
}

static std::vector<std::string> bytes_of(const std::vector<std::string>& files) {
  std::vector<std::string> all;
  for (const std::string& path : files) {
    std::ifstream f(path, std::ios::binary);
    all.emplace_back((std::istreambuf_iterator<char>(f)), std::istreambuf_iterator<char>());
  }
  return all;
}

TEST(ProcessCases, PROC_02) {
  constexpr int kPrograms = 20;
  std::vector<std::string> alone, together;
  {
    TempCache cache;
    for (int i = 0; i < kPrograms; ++i) EXPECT_EQ(fourth(scale(i)), 3.0 * i);
    alone = bytes_of(cache.files(".so"));
  }
  TempCache cache;
  std::vector<Kernel> kernels;
  for (int i = 0; i < kPrograms; ++i) kernels.push_back(compile(scale(i), Device::open("cpu:0")));
  std::atomic<int> wrong{0};
  std::vector<std::thread> threads;
  for (int t = 0; t < 64; ++t) {
    threads.emplace_back([&, t] {
      for (int i = 0; i < kPrograms; ++i) {
        const int which = (i + t) % kPrograms;
        wrong += fourth(kernels[which]) != 3.0 * which;
        if (i % 5 == 0) wrong += fourth(scale(which)) != 3.0 * which;
      }
    });
  }
  for (std::thread& t : threads) t.join();
  EXPECT_EQ(wrong, 0);
  together = bytes_of(cache.files(".so"));
  EXPECT_EQ(together.size(), static_cast<size_t>(kPrograms));
  EXPECT_EQ(together, alone) << "the same bytes as from one thread";
}

static int64_t resident_bytes() {
  std::ifstream f("/proc/self/statm");
  int64_t total = 0, resident = 0;
  f >> total >> resident;
  return resident * sysconf(_SC_PAGESIZE);
}

TEST(ProcessCases, PROC_04) {
  TempCache cache;
  const int before = loaded_modules();
  auto round = [] {
    for (int i = 0; i < 100; ++i) ASSERT_EQ(fourth(scale(i % 10)), 3.0 * (i % 10));
  };
  for (int i = 0; i < 5; ++i) round();
  const int64_t warm = resident_bytes();
  for (int i = 0; i < 15; ++i) round();
  EXPECT_LT(resident_bytes() - warm, 2 << 20) << "1500 kernels later";
  EXPECT_EQ(loaded_modules(), before);
}

}  // namespace tw::test
