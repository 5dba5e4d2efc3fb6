#include "tw/jit/compiler.h"

#include <cstdio>
#include <dlfcn.h>
#include <filesystem>
#include <fstream>
#include <poll.h>
#include <signal.h>

#include "tw/jit/process.h"

#include "tests/jit/scale.h"
#include "tests/support/expect_error.h"

namespace tw::test {

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

TEST(Compiler, WrappersUnderItsNameArePassedOver) {
  TempCache folder;
  const std::string wrapper = folder.path() + "/ccache";
  std::ofstream(wrapper) << "#!/bin/sh\nexit 1\n";
  std::filesystem::permissions(wrapper, std::filesystem::perms::owner_all);
  for (const char* name : {"c++", "g++", "clang++"}) {
    std::filesystem::create_symlink(wrapper, folder.path() + "/" + name);
  }
  const Compiler wanted = find_compiler();
  const std::string before = std::getenv("PATH");
  ScopedEnv path("PATH", folder.path() + ":" + before);
  EXPECT_EQ(find_compiler().path, wanted.path);
  ScopedEnv cxx("TW_CXX", wrapper);
  TW_EXPECT_ERROR(UserError, "not ccache or the like", [] { find_compiler(); });
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

TEST(Process, EndsWhatItStartedToo) {
  int alive[2];  // its last writer is the grandchild
  ASSERT_EQ(pipe(alive), 0);
  Finished done = run_process({"/bin/sh", "-c", "sleep 60 & wait"}, "/dev/null", 1);
  EXPECT_EQ(done.kind, Finished::Kind::timed_out);
  close(alive[1]);
  pollfd p{alive[0], POLLIN, 0};
  EXPECT_EQ(poll(&p, 1, 10000), 1) << "the sleeper still holds the pipe";
  close(alive[0]);
}

TEST(Process, DoesNotInheritBlockedSignals) {
  sigset_t all, before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  Finished done = run_process({"/bin/sh", "-c", "kill -15 $$; exit 3"}, "/dev/null", 10);
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  EXPECT_EQ(done.kind, Finished::Kind::killed);
}

TEST(Process, TellsExitFromSignal) {
  Finished exited = run_process({"/bin/sh", "-c", "exit 7"}, "/dev/null", 10);
  EXPECT_EQ(exited.kind, Finished::Kind::exited);
  EXPECT_EQ(exited.code, 7);
  EXPECT_EQ(run_process({"/bin/sh", "-c", "kill -9 $$"}, "/dev/null", 10).kind,
            Finished::Kind::killed);
  EXPECT_EQ(run_process({"/nonexistent"}, "/dev/null", 10).kind, Finished::Kind::could_not_start);
}

}  // namespace tw::test
