#include "tw/passes/first_false.h"

namespace tw {
namespace {

/// Rewrites asserts of a region and those inside.
class FirstFalse {
 public:
  explicit FirstFalse(Program& p) : p_(p) {}

  void region(Region& r) {
    std::vector<Op> ops;
    for (Op& op : r.ops) {
      for (Region& inner : op.regions) region(inner);
      if (op.code == Opcode::assert_ && p_.type(op.in[0]).dtype == b1)
        op.in[0] = first(op.in[0], op.at, ops);
      ops.push_back(std::move(op));
    }
    r.ops = std::move(ops);
  }

 private:
  ValueId first(ValueId mask, SourceLoc at, std::vector<Op>& ops) {
    Extents shape = p_.type(mask).shape;
    const auto add = [&](Opcode code, std::vector<ValueId> in, Attr attr) {
      const ValueId v = p_.new_value({i64, shape}, at);
      ops.push_back({code, at, std::move(in), {v}, std::move(attr), {}});
      return v;
    };
    const auto constant = [&](int64_t n) {
      return add(Opcode::full, {}, FullAttr{Number{true, n, 0}});
    };
    ValueId number = constant(0);
    int64_t below = 1;
    for (size_t axis = shape.size(); axis-- > 0; below *= shape[axis]) {
      if (shape[axis] == 1) continue;
      const ValueId place = add(Opcode::iota, {}, AxisAttr{static_cast<int>(axis)});
      const ValueId step = add(Opcode::mul, {place, constant(below)}, NoneAttr{});
      number = add(Opcode::add, {number, step}, NoneAttr{});
    }
    ValueId least = add(Opcode::where, {mask, constant(kAllTrue), number}, NoneAttr{});
    for (size_t axis = shape.size(); axis-- > 0;) {
      if (shape[axis] == 1) continue;
      shape[axis] = 1;
      least = add(Opcode::reduce, {least}, ReduceAttr{static_cast<int>(axis), Combiner::min});
    }
    return least;
  }

  Program& p_;
};

}  // namespace

void first_false(Program& p, const PassContext&) { FirstFalse(p).region(p.body); }

}  // namespace tw
