#include <cstdio>
#include <filesystem>
#include <sys/stat.h>
#include <utime.h>

#include "tw/base/error.h"
#include "tw/jit/cache.h"

#include "tests/jit/cache_support.h"
#include "tests/support/expect_error.h"

namespace tw::test {

/// Files of somebody else, some named much like a cache's.
static const char* const kForeign[] = {
    "notes.txt",
    "library.so",
    "main.cpp",
    "0123456789abcdef0123456789abcdef",
    "0123456789abcdef0123456789abcdef.txt",
    "0123456789abcdef0123456789abcdef.so.backup2",
    "0123456789ABCDEF0123456789ABCDEF.so",
    "0123456789abcdef0123456789abcdef0.so",
    "x123456789abcdef0123456789abcdef.cpp",
};

TEST(Cache, NeverTouchesFilesOfOthers) {
  TempCache temp;
  for (const char* name : kForeign) write(temp.path() + "/" + name, std::string(300000, 'x'));
  const std::string left = temp.path() + "/0123456789abcdef0123456789abcdef.so.Ab3xYz";
  write(left, std::string(900000, 'x'));
  const utimbuf old{1, 1};
  utime(left.c_str(), &old);
  ScopedEnv size("TW_CACHE_SIZE", "1");
  Cache cache(temp.path());
  cache.store("a", std::string(200000, 'x'), object(), "");
  EXPECT_FALSE(std::filesystem::exists(left)) << "what a killed process left is the cache's";
  EXPECT_TRUE(cache.load("a")) << "others' files do not count";
  cache.clear();
  EXPECT_FALSE(cache.load("a"));
  for (const char* name : kForeign) {
    EXPECT_TRUE(std::filesystem::exists(temp.path() + "/" + name)) << name;
  }
}

TEST(Cache, WhatIsNoFileIsReplaced) {
  TempCache temp;
  Cache cache(temp.path());
  const std::string path = temp.path() + "/" + Cache::name("key") + ".so";
  auto is_rebuilt = [&](const char* what) {
    EXPECT_EQ(warnings([&] { EXPECT_FALSE(cache.load("key")) << what; }).size(), 1u) << what;
    EXPECT_TRUE(cache.items().empty()) << what;
    EXPECT_EQ(number(cache.store("key", "meta", object(), "text")), 42) << what;
    EXPECT_TRUE(cache.load("key")) << what;
    unlink(path.c_str());
  };
  ASSERT_EQ(mkfifo(path.c_str(), 0600), 0);
  is_rebuilt("a pipe");
  ASSERT_EQ(symlink("/nonexistent", path.c_str()), 0);
  is_rebuilt("a link to nothing");
  ASSERT_EQ(symlink("/dev/null", path.c_str()), 0);
  is_rebuilt("a link to a device");
  ASSERT_EQ(mkfifo(path.c_str(), 0600), 0);
  warnings([&] { EXPECT_EQ(number(cache.store("key", "meta", object(), "text")), 42); });
  ASSERT_EQ(mkdir(path.c_str(), 0700), 0) << "nothing lies there";
  warnings([&] { EXPECT_EQ(number(cache.store("key", "meta", object(), "text")), 42); });
}

TEST(Cache, ClearNamesWhatItCannotDelete) {
  TempCache temp;
  Cache(temp.path()).store("key", "meta", object(), "text");
  const std::string entry = temp.path() + "/" + Cache::name("key");
  chmod(temp.path().c_str(), 0555);
  if (geteuid() == 0) {
    ASSERT_EQ(chown(temp.path().c_str(), 65534, 65534), 0);
  }
  const std::string said = unprivileged([&] {
    const std::string text = error_text<EnvError>([&] { Cache(temp.path()).clear(); });
    std::fputs(text.c_str(), stderr);
    return 0;
  });
  chmod(temp.path().c_str(), 0755);
  EXPECT_NE(said.find("cannot delete '" + entry), std::string::npos) << said;
  EXPECT_NE(said.find("Permission denied"), std::string::npos) << said;
  const std::string file = temp.path() + "/file";
  write(file, "");
  TW_EXPECT_ERROR(EnvError, "cannot delete '" + file, [&] { Cache(file).clear(); });
  Cache(temp.path() + "/nowhere").clear();
}

}  // namespace tw::test
