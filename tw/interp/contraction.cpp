#include "tw/interp/contraction.h"

namespace tw {

namespace {

/// Values whose elements may be moved into another value unchanged but for their sign.
struct Moves {
  std::vector<std::pair<ValueId, ValueId>> edges;

  void add(const std::vector<ValueId>& from, const std::vector<ValueId>& to) {
    for (size_t i = 0; i < from.size() && i < to.size(); ++i) edges.emplace_back(from[i], to[i]);
  }
};

bool is_move(Opcode code) {
  return code == Opcode::neg || code == Opcode::abs || code == Opcode::reshape ||
         code == Opcode::transpose || code == Opcode::broadcast || code == Opcode::slice ||
         code == Opcode::keep ||
         code == Opcode::cast;  // of a dtype to itself; others do not matter
}

void moves_of(const Op& op, Moves& m) {
  if (is_move(op.code)) m.add(op.in, op.out);
  if (op.code == Opcode::where)
    m.edges.insert(m.edges.end(), {{op.in[1], op.out[0]}, {op.in[2], op.out[0]}});
  for (const Region& r : op.regions) {
    m.add(r.yields, op.out);
    if (is_loop(op.code)) {
      m.add(op.in, op.out);
      m.add(op.in, r.args);
      m.add(r.yields, r.args);
    }
    if (is_fold(op.code)) {
      const std::vector<ValueId> right(r.args.begin() + static_cast<int64_t>(op.in.size()),
                                       r.args.end());
      m.add(op.in, r.args);
      m.add(op.in, right);
      m.add(r.yields, r.args);
      m.add(r.yields, right);
    }
  }
}

}  // namespace

std::vector<bool> contracting_products(const Program& p) {
  Moves moves;
  std::vector<bool> added(p.values.size()), product(p.values.size());
  walk(p, [&](const Op& op) {
    moves_of(op, moves);
    if (op.code == Opcode::add || op.code == Opcode::sub)
      for (ValueId v : op.in) added[v] = true;
    if (op.code == Opcode::atomic && op.as<AtomicAttr>().op == AtomicOp::add)
      added[*place_operands(op).value] = true;
    if (op.code == Opcode::mul) product[op.out[0]] = true;
  });
  // Backwards along the moves until nothing changes; loops make cycles.
  for (bool changed = true; changed;) {
    changed = false;
    for (const auto& [from, to] : moves.edges)
      if (added[to] && !added[from]) added[from] = changed = true;
  }
  for (size_t v = 0; v < p.values.size(); ++v) {
    const DType t = p.values[v].type.dtype;
    product[v] = product[v] && added[v] && (t == f32 || t == f64);
  }
  return product;
}

}  // namespace tw
