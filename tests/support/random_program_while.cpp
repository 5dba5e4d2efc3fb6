#include <algorithm>

#include "tests/support/random_program_writer.h"

namespace tw::test {

/// A loop of a few iterations, of fewer where data says so. Where rounding would decide, all that
/// it carries is open; so data that backends agree on decides.
void Writer::while_fragment(int depth) {
  const Type scalar{i32, {}};
  const Known zero = constant(scalar, 0), one = constant(scalar, 1);
  const Known left = constant(scalar, static_cast<double>(r.between(0, 4)));
  const Known go = binary(Opcode::lt, zero, left);
  std::vector<Known> first{go, left};
  for (int64_t n = r.between(1, 2); n > 0; --n) first.push_back(any());
  std::vector<Known> args;
  for (const Known& k : first) {
    args.push_back(k);
    args.back().id = p.new_value(k.type, {});
    args.back().loose = is_float(k.type.dtype);
    args.back().uses = 0;
    args.back().magnitude = std::max(k.magnitude, 6.0) + 3;
  }
  Region region;
  open(args, region);
  for (int64_t n = r.between(1, 3); n > 0; --n) fragment(depth + 1);
  if (r.percent(30)) store_fragment();
  const Known fewer = binary(Opcode::sub, args[1], one);
  Known more = binary(Opcode::lt, zero, fewer);
  if (r.percent(60)) {
    const Known source = decided();
    const Known data = coerced(source, {b1, {}});
    more = binary(Opcode::and_, more, data);
  }
  std::vector<Known> yields{more, fewer};
  for (size_t k = 2; k < args.size(); ++k) yields.push_back(next_carried(args[k], args[k].type));
  Op op{Opcode::while_, {}, {}, {}, NoneAttr{}, {}};
  op.regions.push_back(close(yields));
  append_loop(std::move(op), first, args);
}

}  // namespace tw::test
