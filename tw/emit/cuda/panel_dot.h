#pragma once

#include <optional>

#include "tw/emit/cuda/panel.h"

namespace tw::cuda {

/// Sums of a dot in registers, and the panels of its operands while it is emitted.
class PanelDot {
 public:
  PanelDot(State& s, const Op& op);
  ~PanelDot();
  PanelDot(const PanelDot&) = delete;
  PanelDot& operator=(const PanelDot&) = delete;

  /// The operands' panels, filled here where they are not yet.
  void take_panels(bool left, Writer& out);
  /// The array of sums, set to the accumulator operand.
  void begin(Writer& text);
  /// The sums as the dot's result; `text` multiplied.
  void finish(const Writer& text, Writer& out);

  /// What the text reads beside the panels.
  void also_reads(const Footprint& f) { reads_.add(f); }
  const Panel& form(size_t which) const { return panels_[which].form; }
  /// The place of an element of an operand: `line`s of text along the axis of the result and k.
  std::string place(size_t which, const std::string& along, const std::string& k) const;
  /// Whether neighbours of the operand's panel lie along k.
  bool along_k(size_t which) const {
    return panels_[which].form.unit == operands_[which].axis(1 - which);
  }
  const std::string& sums() const { return sums_.name; }
  const layout::ThreadValue& layout() const { return sums_.layout; }
  int64_t depth() const { return depth_; }

 private:
  void free_panels();

  State& s_;
  const Op& op_;
  const int64_t depth_;
  Operand operands_[2];
  PanelMemory panels_[2];
  std::vector<ValueId> filled_;
  std::optional<MemoryScope> scope_;  ///< of the panels
  Tile sums_;
  Footprint reads_;
};

void emit_matrix_dot(State& s, const Op& op, Writer& out);
void emit_multiply_add(State& s, const Op& op, Writer& out);

}  // namespace tw::cuda
