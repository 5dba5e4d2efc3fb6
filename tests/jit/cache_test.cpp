#include "tw/jit/cache.h"

#include <chrono>
#include <fcntl.h>
#include <fstream>
#include <sched.h>
#include <signal.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <thread>
#include <utime.h>

#include "tw/base/error.h"
#include "tw/jit/cache_file.h"
#include "tw/jit/compiler.h"
#include "tw/jit/file_io.h"

#include "tests/jit/cache_support.h"
#include "tests/jit/scale.h"
#include "tests/support/expect_error.h"

namespace tw::test {

TEST(CacheFile, GoesThereAndBack) {
  const CacheFile file{std::string("\x7f"
                                   "ELF\0object",
                                   11),
                       "the key\n", "metadata"};
  const auto back = unpack(pack(file));
  ASSERT_TRUE(back);
  EXPECT_EQ(back->object, file.object);
  EXPECT_EQ(back->key, file.key);
  EXPECT_EQ(back->metadata, file.metadata);
  EXPECT_TRUE(unpack(pack({})));
}

TEST(CacheFile, EveryDamagedByteAndCutIsNoticed) {
  const std::string good = pack({std::string(100, 'o'), std::string(50, 'k'), "meta"});
  for (size_t i = 0; i < good.size(); ++i) {
    std::string bad = good;
    bad[i] = static_cast<char>(bad[i] ^ 4);
    EXPECT_FALSE(unpack(bad)) << "byte " << i;
    EXPECT_FALSE(unpack(good.substr(0, i))) << "cut to " << i;
    EXPECT_FALSE(unpack(good.substr(i + 1))) << "without the first " << i + 1;
  }
  EXPECT_FALSE(unpack(good + "x"));
}

TEST(Cache, StoresAndLoads) {
  TempCache temp;
  Cache cache(temp.path());
  EXPECT_FALSE(cache.load("key"));
  EXPECT_EQ(number(cache.store("key", "meta", object(), "text")), 42);
  Cache other(temp.path());
  const auto loaded = other.load("key");
  ASSERT_TRUE(loaded);
  EXPECT_EQ(number(*loaded), 42);
  EXPECT_EQ(loaded->metadata, "meta");
  EXPECT_EQ(read(other.source_path("key")), "text");
  EXPECT_FALSE(other.load("another key"));
  const auto items = other.items();
  ASSERT_EQ(items.size(), 1u);
  EXPECT_EQ(items[0].key, "key");
  EXPECT_EQ(items[0].name, Cache::name("key"));
  other.clear();
  EXPECT_TRUE(other.items().empty());
  EXPECT_FALSE(other.load("key"));
}

TEST(Cache, AnObjectThatCannotBeLoadedIsAnError) {
  TempCache temp;
  TW_EXPECT_ERROR(EnvError, "cannot load a compiled kernel",
                  [&] { Cache(temp.path()).store("key", "", "no shared object", ""); });
}

TEST(Cache, TheLeastRecentlyUsedGoFirst) {
  TempCache temp;
  ScopedEnv size("TW_CACHE_SIZE", "1");
  Cache cache(temp.path());
  const std::string filler(250000, 'x');
  for (const char* key : {"a", "b", "c"}) {
    cache.store(key, filler, object(), "");
    const utimbuf old{1000 + key[0], 1000 + key[0]};
    utime((temp.path() + "/" + Cache::name(key) + ".so").c_str(), &old);
  }
  ASSERT_TRUE(cache.load("a"));  // marks it as used now
  cache.store("d", filler, object(), "");
  EXPECT_TRUE(cache.load("a"));
  EXPECT_FALSE(cache.load("b"));
  EXPECT_TRUE(cache.load("c"));
  EXPECT_TRUE(cache.load("d"));
}

TEST(Cache, ASizeThatIsNoneIsAnError) {
  TempCache temp;
  for (const char* text : {"", "0", "-3", "much", "10 GB"}) {
    ScopedEnv size("TW_CACHE_SIZE", text);
    TW_EXPECT_ERROR(UserError, "wanted a number of megabytes",
                    [&] { Cache(temp.path()).store("key", "meta", object(), "text"); });
  }
}

TEST(Cache, WithoutAFolderKernelsStayInMemory) {
  Cache cache("");
  const auto lines = warnings([&] {
    EXPECT_EQ(number(cache.store("key", "meta", object(), "text")), 42);
    EXPECT_EQ(number(cache.store("key 2", "meta", object(), "text")), 42);
  });
  ASSERT_EQ(lines.size(), 1u);
  EXPECT_NE(lines[0].find("no cache folder"), std::string::npos) << lines[0];
  const auto loaded = cache.load("key");
  ASSERT_TRUE(loaded);
  EXPECT_EQ(number(*loaded), 42);
  EXPECT_EQ(cache.source_path("key"), "");
}

TEST(Cache, MemoryIsBoundedToo) {
  Cache cache("");
  ScopedEnv size("TW_CACHE_SIZE", "1");
  warnings([&] {
    const std::string large = object() + std::string(400000, 'x');
    for (const char* key : {"a", "b", "c", "d"}) cache.store(key, "", large, "");
  });
  int kept = 0;
  for (const char* key : {"a", "b", "c", "d"}) kept += cache.load(key).has_value();
  EXPECT_EQ(kept, 2);
  EXPECT_TRUE(cache.load("d"));
}

TEST(Cache, TheEnvironmentNamesTheFolder) {
  ScopedEnv home("HOME", "/home/somebody"), xdg("XDG_CACHE_HOME", ""), dir("TW_CACHE_DIR", "");
  EXPECT_EQ(Cache::of_environment()->folder(), "/home/somebody/.cache/tilewright");
  setenv("XDG_CACHE_HOME", "/var/caches", 1);
  EXPECT_EQ(Cache::of_environment()->folder(), "/var/caches/tilewright");
  setenv("XDG_CACHE_HOME", "not/absolute", 1);
  EXPECT_EQ(Cache::of_environment()->folder(), "/home/somebody/.cache/tilewright");
  setenv("TW_CACHE_DIR", "/somewhere", 1);
  EXPECT_EQ(Cache::of_environment()->folder(), "/somewhere");
  EXPECT_EQ(Cache::of_environment(), Cache::of_environment());
}

TEST(Cache, AFileThatCannotBeWrittenWholeIsNotThere) {
  TempCache temp;
  const int code = end_of(start_child([&] {
    signal(SIGXFSZ, SIG_IGN);  // a write past the limit then fails, after a part was written
    rlimit limit{1000, RLIM_INFINITY};
    setrlimit(RLIMIT_FSIZE, &limit);
    return publish_file(temp.path() + "/entry.so", std::string(5000, 'x')) == EFBIG ? 0 : 1;
  }));
  EXPECT_EQ(code, 0);
  EXPECT_TRUE(std::filesystem::is_empty(temp.path()));
}

TEST(CacheCases, CACHE_01) {
  // Cold starts of many processes, at the level of the cache: compiling would only slow the race.
  const std::string& bytes = object();
  for (int round = 0; round < 50; ++round) {
    TempCache temp;
    std::vector<pid_t> children;
    for (int c = 0; c < 16; ++c) {
      children.push_back(start_child([&] {
        for (int k = 0; k < 8; ++k) {
          const std::string key = "key " + std::to_string(k);
          Cache cache(temp.path());
          std::optional<Cache::Loaded> loaded = cache.load(key);
          if (!loaded) {
            const Cache::Turn turn(cache, key);
            if (turn.waited()) loaded = cache.load(key);
            if (!loaded) loaded = cache.store(key, key, bytes, "text");
          }
          if (number(*loaded) != 42 || loaded->metadata != key) return 1;
        }
        return 0;
      }));
    }
    for (pid_t c : children) ASSERT_EQ(end_of(c), 0) << "round " << round;
    ASSERT_EQ(temp.files(".so").size(), 8u);
    ASSERT_EQ(temp.litter(), 0);
  }
}

TEST(CacheCases, CACHE_01_killed) {
  // 32 processes compile eight kernels in one cold cache; every second one is killed on the way.
  TempCache temp;
  std::vector<pid_t> children;
  for (int c = 0; c < 32; ++c) {
    children.push_back(start_child([c] {
      for (int k = 0; k < 8; ++k) {
        const int factor = 1 + (k + c) % 8;
        if (fourth(scale(factor)) != 3 * factor) return 1;
      }
      return 0;
    }));
  }
  for (int c = 0; c < 32; c += 2) {
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    kill(children[c], SIGKILL);
  }
  for (int c = 0; c < 32; ++c) {
    const int code = end_of(children[c]);
    EXPECT_EQ(code, c % 2 == 0 && code == -1 ? -1 : 0) << "child " << c;
  }
  ScopedEnv no("TW_NO_COMPILE", "1");
  for (int k = 0; k < 8; ++k) EXPECT_EQ(fourth(scale(1 + k)), 3 * (1 + k)) << "all are cached";
  EXPECT_EQ(temp.litter(), 0);
}

TEST(CacheCases, CACHE_02) {
  TempCache temp;
  EXPECT_EQ(fourth(scale(2)), 6);
  ASSERT_EQ(temp.files(".so").size(), 1u);
  const std::string path = temp.files(".so")[0], good = read(path);
  std::string flipped = good;
  flipped[good.size() / 3] = static_cast<char>(flipped[good.size() / 3] ^ 1);
  const std::pair<const char*, std::string> cases[] = {
      {"empty", ""},
      {"half", good.substr(0, good.size() / 2)},
      {"one bit", flipped},
      {"without metadata", good.substr(0, good.size() - 200)},
      {"foreign", pack({object(), "some other key", "meta"})},
      {"no object", pack({"garbage", unpack(good)->key, unpack(good)->metadata})},
  };
  for (const auto& [what, bytes] : cases) {
    // Another file, as a damaged one would be found by a new process: the old one stays mapped.
    unlink(path.c_str());
    write(path, bytes);
    const auto lines = warnings([] { EXPECT_EQ(fourth(scale(2)), 6); });
    EXPECT_EQ(lines.size(), 1u) << what;
    EXPECT_TRUE(unpack(read(path))) << what << ": the entry is whole again";
    EXPECT_EQ(warnings([] { EXPECT_EQ(fourth(scale(2)), 6); }).size(), 0u) << what;
  }
}

TEST(CacheCases, CACHE_03) {
  TempCache temp;
  int ready[2];
  ASSERT_EQ(pipe(ready), 0);
  const pid_t holder = start_child([&] {
    Cache cache(temp.path());
    const Cache::Turn turn(cache, "key");
    if (::write(ready[1], "x", 1) != 1) return 1;
    pause();
    return 0;
  });
  char c;
  ASSERT_EQ(::read(ready[0], &c, 1), 1);
  close(ready[0]);
  close(ready[1]);
  const auto start = std::chrono::steady_clock::now();
  std::thread killer([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(100));
    kill(holder, SIGKILL);
  });
  Cache cache(temp.path());
  {
    const Cache::Turn turn(cache, "key");
    EXPECT_TRUE(turn.waited());
  }
  EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(5));
  killer.join();
  EXPECT_EQ(end_of(holder), -1);
  const Cache::Turn again(cache, "key"), other(cache, "other");
  EXPECT_FALSE(again.waited());
  EXPECT_FALSE(other.waited()) << "keys do not wait for each other";
}

