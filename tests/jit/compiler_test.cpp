#include "tw/jit/compiler.h"

#include <cstdio>
#include <dlfcn.h>
#include <filesystem>
#include <fstream>

#include "tw/jit/process.h"

#include "tests/support/expect_error.h"

namespace tw {

/// Sets an environment variable for one scope.
class ScopedEnv {
 public:
  ScopedEnv(const char* name, const char* value) : name_(name) {
    if (const char* before = std::getenv(name)) before_ = before;
    had_ = std::getenv(name) != nullptr;
    setenv(name, value, 1);
  }
  ~ScopedEnv() { had_ ? setenv(name_, before_.c_str(), 1) : unsetenv(name_); }

 private:
  const char* name_;
  std::string before_;
  bool had_;
};

static const CpuMachine& machine() { return machine_named("generic"); }

/// The function `answer` of the object file's bytes, called.
static int call_answer(const std::string& object) {
  std::string path = testing::TempDir() + "compiler_test.so";
  std::ofstream(path, std::ios::binary) << object;
  void* library = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (!library) ADD_FAILURE() << dlerror();
  auto answer = reinterpret_cast<int (*)()>(dlsym(library, "answer"));
  int value = answer();
  dlclose(library);
  std::filesystem::remove(path);
  return value;
}

static constexpr const char* kText =
    "extern \"C\" __attribute__((visibility(\"default\"))) int answer() { return 42; }\n";

TEST(Compiler, MakesASharedObject) {
  EXPECT_EQ(call_answer(compile_shared(find_compiler(), machine(), kText, false)), 42);
}

TEST(Compiler, EachOneThatIsInstalledWorks) {
  for (const char* name : {"g++", "clang++"}) {
    ScopedEnv cxx("TW_CXX", name);
    Compiler c = find_compiler();
    EXPECT_EQ(c.family == CompilerFamily::clang, name == std::string("clang++"));
    EXPECT_EQ(call_answer(compile_shared(c, machine(), kText, true)), 42);
  }
}

TEST(Compiler, SaysWhatItRejectsAndKeepsTheText) {
  try {
    compile_shared(find_compiler(), machine(), "int f() { return nonsense; }\n", false);
    FAIL();
  } catch (const InternalError& e) {
    EXPECT_NE(e.message().find("nonsense"), std::string::npos) << e.what();
    EXPECT_EQ(e.reproducer(), "int f() { return nonsense; }\n");
  }
}

TEST(Compiler, MissingOnesAreNamed) {
  ScopedEnv empty("PATH", "/nonexistent");
  TW_EXPECT_ERROR(EnvError, "apt-get install g++", [] { find_compiler(); });
  ScopedEnv cxx("TW_CXX", "no-such-compiler");
  TW_EXPECT_ERROR(UserError, "TW_CXX is 'no-such-compiler'", [] { find_compiler(); });
}

TEST(Compiler, NoRoomIsAnEnvError) {
  ScopedEnv nowhere("TMPDIR", "/nonexistent");
  TW_EXPECT_ERROR(EnvError, "TMPDIR",
                  [] { compile_shared(find_compiler(), machine(), kText, false); });
}

TEST(Process, EndsWhatHangs) {
  Finished done = run_process({"/bin/sleep", "60"}, "/dev/null", 1);
  EXPECT_EQ(done.kind, Finished::Kind::timed_out);
}

TEST(Process, TellsExitFromSignal) {
  Finished exited = run_process({"/bin/sh", "-c", "exit 7"}, "/dev/null", 10);
  EXPECT_EQ(exited.kind, Finished::Kind::exited);
  EXPECT_EQ(exited.code, 7);
  EXPECT_EQ(run_process({"/bin/sh", "-c", "kill -9 $$"}, "/dev/null", 10).kind,
            Finished::Kind::killed);
  EXPECT_EQ(run_process({"/nonexistent"}, "/dev/null", 10).kind, Finished::Kind::could_not_start);
}

}  // namespace tw
