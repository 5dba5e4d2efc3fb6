#include "tw/passes/nest_grid.h"

namespace tw {

void nest_grid(Program& p, const PassContext&) {
  for (int axis = static_cast<int>(p.grid.size()); axis-- > 0;) {
    Op par{Opcode::par, p.body.ops.empty() ? SourceLoc{} : p.body.ops[0].at, {}, {}, AxisAttr{axis},
           {}};
    par.regions.push_back(std::move(p.body));
    p.body = Region();
    p.body.ops.push_back(std::move(par));
  }
}

}  // namespace tw