TEST(CacheCases, CACHE_04) {
  // The helper 'combine' wrongly multiplies, then is mended: same names, warm cache.
  TempCache temp;
  auto run = [](const char* op) {
    const Kernel k = compile(scale(2, op), Device::open("cpu:0"));
    return fourth(k);
  };
  EXPECT_EQ(run("mul"), 6);
  EXPECT_EQ(run("add"), 5);
  EXPECT_EQ(run("mul"), 6);
  EXPECT_EQ(temp.files(".so").size(), 2u);
}

TEST(CacheCases, CACHE_05) {
  TempCache temp;
  CpuMachine machine = machine_named("generic");
  EXPECT_EQ(fourth(compile(scale(2), Device::open_as(machine))), 6);
  EXPECT_EQ(temp.files(".so").size(), 1u);
  EXPECT_EQ(fourth(compile(scale(2), Device::open_as(machine))), 6);
  EXPECT_EQ(temp.files(".so").size(), 1u);
#if defined(__x86_64__)
  machine.march = "x86-64-v2";
#else
  machine.march = "armv8-a+crc";
#endif
  EXPECT_EQ(fourth(compile(scale(2), Device::open_as(machine))), 6);
  EXPECT_EQ(temp.files(".so").size(), 2u) << "a near relative is another machine";
}

