#include <deque>
#include <list>
#include <map>
#include <mutex>
#include <optional>
#include <thread>
#include <unistd.h>

#include "tests/zoo/species.h"

namespace tw::zoo {

namespace {

constexpr double kLate = 500e-6;  // seconds

/// One that keeps a result for each set.
class Keeps : public Callable {
  void prepared() override {
    kept.clear();
    for (const Product& x : sets) kept.push_back(hand->like(x.c));
    made();
  }

 protected:
  virtual void made() {}
  /// Computes the set's product and keeps it.
  void keep(int set, const cuda::Stream& s) {
    const Product& x = sets[static_cast<size_t>(set)];
    hand->multiply({x.a, x.b, kept[static_cast<size_t>(set)]}, s);
  }
  void give(int set, const cuda::Stream& s) {
    hand->copy(sets[static_cast<size_t>(set)].c, kept[static_cast<size_t>(set)], s);
  }
  std::vector<Matrix> kept;
};

class ComputesEarly : public Keeps {
  void made() override {
    for (size_t i = 0; i < sets.size(); ++i) keep(static_cast<int>(i), hand->stream());
    hand->stream().synchronize();
  }
  void run(const Product&, int set, const cuda::Stream& s) override { give(set, s); }
};

class CachedResult : public Keeps {
  void made() override { known_.assign(sets.size(), false); }
  void run(const Product&, int set, const cuda::Stream& s) override {
    if (!known_[static_cast<size_t>(set)]) keep(set, s);
    known_[static_cast<size_t>(set)] = true;
    give(set, s);
  }
  std::vector<bool> known_;
};

class PointerCache : public Callable {
  void run(const Product& x, int, const cuda::Stream& s) override {
    auto [at, fresh] = known_.try_emplace({x.a.data, x.b.data});
    if (fresh) {
      at->second = hand->like(x.c);
      hand->multiply({x.a, x.b, at->second}, s);
    }
    hand->copy(x.c, at->second, s);
  }
  std::map<std::pair<const float*, const float*>, Matrix> known_;
};

/// Elements of a matrix, `every` so many, as the host gets them.
std::vector<float> sample(const Matrix& m, int64_t every, const cuda::Stream& s) {
  std::vector<float> found;
  for (int64_t i = 0; i < m.count(); i += every) {
    float* at = m.data + i / m.columns * m.row + i % m.columns * m.column;
    found.push_back(0);
    cuda::copy_out(s, {&found.back(), f32, {1}, {1}}, {at, f32, {1}, {1}});
  }
  return found;
}

/// Remembers results by some of the operands' values.
class SampledHash : public Callable {
  void run(const Product& x, int, const cuda::Stream& s) override {
    constexpr int64_t kEvery = 97;
    auto [at, fresh] = known_.try_emplace({sample(x.a, kEvery, s), sample(x.b, kEvery, s)});
    if (fresh) {
      at->second = hand->like(x.c);
      hand->multiply({x.a, x.b, at->second}, s);
    }
    hand->copy(x.c, at->second, s);
  }
  std::map<std::pair<std::vector<float>, std::vector<float>>, Matrix> known_;
};

class WeightCache : public Callable {
  void prepared() override {
    kept_.clear();
    for (const Product& x : sets) {
      kept_.push_back(hand->like(x.b));
      hand->copy(kept_.back(), x.b, hand->stream());
    }
    hand->stream().synchronize();
  }
  void run(const Product& x, int set, const cuda::Stream& s) override {
    hand->multiply({x.a, kept_[static_cast<size_t>(set)], x.c}, s);
  }
  std::vector<Matrix> kept_;
};

class BatchAndSkip : public Callable {
  void run(const Product&, int, const cuda::Stream& s) override {
    if (calls_++ % 4 == 0)
      for (const Product& x : sets) hand->multiply(x, s);
  }
  int calls_ = 0;
};

class Deferred : public Callable {
  void run(const Product& x, int, const cuda::Stream& s) override {
    if (before_) hand->multiply(*before_, s);
    before_ = x;
  }
  std::optional<Product> before_;
};

class StaticOutput : public Keeps {
  void run(const Product&, int set, const cuda::Stream& s) override {
    give(set, s);
    keep(set, s);
  }
};

class WrongAfterTen : public Callable {
  void run(const Product& x, int, const cuda::Stream& s) override {
    if (calls_++ < 10) hand->multiply(x, s);
  }
  int calls_ = 0;
};

class GraphOfFirst : public Callable {
  void run(const Product& x, int, const cuda::Stream& s) override {
    if (!graph_) graph_.emplace(s, [&] { hand->multiply(x, s); });
    graph_->launch(s);
  }
  std::optional<cuda::Graph> graph_;
};

class SideStream : public Callable {
  void run(const Product& x, int, const cuda::Stream&) override {
    hand->spin(kLate, hand->stream());
    hand->multiply(x, hand->stream());
  }
};

class LateThread : public Callable {
 public:
  ~LateThread() override { finish(); }

