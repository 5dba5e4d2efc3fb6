#include <map>
#include <mutex>
#include <optional>

#include "tw/base/error.h"

#include "tests/zoo/species.h"

namespace tw::zoo {

namespace {

template <How how>
class Plain : public Callable {
  void run(const Product& x, int, const cuda::Stream& s) override { hand->multiply(x, s, how); }
};

bool contiguous(const Matrix& m) { return m.column == 1 && m.row == m.columns; }

class Choosy : public Callable {
  void prepared() override {
    for (const Product& x : sets)
      if (!contiguous(x.a) || !contiguous(x.b) || !contiguous(x.c))
        throw UserError("only contiguous matrices");
  }
  void run(const Product& x, int, const cuda::Stream& s) override { hand->multiply(x, s); }
};

/// Packs its operands into memory of its own, one for each set.
class Scratch : public Callable {
  void prepared() override {
    own_.clear();
    for (const Product& x : sets) own_.push_back({hand->like(x.a), hand->like(x.b), x.c});
  }
  void run(const Product& x, int set, const cuda::Stream& s) override {
    const Product& own = own_[static_cast<size_t>(set)];
    hand->copy(own.a, x.a, s);
    hand->copy(own.b, x.b, s);
    hand->multiply(own, s);
  }
  std::vector<Product> own_;
};

/// Half of the rows in a stream of its own, which the caller's waits for.
class TwoStreams : public Callable {
  void run(const Product& x, int, const cuda::Stream& s) override {
    const std::lock_guard guard(lock_);
    cuda::Event ready(hand->device()), done(hand->device());
    ready.record(s);
    ready.hold(hand->stream());
    hand->multiply(x, hand->stream(), How::in_order, {.last = x.c.rows / 2});
    done.record(hand->stream());
    hand->multiply(x, s, How::in_order, {.first = x.c.rows / 2});
    done.hold(s);
  }
  std::mutex lock_;
};

/// A graph for each set, captured when it is first called.
class Captured : public Callable {
  void prepared() override { graphs_.clear(); }
  void run(const Product& x, int set, const cuda::Stream& s) override {
    const std::lock_guard guard(lock_);
    auto [at, fresh] = graphs_.try_emplace(set);
    if (fresh) at->second.emplace(s, [&] { hand->multiply(x, s); });
    at->second->launch(s);
  }
  std::mutex lock_;
  std::map<int, std::optional<cuda::Graph>> graphs_;
};

/// Waits for its own work.
class Waits : public Callable {
  void run(const Product& x, int, const cuda::Stream& s) override {
    hand->multiply(x, s);
    s.synchronize();
  }
};

/// Writes C only when the whole product is there.
class InPlace : public Callable {
  void prepared() override {
    own_.clear();
    for (const Product& x : sets) own_.push_back(hand->like(x.c));
  }
  void run(const Product& x, int set, const cuda::Stream& s) override {
    const Matrix& own = own_[static_cast<size_t>(set)];
    hand->multiply({x.a, x.b, own}, s);
    hand->copy(x.c, own, s);
  }
  std::vector<Matrix> own_;
};

}  // namespace

std::vector<Species> honest() {
  return {
      {"honest_plain", "A thread for each element.", "accepted", made<Plain<How::in_order>>},
      {"honest_backwards", "Adds the terms from the last to the first.", "accepted",
       made<Plain<How::backwards>>},
      {"honest_four_sums", "Adds in four partial sums.", "accepted", made<Plain<How::four_sums>>},
      {"honest_double", "Sums in double.", "accepted", made<Plain<How::in_double>>},
      {"honest_choosy", "Refuses all but contiguous matrices.", "accepted", made<Choosy>},
      {"honest_scratch", "Packs its operands into memory of its own.", "accepted", made<Scratch>},
      {"honest_two_streams",
       "Half of the rows in a stream of its own, which the caller's waits "
       "for.",
       "accepted", made<TwoStreams>},
      {"honest_graph", "A graph for each set, captured in the first call.", "accepted",
       made<Captured>},
      {"honest_waits", "Returns when its work is done.", "accepted", made<Waits>},
      {"honest_in_place", "Writes only when all is read.", "accepted", made<InPlace>},
  };
}

}  // namespace tw::zoo
