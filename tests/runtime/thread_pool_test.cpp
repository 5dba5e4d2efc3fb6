#include "tw/runtime/thread_pool.h"

#include <chrono>
#include <fmt/format.h>
#include <functional>
#include <mutex>
#include <set>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tw/base/error.h"

#include "tests/support/expect_error.h"

namespace tw {

/// Runs a lambda (lo, hi, scratch) on the pool.
template <class F>
static void run(ThreadPool& pool, int64_t n, F&& body, int64_t scratch = 0, int most = 0) {
  using Body = std::remove_reference_t<F>;
  ThreadPool::reserve_scratch(scratch);
  pool.run(
      n,
      [](void* ctx, int64_t lo, int64_t hi, void* memory) {
        (*static_cast<Body*>(ctx))(lo, hi, memory);
      },
      &body, scratch, most);
}

/// How often each item was visited.
static std::vector<int> visits(ThreadPool& pool, int64_t n, int most = 0) {
  std::vector<std::atomic<int>> seen(n);
  run(
      pool, n,
      [&](int64_t lo, int64_t hi, void*) {
        ASSERT_LT(lo, hi);
        for (int64_t i = lo; i < hi; ++i) ++seen[i];
      },
      0, most);
  return {seen.begin(), seen.end()};
}

TEST(ThreadPool, VisitsEveryItemOnce) {
  for (int threads : {1, 2, 3, 8}) {
    ThreadPool pool(threads);
    for (int64_t n : {0, 1, 2, 3, 7, 8, 9, 64, 1000, 4099}) {
      for (int repeat = 0; repeat < 20; ++repeat) {
        EXPECT_EQ(visits(pool, n), std::vector<int>(n, 1)) << threads << " threads, n = " << n;
      }
    }
  }
}

TEST(ThreadPool, CountsPast32BitsOfItems) {
  ThreadPool pool(3);
  const int64_t n = (int64_t{5} << 32) + 3;
  std::atomic<int64_t> covered{0};
  run(pool, n, [&](int64_t lo, int64_t hi, void*) {
    EXPECT_TRUE(0 <= lo && lo < hi && hi <= n);
    covered += hi - lo;
  });
  EXPECT_EQ(covered, n);
}

/// Waits until `want` tasks have come here; false when they do not come within ten seconds.
static bool meet(std::atomic<int>& here, int want) {
  ++here;
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(10);
  while (here < want) {
    if (std::chrono::steady_clock::now() > end) return false;
    std::this_thread::yield();
  }
  return true;
}

TEST(ThreadPool, AsManyItemsAsThreadsAreOneEach) {
  ThreadPool pool(4);
  for (int repeat = 0; repeat < 100; ++repeat) {
    std::atomic<int> here{0};
    run(pool, 4, [&](int64_t lo, int64_t hi, void*) {
      EXPECT_EQ(hi, lo + 1);
      EXPECT_TRUE(meet(here, 4));
    });
  }
}

TEST(ThreadPool, WakesWorkersThatSleep) {
  ThreadPool pool(2);
  for (int repeat = 0; repeat < 20; ++repeat) {
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
    std::atomic<int> here{0};
    run(pool, 2, [&](int64_t, int64_t, void*) { EXPECT_TRUE(meet(here, 2)); });
  }
}

TEST(ThreadPool, IdleWorkersUseNoTime) {
  ThreadPool pool(8);
  visits(pool, 100);
  auto cpu_seconds = [] {
    rusage r;
    getrusage(RUSAGE_SELF, &r);
    return r.ru_utime.tv_sec + r.ru_stime.tv_sec + 1e-6 * (r.ru_utime.tv_usec + r.ru_stime.tv_usec);
  };
  std::this_thread::sleep_for(std::chrono::milliseconds(20));
  const double before = cpu_seconds();
  std::this_thread::sleep_for(std::chrono::milliseconds(100));
  EXPECT_LT(cpu_seconds() - before, 0.01);
}

TEST(ThreadPool, TakesAtMostTheThreadsAsked) {
  ThreadPool pool(8);
  for (int most : {1, 2, 5, 100}) {
    std::mutex lock;
    std::set<std::thread::id> seen;
    run(
        pool, 200,
        [&](int64_t, int64_t, void*) {
          std::this_thread::yield();
          std::lock_guard guard(lock);
          seen.insert(std::this_thread::get_id());
        },
        0, most);
    EXPECT_LE(seen.size(), static_cast<size_t>(most));
    EXPECT_EQ(visits(pool, 50, most), std::vector<int>(50, 1));
  }
}

TEST(ThreadPool, ScratchIsPrivateAndAligned) {
  ThreadPool pool(4);
  for (int64_t bytes : {64, 5000, 3 << 20, 100}) {
    std::atomic<int> here{0};
    std::mutex lock;
    std::set<char*> blocks;
    run(
        pool, 4,
        [&](int64_t lo, int64_t, void* memory) {
          EXPECT_EQ(reinterpret_cast<uintptr_t>(memory) % 64, 0u);
          char* p = static_cast<char*>(memory);
          for (int64_t i = 0; i < bytes; ++i) p[i] = static_cast<char>(lo);
          EXPECT_TRUE(meet(here, 4));
          for (int64_t i = 0; i < bytes; ++i) ASSERT_EQ(p[i], static_cast<char>(lo));
          std::lock_guard guard(lock);
          blocks.insert(p);
        },
        bytes);
    EXPECT_EQ(blocks.size(), 4u);
  }
}

TEST(ThreadPool, ImpossibleScratchIsAnErrorBeforeTheRun) {
  TW_EXPECT_ERROR(EnvError, "no memory for", [] { ThreadPool::reserve_scratch(int64_t{1} << 60); });
}

TEST(ThreadPool, NestedRunsAreSerialWithScratchOfTheirOwn) {
  ThreadPool pool(4);
  std::atomic<int64_t> sum{0};
  run(
      pool, 8,
      [&](int64_t lo, int64_t hi, void* outer) {
        const auto me = std::this_thread::get_id();
        run(
            pool, 10,
            [&](int64_t a, int64_t b, void* inner) {
              EXPECT_EQ(std::this_thread::get_id(), me);
              EXPECT_EQ(b - a, 10);
              EXPECT_NE(inner, outer);
              sum += (b - a) * (hi - lo);
            },
            256);
      },
      256);
  EXPECT_EQ(sum, 80);
}

TEST(ThreadPool, ManyThreadsCallAtOnce) {
  ThreadPool pool(4);
  std::atomic<int> wrong{0};
  std::vector<std::thread> callers;
  for (int t = 0; t < 64; ++t) {
    callers.emplace_back([&, t] {
      for (int repeat = 0; repeat < 50; ++repeat) {
        const int64_t n = 1 + (t * 7 + repeat) % 40;
        wrong += visits(pool, n) != std::vector<int>(n, 1);
      }
    });
  }
  for (std::thread& t : callers) t.join();
  EXPECT_EQ(wrong, 0);
}

/// What the child returns from `body`, or -1 when it does not end within ten seconds.
static int in_child(const std::function<int()>& body) {
  const pid_t pid = fork();
  if (pid == 0) {
    alarm(10);
    _exit(body());
  }
  int status = 0;
  waitpid(pid, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

TEST(ThreadPool, AForkedChildHasWorkersOfItsOwn) {
  ThreadPool pool(3);
  visits(pool, 100);
  auto works = [&] {
    std::atomic<int> here{0}, met{0};
    run(pool, 3, [&](int64_t, int64_t, void*) { met += meet(here, 3); });
    return met == 3 && visits(pool, 1000) == std::vector<int>(1000, 1) ? 0 : 1;
  };
  EXPECT_EQ(in_child([&] { return works() + in_child(works); }), 0) << "child and grandchild";
  EXPECT_EQ(works(), 0) << "parent";
}

TEST(ThreadPool, AChildForkedDuringARunDoesNotWaitForIt) {
  ThreadPool pool(2);
  std::atomic<bool> started{false}, stop{false};
  std::thread caller([&] {
    run(pool, 2, [&](int64_t, int64_t, void*) {
      started = true;
      while (!stop) std::this_thread::yield();
    });
  });
  while (!started) std::this_thread::yield();
  EXPECT_EQ(in_child([&] { return visits(pool, 100) == std::vector<int>(100, 1) ? 0 : 1; }), 0);
  stop = true;
  caller.join();
}

TEST(ThreadPool, DefaultThreadsHonourTheEnvironment) {
  auto with = [](const char* value) {
    setenv("OMP_NUM_THREADS", value, 1);
    const int n = default_threads();
    unsetenv("OMP_NUM_THREADS");
    return n;
  };
  EXPECT_EQ(with("3"), 3);
  EXPECT_EQ(with("4,2"), 4);
  testing::internal::CaptureStderr();
  EXPECT_EQ(with("0"), usable_cores());
  EXPECT_EQ(with("many"), usable_cores());
  EXPECT_EQ(
      testing::internal::GetCapturedStderr(),
      fmt::format("tilewright: warning: OMP_NUM_THREADS is '0', wanted a count of at least 1; "
                  "the {} cores are used\n",
                  usable_cores()))
      << "said once";
  EXPECT_EQ(default_threads(), usable_cores());
}

}  // namespace tw
