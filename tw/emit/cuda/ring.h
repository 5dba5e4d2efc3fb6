#pragma once

#include "tw/emit/cuda/panel.h"

namespace tw::cuda {

/// The view in the iteration of a loop that another symbol counts.
View with_counter(View view, Symbol counter, Symbol other);

/// The loads of a loop that only dots read, on their way some iterations ahead: each has a ring of
/// panels in shared memory, one of which is read while the others are filled.
class Ring {
 public:
  Ring(State& s, const Op& loop);
  ~Ring();
  Ring(const Ring&) = delete;
  Ring& operator=(const Ring&) = delete;

  bool empty() const { return loads_.empty(); }
  /// Memory, and the copies of the first iterations. What it declares lives as long as `this`.
  void begin(Writer& out);
  /// At the top of an iteration: its panels are there, and the copies of a later one begin.
  void next(Writer& out);
  /// After the loop.
  void end();

 private:
  void copy(const std::string& iteration, const std::string& stage, Writer& out);
  int64_t choose_stages() const;
  int64_t other_bytes() const;
  bool alone() const;

  State& s_;
  const Op& loop_;
  std::vector<const Op*> loads_;
  std::vector<PanelMemory> memory_;
  int64_t stages_ = 0;
  std::string stage_;
};

}  // namespace tw::cuda
