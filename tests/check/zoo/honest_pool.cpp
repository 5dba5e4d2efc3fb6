#include <condition_variable>
#include <mutex>
#include <thread>

#include "tests/check/zoo/zoo.h"

namespace zoo {

/// A thread that stays and sleeps between calls.
class Pooled : public Callable {
 public:
  ~Pooled() override {
    hand({nullptr, 0, true});
    worker_.join();
  }
  void run(const Product& x, int) override {
    std::lock_guard one(calls_);
    const int64_t middle = threads > 1 ? x.c.rows / 2 : x.c.rows;
    hand({&x, middle, false});
    multiply(x, 0, middle);
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return !full_; });
  }

 private:
  struct Work {
    const Product* x;
    int64_t first;
    bool end;
  };
  void hand(Work work) {
    std::lock_guard lock(mutex_);
    work_ = work;
    full_ = true;
    changed_.notify_all();
  }
  void serve() {
    std::unique_lock lock(mutex_);
    while (true) {
      changed_.wait(lock, [&] { return full_; });
      if (work_.end) return;
      multiply(*work_.x, work_.first, work_.x->c.rows);
      full_ = false;
      changed_.notify_all();
    }
  }
  std::mutex calls_, mutex_;
  std::condition_variable changed_;
  Work work_ = {};
  bool full_ = false;
  std::thread worker_{[this] { serve(); }};
};

}  // namespace zoo

const TwPeer* tw_peer() { return zoo::peer<zoo::Pooled>(); }
