#pragma once

#include <atomic>
#include <cstdint>
#include <thread>
#include <vector>

namespace tw {

/// The threads of a process that run kernels. run() blocks its caller, who works too; a call from
/// inside a task, and a call while another thread's call holds the pool, runs serially on its own
/// thread. Idle workers spin for at most 50 us, then sleep. After fork() the child starts workers
/// of its own at its first call; a child forked from inside a task must not return into it.
class ThreadPool {
 public:
  /// task(ctx, lo, hi, scratch) works on items [lo, hi). It must not throw.
  using Task = void (*)(void* ctx, int64_t lo, int64_t hi, void* scratch);

  /// `threads` counts the caller of run().
  explicit ThreadPool(int threads);
  ~ThreadPool();
  ThreadPool(const ThreadPool&) = delete;
  ThreadPool& operator=(const ThreadPool&) = delete;

  int threads() const { return threads_; }
  /// How many threads a run() with this `most` may take here: 1 inside a task.
  int usable(int most) const noexcept;

  /// Runs tasks on disjoint ranges that cover [0, n); returns when all are done. Each call of task
  /// gets `scratch_bytes` bytes of its own, 64-byte aligned, uninitialised. Threads start on equal
  /// contiguous shares, the same ones for the same n, and take from each other's when done. At most
  /// `most` threads take part (0: all). The caller must have called reserve_scratch() before when
  /// scratch_bytes > 0; a worker that gets no memory leaves its share to the others.
  void run(int64_t n, Task task, void* ctx, int64_t scratch_bytes = 0, int most = 0) noexcept;

  /// Makes sure that a run() of this thread finds its own scratch. Throws EnvError when memory is
  /// not to be had. Memory is kept by the thread until it ends.
  static void reserve_scratch(int64_t bytes);

 private:
  /// What is left of one thread's share, lo and hi in one word; the owner takes from the front,
  /// others from the back.
  struct alignas(64) Share {
    std::atomic<uint64_t> left{0};
  };
  struct Job {
    Task task = nullptr;
    void* ctx = nullptr;
    int64_t n = 0, unit = 1, scratch_bytes = 0;
    int members = 1;
  };

  bool acquire();
  void start();
  void open(const Job& job);
  void close();
  void worker(int id, uint32_t seen);
  bool join();
  void leave();
  void work(int id, const Job& job, void* scratch);

  const int threads_;
  std::vector<std::thread> workers_;
  uint32_t forks_ = 0;  ///< count of forks when the workers were started
  /// 0, or 1 + the count of forks in the process whose call holds the pool: a child does not wait
  /// for a call that only its parent can finish.
  std::atomic<uint32_t> holder_{0};
  std::vector<Share> shares_;
  Job job_;  ///< written only while no worker is inside
  std::atomic<bool> quit_{false};
  std::atomic<int> sleepers_{0};
  alignas(64) std::atomic<uint32_t> epoch_{0};  ///< counts jobs; what idle workers watch
  alignas(64) std::atomic<uint32_t> inside_;    ///< workers in the job, and the bits of the .cpp
};

/// Cores that the scheduler lets this process use.
int usable_cores();
/// Threads that OMP_NUM_THREADS asks for (its first number), else usable_cores().
int default_threads();

}  // namespace tw
