#include "tw/jit/compiler.h"

#include <chrono>
#include <cstdio>
#include <dlfcn.h>
#include <fcntl.h>
#include <filesystem>
#include <fstream>
#include <poll.h>
#include <signal.h>
#include <sys/file.h>
#include <thread>

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

/// Compiles with a script in the compiler's place; "$out" is the file it should make.
static std::string compile_with(const std::string& body, const std::string& text = kText) {
  TempCache folder;
  const std::string script = folder.path() + "/script";
  std::ofstream(script) << "#!/bin/sh\n"
                           "while [ $# -gt 0 ]; do [ \"$1\" = -o ] && out=$2; shift; done\n"
                        << body << "\n";
  std::filesystem::permissions(script, std::filesystem::perms::owner_all);
  return compile_shared({.path = script, .family = CompilerFamily::gcc, .identity = ""}, machine(),
                        text, false);
}

TEST(Compiler, WhatItCannotHelpIsNoBugOfOurs) {
  const std::pair<const char*, const char*> cases[] = {
      {"exit 0", "made no object: it said nothing"},
      {"echo hello", "made no object: hello"},
      {"exit 1", "failed with 1: it said nothing"},
      {": > $out", "made no object"},
      {"echo partial > $out; exit 1", "failed with 1"},
      {"kill -9 $$", "was ended: signal 9"},
      {"echo 'g++: fatal error: Killed signal terminated program cc1plus'; exit 1",
       "Killed signal"},
      {"echo 'g++: internal compiler error: Segmentation fault signal terminated program cc1plus'; "
       "exit 4",
       "failed with 4: g++: internal compiler error"},
      {"echo 'cc1plus: out of memory allocating 65536 bytes'; exit 1", "out of memory"},
      {"echo 'virtual memory exhausted: Cannot allocate memory'; exit 1", "Cannot allocate memory"},
      {"echo 'k.cpp:3:1: internal compiler error: out of memory'; exit 1", "more memory"},
      {"echo 'k.cpp:1:9: fatal error: cstdint: No such file or directory'; exit 1", "cstdint"},
      {"echo \"collect2: fatal error: cannot find 'ld'\"; exit 1", "cannot find 'ld'"},
      {"echo \"g++: fatal error: cannot execute 'cc1plus'\"; exit 1",
       "another C++ compiler in TW_CXX"},
      {"echo \"cc1plus: error: bad value 'x' for '-march=' switch\"; exit 1", "bad value"},
  };
  for (const auto& [body, want] : cases) {
    SCOPED_TRACE(body);
    const std::string script = body;
    TW_EXPECT_ERROR(EnvError, want, [&] { compile_with(script); });
  }
}

TEST(Compiler, WhatItSaysOfTheTextIsABugOfOurs) {
  for (const char* line : {"k.cpp:3:1: error: no x", "k.cpp:3: error: no x",
                           "k.cpp:3:1: internal compiler error: in fold, at fold.cc:1"}) {
    const std::string script = std::string("echo g++: error: late; echo '") + line + "'; exit 1";
    TW_EXPECT_ERROR(InternalError, std::string("rejected a kernel: ") + line,
                    [&] { compile_with(script); });
  }
}

TEST(Compiler, IsQuotedShortAndPlain) {
  const std::string text = error_text<EnvError>([] {
    compile_with(
        "printf 'an error \\033[31m\\r\\t\\377'; head -c 100000 /dev/zero | tr '\\0' x; exit 1");
  });
  EXPECT_NE(text.find("an error ?[31m???xxx"), std::string::npos) << text;
  EXPECT_LT(text.size(), 1000u);
}

TEST(Compiler, SpeaksEnglish) {
  ScopedEnv german("LC_ALL", "de_DE.UTF-8");
  TW_EXPECT_ERROR(EnvError, "it says C", [] { compile_with("echo it says $LC_ALL; exit 1"); });
}

TEST(Compiler, RemovesWhatEndedProcessesLeft) {
  namespace fs = std::filesystem;
  TempCache folder;
  ScopedEnv tmp("TMPDIR", folder.path());
  auto make = [&](const char* name, const char* file, int age) {
    const std::string path = folder.path() + "/" + name;
    fs::create_directory(path);
    std::ofstream(path + "/" + file) << "x";
    fs::last_write_time(path, fs::file_time_type::clock::now() - std::chrono::seconds(age));
    return path;
  };
  const std::string left = make("tilewright-compile-aaaaaa", "kernel.cpp", 1000),
                    fresh = make("tilewright-compile-bbbbbb", "kernel.cpp", 0),
                    held = make("tilewright-compile-cccccc", "kernel.cpp", 1000),
                    foreign = make("tilewright-compile-dddddd", "thesis.txt", 1000),
                    other = make("tilewright-aaaaaa", "kernel.cpp", 1000);
  const int lock = open(held.c_str(), O_RDONLY);
  ASSERT_EQ(flock(lock, LOCK_EX), 0);
  compile_shared(find_compiler(), machine(), kText, false);
  close(lock);
  EXPECT_FALSE(fs::exists(left));
  for (const std::string& path : {fresh, held, other}) {
    EXPECT_TRUE(fs::exists(path + "/kernel.cpp")) << path;
  }
  EXPECT_TRUE(fs::exists(foreign + "/thesis.txt"));
  EXPECT_EQ(std::distance(fs::directory_iterator(folder.path()), {}), 4) << "its own went, too";
}

TEST(Process, EndsWithItsParent) {
  int alive[2];  // its last writer is the grandchild
  ASSERT_EQ(pipe(alive), 0);
  const pid_t parent = start_child([] {
    run_process({"/bin/sleep", "60"}, "/dev/null", 60);
    return 0;
  });
  close(alive[1]);
  std::this_thread::sleep_for(std::chrono::milliseconds(300));
  kill(parent, SIGTERM);
  EXPECT_EQ(end_of(parent), -1);
  pollfd p{alive[0], POLLIN, 0};
  EXPECT_EQ(poll(&p, 1, 10000), 1) << "the sleeper still holds the pipe";
  close(alive[0]);
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
