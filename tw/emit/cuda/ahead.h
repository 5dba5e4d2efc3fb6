#pragma once

#include "tw/emit/cuda/statements.h"

namespace tw::cuda {

/// The loads of a loop without dots that the counter places: on their way some iterations ahead, in
/// registers, as memory holds them. So memory is waited for while earlier iterations compute.
class Ahead {
 public:
  Ahead(State& s, const Op& loop);
  ~Ahead();
  Ahead(const Ahead&) = delete;
  Ahead& operator=(const Ahead&) = delete;

  bool empty() const { return loads_.empty(); }
  /// Registers, and the loads of the first iterations.
  void begin(Writer& out);
  /// At the top of an iteration: its tiles, and the loads of a later one.
  void next(Writer& out);
  /// Times that a loop of so many stages is unrolled, so that none moves from register to register.
  int64_t most_stages() const;

 private:
  struct Load {
    const Op* op;
    Run run;
    int64_t stages = 1;
    std::string raw = "";
    bool partial = false;  ///< some runs may lie across an edge of the tensor
  };
  void find_loads();
  bool may_move(const Op& load) const;
  void choose_stages();
  int64_t bytes_of(const Load& l) const;
  std::set<int64_t> stage_counts() const;
  std::string stage_of(const Load& l, const std::string& stage) const;
  void fetch(const std::string& iteration, int64_t stages, const std::string& stage, Writer& out);
  void shift(int64_t stages, Writer& out);

  State& s_;
  const Op& loop_;
  std::vector<Load> loads_;
};

}  // namespace tw::cuda
