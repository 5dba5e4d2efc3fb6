#pragma once

#include "tw/measure/impl/message.h"
#include "tw/measure/impl/shared_memory.h"

namespace tw::measure {

/// What the judge and its workers hand each other: inputs of every set, which only the judge can
/// write, and room for the outputs of `kSlots` calls.
class Exchange {
 public:
  static constexpr int kSlots = 4;

  Exchange(std::vector<TensorSpec> inputs, std::vector<TensorSpec> outputs, int sets);

  /// Makes the memory (judge), or maps that of the judge (worker).
  void create();
  void map_here();

  int inputs_descriptor() const { return from_judge_.descriptor(); }
  int outputs_descriptor() const { return to_judge_.descriptor(); }
  int sets() const { return sets_; }
  const std::vector<TensorSpec>& inputs() const { return inputs_; }
  const std::vector<TensorSpec>& outputs() const { return outputs_; }
  TensorView input(int set, int index) const;
  TensorView output(int slot, int index) const;

 private:
  std::vector<TensorSpec> inputs_, outputs_;
  int sets_;
  SharedMemory from_judge_, to_judge_;
};

/// Changes tensors, the same way wherever it runs, so that they stay what an input may hold: a
/// little, by exchanging elements in pairs, or all of them, by turning them round. Step by step it
/// goes on where it was.
class Stirrer {
 public:
  /// How far it came: pairs of each input, how often all changed, and the pairs until then.
  struct State {
    int64_t pairs = 0, turns = 0, pairs_then = 0;
  };

  /// Of inputs of one set; those that are `fixed` stay as they are.
  Stirrer(const std::vector<TensorSpec>& inputs, uint64_t seed);
  /// `pairs` of each input.
  void step(const std::vector<TensorView>& inputs, int64_t pairs);
  /// Every element is another of `first`, what the inputs held at first; none where any has
  /// strides.
  void turn(const std::vector<TensorView>& inputs, const std::vector<TensorView>& first);
  /// From what they held at first to that state. Of a new one.
  void replay(const std::vector<TensorView>& inputs, const std::vector<TensorView>& first,
              const State& state);
  const State& state() const { return state_; }

 private:
  struct Stream {
    bool stirred;
    uint64_t pairs, turns;  // of random numbers
  };
  std::vector<Stream> streams_;
  bool plain_ = true;  // no strides
  State state_;
};

}  // namespace tw::measure
