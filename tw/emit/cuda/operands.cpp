#include "tw/emit/cuda/operands.h"

#include <algorithm>

#include "tw/base/round.h"
#include "tw/ir/infer.h"

namespace tw::cuda {

using layout::ThreadValue;

namespace {

/// What one lane reads of a matrix of eight lines, and what one thread of a unit reads at once.
constexpr int64_t kLineBytes = 16;

/// Matrix instructions of f16, bf16 and tf32 add to f32, of f64 to f64, of bytes to i32.
bool on_matrix_unit(DType a, DType b, DType sum, Precision precision) {
  if (sum == f64) return a == f64 && b == f64;
  if (precision != Precision::ieee) return true;  // of f32 only
  if (sum == f32) return a == f16 || a == bf16 || (is_fp8(a) && is_fp8(b));
  return sum == i32;
}

}  // namespace

DotUnit unit_of(const Program& p, const Op& dot) {
  const DType a = p.type(dot.in[0]).dtype, b = p.type(dot.in[1]).dtype;
  const DType sum = p.type(dot.out[0]).dtype;
  const Extents& shape = p.type(dot.out[0]).shape;
  // Fragments have rows and columns, which a tile of one row or column lacks.
  if (on_matrix_unit(a, b, sum, dot.as<DotAttr>().precision) && shape[0] > 1 && shape[1] > 1)
    return DotUnit::matrix;
  return sum == f32 && a == f32 && b == f32 ? DotUnit::multiply_add : DotUnit::plain;
}

DType panel_type(DType operand) { return is_fp8(operand) ? f16 : operand; }

int64_t matrix_depth(DType panel) {
  return 2 * kLineBytes / tw::bytes(panel) * (panel == f64 ? 4 : 1);
}

Operand operand_of(const cpu::Context& c, const Op& dot, size_t which) {
  Operand o{dot.in[which], false};
  for (const Op* op = c.def[o.base]; op != nullptr && op->code == Opcode::transpose;
       op = c.def[o.base]) {
    if (op->as<PermAttr>().perm == std::vector<int>{1, 0}) o.flipped = !o.flipped;
    o.base = op->in[0];
  }
  return o;
}

int64_t pitch_of(DType t, int64_t line, bool words_across) {
  const int64_t neighbours = kLineBytes / tw::bytes(t);
  if (words_across) return round_up(line + 8, 16) - 8;
  if (t == f64) return round_up(line + 4, 8) - 4;
  const int64_t pieces = ceil_div(line, neighbours);
  return (pieces + (pieces % 2 == 0 ? 1 : 0)) * neighbours;
}

Operands::Operands(const cpu::Context& c) {
  std::set<ValueId> elsewhere;
  const auto visit = [&](auto&& self, const Region& r) -> void {
    for (const Op& op : r.ops) {
      const bool units = op.code == Opcode::dot && unit_of(c.program, op) != DotUnit::plain;
      for (size_t k = 0; k < op.in.size(); ++k) {
        if (units && k < 2) {
          bases_.insert(operand_of(c, op, k).base);
        } else if (op.code != Opcode::transpose) {
          elsewhere.insert(op.in[k]);
        }
      }
      for (const Region& inner : op.regions) self(self, inner);
    }
    elsewhere.insert(r.yields.begin(), r.yields.end());
  };
  visit(visit, c.program.body);
  // A transpose that anything but such a dot reads is a use of its tile.
  walk(c.program, [&](const Op& op) {
    if (op.code != Opcode::transpose || !elsewhere.contains(op.out[0])) return;
    for (const Op* t = &op; t != nullptr && t->code == Opcode::transpose; t = c.def[t->in[0]])
      elsewhere.insert(t->in[0]);
  });
  for (const ValueId v : bases_) {
    const Op* op = c.def[v];
    const bool loads =
        op != nullptr && op->code == Opcode::load && effect(c.program, *op) == Effect::pure;
    if (loads && !elsewhere.contains(v)) only_.insert(v);
  }
}

MatrixGrid matrix_grid(const Extents& shape, int64_t warps, bool rows_only) {
  MatrixGrid best;
  int64_t least[3] = {INT64_MAX, 0, 0};
  for (int64_t rows = 1; rows <= warps; rows *= 2) {
    for (int64_t columns = 1; rows * columns <= warps; columns *= 2) {
      if (rows_only && columns > 1) continue;
      MatrixGrid g{{rows, columns},
                   {ceil_div(shape[0], 16 * rows), ceil_div(shape[1], 8 * columns)}};
      // Instructions of a warp, then idle ones, then what a warp reads for each step of k.
      const int64_t cost[3] = {g.tiles[0] * g.tiles[1], rows * columns,
                               2 * g.tiles[0] + g.tiles[1]};
      if (!std::lexicographical_compare(cost, cost + 3, least, least + 3)) continue;
      std::copy(cost, cost + 3, least);
      best = g;
    }
  }
  return best;
}

ThreadValue matrix_layout(const Extents& shape, int64_t warps, bool rows_only) {
  const MatrixGrid g = matrix_grid(shape, warps, rows_only);
  ThreadValue l;
  l.tile = shape;
  l.threads = {{4, 1, 2},
               {8, 0, 1},
               {g.warps[1], 1, 8 * g.tiles[1]},
               {g.warps[0], 0, 16 * g.tiles[0]},
               {warps / (g.warps[0] * g.warps[1]), -1, 0}};
  l.values = {{2, 1, 1}, {2, 0, 8}, {g.tiles[1], 1, 8}, {g.tiles[0], 0, 16}};
  return layout::renamed(l, {0, 1}, shape);
}

}  // namespace tw::cuda
