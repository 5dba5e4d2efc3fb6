// What programs tell their host.
#include "tw/ir/program.h"

namespace tw {
namespace {

bool divides(const Program& p, const Op& op) {
  return (op.code == Opcode::div || op.code == Opcode::rem) && is_int(p.type(op.in[1]).dtype);
}

void check_divisions(Program& p, Region& r) {
  std::vector<Op> ops;
  for (Op& op : r.ops) {
    if (!is_fold(op.code))
      for (Region& inner : op.regions) check_divisions(p, inner);
    if (divides(p, op)) {
      const Type by = p.type(op.in[1]);
      const ValueId zero = p.new_value({by.dtype, Extents(by.shape.size(), 1)}, op.at);
      const ValueId right = p.new_value({b1, by.shape}, op.at);
      ops.push_back({Opcode::full, op.at, {}, {zero}, FullAttr{}, {}});
      ops.push_back({Opcode::ne, op.at, {op.in[1], zero}, {right}, NoneAttr{}, {}});
      ops.push_back({Opcode::assert_, op.at, {right}, {}, MessageAttr{"division by zero"}, {}});
    }
    ops.push_back(std::move(op));
  }
  r.ops = std::move(ops);
}

void drop_messages(Region& r, bool prints) {
  std::erase_if(r.ops, [&](const Op& op) {
    return op.code == Opcode::assert_ || (prints && op.code == Opcode::print);
  });
  for (Op& op : r.ops)
    for (Region& inner : op.regions) drop_messages(inner, prints);
}

}  // namespace

void check_divisions(Program& p) { check_divisions(p, p.body); }
void drop_messages(Program& p, bool prints) { drop_messages(p.body, prints); }

std::vector<const Op*> messages_of(const Program& p) {
  std::vector<const Op*> all;
  walk(p, [&](const Op& op) {
    if (info(op.code).effect == Effect::host) all.push_back(&op);
  });
  return all;
}

}  // namespace tw
