#include "tw/runtime/thread_pool.h"

#include <algorithm>
#include <charconv>
#include <cstdio>
#include <mutex>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <string>

#include "tw/base/env.h"
#include "tw/base/error.h"
#include "tw/base/round.h"
#include "tw/runtime/futex.h"
#include "tw/runtime/scratch.h"

namespace tw {

namespace {

/// Bits of inside_ above the count of workers. Closed: there is no job to join. Waiting: the caller
/// of the job sleeps until the last worker leaves.
constexpr uint32_t kClosed = 1u << 31, kWaiting = 1u << 30, kCount = kWaiting - 1;
/// Shares hold 32-bit positions, so longer ranges are counted in units of several items.
constexpr int64_t kMaxUnits = int64_t{1} << 31;

/// How often this process is a fork()ed child, counted from the first pool on: a pool compares it
/// with the count at which it started its workers.
std::atomic<uint32_t>& forks() {
  static std::atomic<uint32_t> count{0};
  static const int registered = pthread_atfork(nullptr, nullptr, [] { ++count; });
  (void)registered;
  return count;
}

uint64_t pack(int64_t lo, int64_t hi) {
  return static_cast<uint64_t>(hi) << 32 | static_cast<uint64_t>(lo);
}

/// Takes a quarter of what is left, so that the last pieces are small and threads end together.
bool take(std::atomic<uint64_t>& left, bool front, int64_t& lo, int64_t& hi) {
  uint64_t seen = left.load(std::memory_order_relaxed);
  for (;;) {
    const int64_t begin = seen & 0xffffffff, end = seen >> 32;
    if (begin >= end) return false;
    const int64_t n = std::max<int64_t>((end - begin) / 4, 1);
    const uint64_t rest = front ? pack(begin + n, end) : pack(begin, end - n);
    if (left.compare_exchange_weak(seen, rest, std::memory_order_relaxed)) {
      lo = front ? begin : end - n;
      hi = lo + n;
      return true;
    }
  }
}

}  // namespace

int usable_cores() {
  cpu_set_t set;
  // More than 1024 cores do not fit in cpu_set_t; the call fails and the count of all cores serves.
  if (sched_getaffinity(0, sizeof set, &set) == 0) return CPU_COUNT(&set);
  return std::max(1, static_cast<int>(std::thread::hardware_concurrency()));
}

/// More than any machine has cores; starting many more takes minutes.
constexpr int kMostThreads = 1024;

int default_threads() {
  const std::string text = env(Env::omp_num_threads);
  int n = 0;
  std::from_chars(text.data(), text.data() + text.size(), n);
  if (n >= 1) return std::min(n, kMostThreads);
  const int cores = usable_cores();
  static std::once_flag said;
  if (!text.empty()) {
    std::call_once(said, [&] {
      std::fprintf(
          stderr,
          "tilewright: warning: OMP_NUM_THREADS is '%s', wanted a count of at least 1; the "
          "%d cores are used\n",
          text.c_str(), cores);
    });
  }
  return cores;
}

ThreadPool::ThreadPool(int threads)
    : threads_(std::max(threads, 1)), shares_(threads_), inside_(kClosed) {
  start();
}

void ThreadPool::start() {
  forks_ = forks().load();
  quit_ = false;
  inside_ = kClosed;
  sleepers_ = 0;
  const uint32_t epoch = epoch_.load();
  sigset_t all, before;  // signals of the process are its own threads' business
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  try {
    for (int i = 1; i < threads_; ++i) {
      workers_.emplace_back([this, i, epoch] { worker(i, epoch); });
    }
  } catch (const std::system_error&) {
    // Fewer threads than wished: the others take the shares of those missing.
  }
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
}

ThreadPool::~ThreadPool() {
  if (forks_ != forks().load()) {  // the threads stayed in the parent: there is nothing to join
    new std::vector<std::thread>(std::move(workers_));
    return;
  }
  quit_ = true;
  ++epoch_;
  futex_wake_all(epoch_);
  for (std::thread& t : workers_) t.join();
}

void ThreadPool::reserve_scratch(int64_t bytes) {
  if (bytes > 0 && !ThreadScratch::get(bytes)) {
    throw EnvError(fmt::format("no memory for {} bytes of scratch", bytes));
  }
}

bool ThreadPool::acquire() {
  const uint32_t now = forks().load(std::memory_order_relaxed);
  uint32_t held = holder_.load(std::memory_order_relaxed);
  if (held == now + 1 || !holder_.compare_exchange_strong(held, now + 1)) return false;
  if (forks_ != now) {
    new std::vector<std::thread>(std::move(workers_));  // the parent's: cannot be joined from here
    workers_.clear();
    start();
  }
  return true;
}

int ThreadPool::usable(int most) const noexcept {
  if (ThreadScratch::nested()) return 1;
  return most > 0 ? std::min(most, threads_) : threads_;
}

void ThreadPool::run(int64_t n, Task task, void* ctx, int64_t scratch_bytes, int most) noexcept {
  if (n <= 0) return;
  void* scratch = ThreadScratch::get(scratch_bytes);
  const int64_t members = std::min<int64_t>(usable(most), n);
  ThreadScratch::Nested inside;
  if (members == 1 || !acquire()) {
    task(ctx, 0, n, scratch);
    return;
  }
  const Job job{task, ctx, n, ceil_div(n, kMaxUnits), scratch_bytes, static_cast<int>(members)};
  open(job);
  work(0, job, scratch);
  close();
  holder_.store(0, std::memory_order_release);
}

void ThreadPool::open(const Job& job) {
  job_ = job;
  const int64_t units = ceil_div(job.n, job.unit);
  for (int i = 0; i < job.members; ++i) {
    shares_[i].left.store(pack(units * i / job.members, units * (i + 1) / job.members),
                          std::memory_order_relaxed);
  }
  inside_.store(0, std::memory_order_release);
  // Both orders are total: either the worker sees the new epoch, or this sees the sleeper.
  epoch_.fetch_add(1);
  if (sleepers_.load() > 0) futex_wake_all(epoch_);
}

/// A worker that still sleeps is not waited for: it finds the job closed.
void ThreadPool::close() {
  inside_.fetch_or(kClosed, std::memory_order_acq_rel);
  auto empty = [&] { return (inside_.load(std::memory_order_acquire) & kCount) == 0; };
  if (spin_until(empty)) return;
  uint32_t now = inside_.fetch_or(kWaiting, std::memory_order_acq_rel) | kWaiting;
  while (now & kCount) {
    futex_wait(inside_, now);
    now = inside_.load(std::memory_order_acquire);
  }
}

bool ThreadPool::join() {
  uint32_t now = inside_.load(std::memory_order_relaxed);
  while (!(now & kClosed)) {
    if (inside_.compare_exchange_weak(now, now + 1, std::memory_order_acquire)) return true;
  }
  return false;
}

void ThreadPool::leave() {
  const uint32_t before = inside_.fetch_sub(1, std::memory_order_acq_rel);
  if (before & kWaiting) futex_wake_all(inside_);
}

void ThreadPool::worker(int id, uint32_t seen) {
  for (;;) {
    auto called = [&] { return epoch_.load(std::memory_order_acquire) != seen; };
    if (!spin_until(called)) {
      ++sleepers_;
      while (!called()) futex_wait(epoch_, seen);
      --sleepers_;
    }
    if (quit_) return;
    seen = epoch_.load(std::memory_order_acquire);
    if (!join()) continue;
    const Job job = job_;
    void* scratch = ThreadScratch::get(job.scratch_bytes);
    if (id < job.members && (scratch || job.scratch_bytes == 0)) {
      ThreadScratch::Nested inside;
      work(id, job, scratch);
    }
    leave();
  }
}

void ThreadPool::work(int id, const Job& job, void* scratch) {
  int64_t lo = 0, hi = 0;
  for (int k = 0; k < job.members; ++k) {
    std::atomic<uint64_t>& left = shares_[(id + k) % job.members].left;
    while (take(left, k == 0, lo, hi)) {
      job.task(job.ctx, lo * job.unit, std::min(hi * job.unit, job.n), scratch);
    }
  }
}

}  // namespace tw
