#include "tw/jit/cache.h"

#include <csignal>
#include <filesystem>
#include <fstream>
#include <functional>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tw/base/hash.h"

#include "tests/support/expect_error.h"

namespace tw {

namespace fs = std::filesystem;

class Cache : public testing::Test {
 protected:
  Cache() {
    std::string pattern = testing::TempDir() + "tw-cache-XXXXXX";
    folder_ = mkdtemp(pattern.data());
    chmod(folder_.c_str(), 0777);  // tests drop their rights
  }
  ~Cache() override {
    std::error_code ignored;
    fs::permissions(folder_, fs::perms::all, ignored);
    fs::remove_all(folder_, ignored);
  }

  KernelCache cache(int64_t most_bytes = 1 << 30) const {
    return KernelCache(folder_ + "/kernels", most_bytes);
  }
  static CacheEntry entry(int i, size_t object_bytes = 100) {
    return {.key_text = "key " + std::to_string(i),
            .launch = "launch " + std::to_string(i),
            .source = "int source;",
            .object = std::string(object_bytes, static_cast<char>('a' + i % 26))};
  }
  std::string file_of(int i) const {
    return folder_ + "/kernels/" + hash_hex(entry(i).key_text) + ".twk";
  }

  /// What `body` wrote to standard error in a child process, which exits with body's result.
  static std::pair<int, std::string> in_child(const std::function<int()>& body) {
    int ends[2];
    EXPECT_EQ(pipe(ends), 0);
    pid_t pid = fork();
    if (pid == 0) {
      dup2(ends[1], 2);
      _exit(body());
    }
    close(ends[1]);
    std::string said;
    char buffer[4096];
    for (ssize_t n; (n = read(ends[0], buffer, sizeof buffer)) > 0;) said.append(buffer, n);
    close(ends[0]);
    int status = 0;
    waitpid(pid, &status, 0);
    return {WIFEXITED(status) ? WEXITSTATUS(status) : -1, said};
  }

  std::string folder_;
};

static bool same(const std::optional<CacheEntry>& a, const CacheEntry& b) {
  return a && a->key_text == b.key_text && a->launch == b.launch && a->source == b.source &&
         a->object == b.object;
}

static size_t count_of(const std::string& text, const std::string& word) {
  size_t n = 0;
  for (size_t at = 0; (at = text.find(word, at)) != std::string::npos; at += word.size()) ++n;
  return n;
}

/// Rights that root does not have ignored: what an ordinary user may do.
static void become_ordinary() {
  if (geteuid() == 0 && (setgid(65534) != 0 || setuid(65534) != 0)) _exit(99);
}

TEST_F(Cache, GivesBackWhatItWasGiven) {
  EXPECT_FALSE(cache().load("key 1"));
  cache().save(entry(1));
  EXPECT_TRUE(same(cache().load("key 1"), entry(1)));
  EXPECT_FALSE(cache().load("key 2"));
  EXPECT_TRUE(same(cache().find(hash_hex("key 1").substr(0, 8)), entry(1)));
  std::ifstream source(cache().source_path("key 1"));
  EXPECT_EQ(std::string(std::istreambuf_iterator<char>(source), {}), "int source;");
  cache().clear();
  EXPECT_TRUE(cache().list().empty());
}

TEST_F(Cache, CACHE_01_ManyProcessesOneColdFolder) {
  std::vector<pid_t> children;
  for (int p = 0; p < 32; ++p) {
    pid_t pid = fork();
    if (pid == 0) {
      bool right = true;
      for (int round = 0; round < 10; ++round)
        for (int i = 0; i < 8; ++i) {
          std::optional<CacheEntry> found = cache().load(entry(i).key_text);
          right &= !found || same(found, entry(i));
          if (!found || (p + round) % 5 == 0) cache().save(entry(i));
        }
      _exit(right ? 0 : 1);
    }
    children.push_back(pid);
  }
  for (pid_t pid : children) {
    int status = 0;
    waitpid(pid, &status, 0);
    EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0);
  }
  EXPECT_EQ(cache().list().size(), 8u);
  for (const auto& file : fs::directory_iterator(folder_ + "/kernels"))
    EXPECT_NE(file.path().extension(), ".tmp");
}

TEST_F(Cache, CACHE_02_DamageIsNoticedAndRebuilt) {
  using Damage = std::function<void(const std::string&)>;
  const std::vector<Damage> damages = {
      [](const std::string& f) { fs::resize_file(f, 0); },
      [](const std::string& f) { fs::resize_file(f, fs::file_size(f) / 2); },
      [](const std::string& f) {
        std::fstream file(f, std::ios::in | std::ios::out | std::ios::binary);
        file.seekp(static_cast<std::streamoff>(fs::file_size(f) - 60));
        file.put('!');
      },
      [](const std::string& f) {
        std::ofstream(f) << "a file of another program, longer than a header";
      },
      [](const std::string& f) { std::ofstream(f, std::ios::app) << "more"; },
  };
  for (const Damage& damage : damages) {
    auto [code, said] = in_child([&] {
      cache().save(entry(1));
      cache().save(entry(2));
      damage(file_of(1));
      damage(file_of(2));
      if (cache().load("key 1") || cache().load("key 2")) return 1;
      cache().save(entry(1));
      return same(cache().load("key 1"), entry(1)) ? 0 : 2;
    });
    EXPECT_EQ(code, 0);
    EXPECT_EQ(count_of(said, "warning"), 1u) << said;
    EXPECT_NE(said.find("damaged and is rebuilt"), std::string::npos) << said;
  }
}