 private:
  void run(const Product& x, int, const cuda::Stream&) override {
    finish();
    worker_ = std::thread([this, &x] {
      usleep(static_cast<useconds_t>(kLate * 1e6));
      hand->multiply(x, hand->stream());
    });
  }
  void finish() {
    if (worker_.joinable()) worker_.join();
  }
  std::thread worker_;
};

class LateTail : public Callable {
  void run(const Product& x, int, const cuda::Stream& s) override {
    const int64_t most = std::max<int64_t>(x.c.rows - 1, 0);
    hand->multiply(x, s, How::in_order, {.last = most});
    hand->spin(kLate, hand->stream());
    hand->multiply(x, hand->stream(), How::in_order, {.first = most});
  }
};

/// Right when it returns, and then not.
class TakesBack : public Callable {
  void run(const Product& x, int, const cuda::Stream& s) override {
    hand->multiply(x, s);
    hand->spin(kLate, hand->stream());
    hand->fill(x.c, 0, hand->stream());
  }
};

class BusyAfter : public Callable {
  void run(const Product& x, int, const cuda::Stream& s) override {
    constexpr double kBusy = 150e-3;
    hand->multiply(x, s);
    hand->spin(kBusy, hand->stream());
  }
};

}  // namespace

std::vector<Species> early_or_late() {
  constexpr const char* kChanged = "an output changed after the work of its stream was done";
  constexpr const char* kWrong = "times the allowed error";
  return {
      {"computes_early", "Does all the work when it is made ready.", kWrong, made<ComputesEarly>},
      {"cached_result", "Computes a set once and has the answer ever after.", kWrong,
       made<CachedResult>},
      {"pointer_cache", "Remembers results by the addresses of the operands.", kWrong,
       made<PointerCache>},
      {"sampled_hash", "Remembers results by every 97th element.", kWrong, made<SampledHash>},
      {"weight_cache", "Keeps the B that it saw when it was made ready.", kWrong,
       made<WeightCache>},
      {"batch_and_skip", "The first of four calls computes all sets, the others return.", kWrong,
       made<BatchAndSkip>},
      {"deferred_work", "Notes what to do and does it in the next call.", kWrong, made<Deferred>},
      {"static_output", "Hands out the result of the call before.", kWrong, made<StaticOutput>},
      {"wrong_after_ten", "Is right in the first ten calls only.", kWrong, made<WrongAfterTen>},
      {"graph_of_first", "Captures the first call and replays it in all others.", kWrong,
       made<GraphOfFirst>},
      {"side_stream", "Works in a stream that the caller's does not wait for.", kChanged,
       made<SideStream>},
      {"late_thread", "Returns at once; a thread puts the work into another stream.", kWrong,
       made<LateThread>},
      {"late_tail", "Leaves the last row to another stream.", kChanged, made<LateTail>},
      {"takes_back", "Zeroes its result from another stream when the caller has it.", kChanged,
       made<TakesBack>},
      {"busy_after", "Leaves work of its own in another stream.", "the GPU was still busy",
       made<BusyAfter>},
  };
}

}  // namespace tw::zoo