static int count(const std::string& text, const std::string& part) {
  int n = 0;
  for (size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++n;
  return n;
}

/// Compiles and runs two kernels, twice.
static int use_cache() {
  for (int factor : {2, 3, 2, 3}) {
    if (fourth(scale(factor)) != 3 * factor) return 1;
  }
  return 0;
}

TEST(CacheCases, CACHE_06_home_cannot_be_written) {
  const std::string said = unprivileged([] {
    unsetenv("TW_CACHE_DIR");
    unsetenv("XDG_CACHE_HOME");
    setenv("HOME", "/", 1);
    return use_cache();
  });
  EXPECT_EQ(count(said, "warning"), 1) << said;
  EXPECT_NE(said.find("kept in memory"), std::string::npos) << said;
}

TEST(CacheCases, CACHE_06_read_only_folder) {
  TempCache temp;
  chmod(temp.path().c_str(), 0755);
  if (geteuid() == 0) {
    ASSERT_EQ(chown(temp.path().c_str(), 65534, 65534), 0);
  }
  EXPECT_EQ(unprivileged([&] { return fourth(scale(2)) == 6 ? 0 : 1; }), "");
  const std::string said = unprivileged([&] {
    chmod(temp.path().c_str(), 0555);
    const int code = use_cache();
    chmod(temp.path().c_str(), 0755);
    return code;
  });
  EXPECT_EQ(count(said, "warning"), 1) << said;
  EXPECT_EQ(temp.files(".so").size(), 1u) << "what lies there is used";
}

TEST(CacheCases, CACHE_06_folder_of_another_user) {
  if (geteuid() != 0) GTEST_SKIP() << "needs the superuser to make another user's folder";
  TempCache temp;
  ASSERT_EQ(chown(temp.path().c_str(), 12345, 12345), 0);
  chmod(temp.path().c_str(), 0777);
  const std::string said = unprivileged([] { return use_cache(); });
  EXPECT_EQ(count(said, "warning"), 1) << said;
  EXPECT_NE(said.find("can be written by other users"), std::string::npos) << said;
  EXPECT_TRUE(temp.files(".so").empty());
}

TEST(CacheCases, CACHE_06_full_disk) {
  TempCache temp;
  constexpr int kNoMount = 77;
  int out[2];
  ASSERT_EQ(pipe(out), 0);
  const pid_t child = start_child([&] {
    dup2(out[1], STDERR_FILENO);
    const int spaces = CLONE_NEWNS | (geteuid() == 0 ? 0 : CLONE_NEWUSER);
    const bool mounted = unshare(spaces) == 0 &&
                         mount("none", "/", nullptr, MS_REC | MS_PRIVATE, nullptr) == 0 &&
                         mount("none", temp.path().c_str(), "tmpfs", 0, "size=8k,mode=0700") == 0;
    return mounted ? use_cache() : kNoMount;
  });
  close(out[1]);
  const std::string said = read_all(out[0]);
  const int code = end_of(child);
  if (code == kNoMount) GTEST_SKIP() << "file systems cannot be mounted here";
  EXPECT_EQ(code, 0) << said;
  EXPECT_EQ(count(said, "warning"), 1) << said;
  EXPECT_NE(said.find("No space left on device"), std::string::npos) << said;
}

TEST(CacheCases, CACHE_07) {
  TempCache temp;
  const std::string real = temp.path() + "/real", link = temp.path() + "/link";
  ASSERT_EQ(mkdir(real.c_str(), 0700), 0);
  ASSERT_EQ(symlink(real.c_str(), link.c_str()), 0);
  {
    ScopedEnv dir("TW_CACHE_DIR", link);
    EXPECT_EQ(fourth(scale(2)), 6);
    ScopedEnv no("TW_NO_COMPILE", "1");
    EXPECT_EQ(fourth(scale(2)), 6);
  }
  EXPECT_EQ(end_of(start_child([&] {
              if (chdir(link.c_str()) != 0) return 1;
              setenv("TW_CACHE_DIR", "../link", 1);
              setenv("TW_NO_COMPILE", "1", 1);
              return fourth(scale(2)) == 6 ? 0 : 2;
            })),
            0);
}

}  // namespace tw::test