TEST_F(Cache, CACHE_03_AKilledWriterBlocksNobody) {
  for (int round = 0; round < 20; ++round) {
    pid_t pid = fork();
    if (pid == 0) {
      for (;;) cache().save(entry(1, 1 << 20));
    }
    usleep(3000 * (round % 7 + 1));
    kill(pid, SIGKILL);
    waitpid(pid, nullptr, 0);
    std::optional<CacheEntry> found = cache().load("key 1");
    EXPECT_TRUE(!found || same(found, entry(1, 1 << 20)));
  }
  cache().save(entry(1));
  EXPECT_TRUE(same(cache().load("key 1"), entry(1)));
}

TEST_F(Cache, CACHE_03_LeftoversOfTheKilledGo) {
  cache().save(entry(1));
  std::string leftover = file_of(1) + ".123.0.tmp";
  std::ofstream(leftover) << "half";
  fs::last_write_time(leftover, fs::file_time_type::clock::now() - std::chrono::hours(2));
  cache().save(entry(2));
  EXPECT_FALSE(fs::exists(leftover));
}

TEST_F(Cache, CACHE_06_AFolderThatTakesNothing) {
  fs::create_directory(folder_ + "/kernels");
  fs::permissions(folder_ + "/kernels", fs::perms::owner_read | fs::perms::owner_exec |
                                            fs::perms::others_read | fs::perms::others_exec);
  auto [code, said] = in_child([&] {
    become_ordinary();
    cache().save(entry(1));
    cache().save(entry(2));
    return same(cache().load("key 1"), entry(1)) && same(cache().load("key 2"), entry(2)) ? 0 : 1;
  });
  EXPECT_EQ(code, 0);
  EXPECT_EQ(count_of(said, "warning"), 1u) << said;
  EXPECT_NE(said.find("TW_CACHE_DIR"), std::string::npos);
}

TEST_F(Cache, CACHE_06_NoHome) {
  auto [code, said] = in_child([] {
    KernelCache nowhere("", 1 << 20);
    nowhere.save(entry(1));
    return same(nowhere.load("key 1"), entry(1)) ? 0 : 1;
  });
  EXPECT_EQ(code, 0);
  EXPECT_EQ(count_of(said, "warning"), 1u) << said;
}

TEST_F(Cache, CACHE_06_FilesOfAnotherUserAreNotLoaded) {
  if (geteuid() != 0) GTEST_SKIP() << "needs root, to make a file of another user";
  cache().save(entry(1));
  ASSERT_EQ(chown(file_of(1).c_str(), 12345, 12345), 0);
  auto [code, said] = in_child([&] { return cache().load("key 1") ? 1 : 0; });
  EXPECT_EQ(code, 0);
  EXPECT_NE(said.find("belongs to another user"), std::string::npos);
}

TEST_F(Cache, FullDiskKeepsEntriesInMemory) {
  auto [code, said] = in_child([&] {
    rlimit none{64, 64};  // a file may have this many bytes
    std::signal(SIGXFSZ, SIG_IGN);
    setrlimit(RLIMIT_FSIZE, &none);
    cache().save(entry(1));
    cache().save(entry(2));
    return same(cache().load("key 1"), entry(1)) && cache().list().empty() ? 0 : 1;
  });
  EXPECT_EQ(code, 0) << said;
  EXPECT_EQ(count_of(said, "warning"), 1u) << said;
}

TEST_F(Cache, CACHE_07_BehindASymlink) {
  fs::create_directory(folder_ + "/real");
  fs::create_directory_symlink(folder_ + "/real", folder_ + "/kernels");
  cache().save(entry(1));
  EXPECT_TRUE(same(cache().load("key 1"), entry(1)));
  EXPECT_TRUE(fs::exists(folder_ + "/real/" + hash_hex("key 1") + ".twk"));
}

TEST_F(Cache, TheLeastRecentlyUsedGoFirst) {
  KernelCache small = cache(3500);
  for (int i = 0; i < 3; ++i) {
    small.save(entry(i, 1000));
    fs::last_write_time(file_of(i),
                        fs::file_time_type::clock::now() - std::chrono::minutes(10 - i));
  }
  EXPECT_TRUE(small.load("key 0"));  // now the most recent
  small.save(entry(3, 1000));
  EXPECT_TRUE(small.load("key 0"));
  EXPECT_FALSE(small.load("key 1"));
  EXPECT_TRUE(small.load("key 3"));
}

TEST_F(Cache, FollowsTheEnvironment) {
  setenv("TW_CACHE_DIR", "/here", 1);
  EXPECT_EQ(KernelCache::open().folder(), "/here");
  unsetenv("TW_CACHE_DIR");
  setenv("XDG_CACHE_HOME", "/there", 1);
  EXPECT_EQ(KernelCache::open().folder(), "/there/tilewright");
  unsetenv("XDG_CACHE_HOME");
  setenv("TW_CACHE_SIZE", "much", 1);
  TW_EXPECT_ERROR(UserError, "TW_CACHE_SIZE is 'much'; wanted megabytes",
                  [] { KernelCache::open(); });
  unsetenv("TW_CACHE_SIZE");
}

}  // namespace tw
