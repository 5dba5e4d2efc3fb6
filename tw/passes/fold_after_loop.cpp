#include "tw/passes/fold_after_loop.h"

#include <algorithm>
#include <map>

#include "tw/ir/program.h"

namespace tw {
namespace {

/// How often each value is read, anywhere.
std::map<ValueId, int> count_uses(const Program& p) {
  std::map<ValueId, int> uses;
  const auto visit = [&](auto&& self, const Region& r) -> void {
    for (const Op& op : r.ops) {
      for (const ValueId v : op.in) ++uses[v];
      for (const Region& inner : op.regions) self(self, inner);
    }
    for (const ValueId v : r.yields) ++uses[v];
  };
  visit(visit, p.body);
  return uses;
}

Op* defining(Region& r, ValueId v) {
  const auto it = std::ranges::find_if(
      r.ops, [v](const Op& op) { return std::ranges::find(op.out, v) != op.out.end(); });
  return it == r.ops.end() ? nullptr : &*it;
}

class Loops {
 public:
  explicit Loops(Program& p) : p_(p), uses_(count_uses(p)) {}

  void region(Region& r) {
    for (size_t i = 0; i < r.ops.size(); ++i) {
      for (Region& inner : r.ops[i].regions) region(inner);
      if (r.ops[i].code != Opcode::for_) continue;
      std::vector<Op> before, behind;
      for (size_t k = 0; k < r.ops[i].out.size(); ++k) carried(r.ops[i], k, before, behind);
      const auto at = r.ops.begin() + static_cast<ptrdiff_t>(i);
      r.ops.insert(r.ops.insert(at + 1, behind.begin(), behind.end()) - 1, before.begin(),
                   before.end());
      i += before.size() + behind.size();
    }
  }

 private:
  /// The fold whose result the iteration combines with carried value k, when nothing else is done
  /// with either.
  struct Found {
    Op *combine, *fold;
  };
  std::optional<Found> find(Op& loop, size_t k) {
    Region& body = loop.regions[0];
    const ValueId argument = body.args[k];
    Op* combine = defining(body, body.yields[k]);
    if (combine == nullptr || combine->in.size() != 2) return std::nullopt;
    const auto own = std::ranges::find(combine->in, argument);
    if (own == combine->in.end() || uses_[argument] != 1) return std::nullopt;
    const ValueId folded = combine->in[own == combine->in.begin() ? 1 : 0];
    Op* fold = defining(body, folded);
    if (fold == nullptr || fold->code != Opcode::reduce || fold->in.size() != 1)
      return std::nullopt;
    const Combiner how = fold->as<ReduceAttr>().combiner;
    if (how == Combiner::custom || opcode_of(how) != combine->code) return std::nullopt;
    if (uses_[folded] != 1 || uses_[combine->out[0]] != 1) return std::nullopt;
    // Sums of narrow floats would be rounded at every step.
    const Type& whole = p_.type(fold->in[0]);
    const bool narrow = is_float(whole.dtype) && bytes(whole.dtype) < 4;
    if (narrow || p_.type(folded) != p_.type(loop.out[k])) return std::nullopt;
    return Found{combine, fold};
  }

  void carried(Op& loop, size_t k, std::vector<Op>& before, std::vector<Op>& behind) {
    const auto found = find(loop, k);
    if (!found) return;
    Region& body = loop.regions[0];
    const SourceLoc at = found->fold->at;
    const ValueId x = found->fold->in[0], result = loop.out[k], start = loop.in[k];
    const Type whole = p_.type(x), small = p_.type(result);
    const ReduceAttr how = found->fold->as<ReduceAttr>();
    const auto value = [&](const Type& t) { return p_.new_value(t, at); };
    const ValueId none = value(whole), argument = value(whole), next = value(whole);
    const ValueId all = value(whole), sum = value(small);
    before.push_back(
        op(Opcode::full, at, {}, {none}, FullAttr{neutral(how.combiner, whole.dtype)}));
    const Opcode code = found->combine->code;
    *found->combine = op(code, at, {argument, x}, {next}, NoneAttr{});
    body.ops.erase(body.ops.begin() + (found->fold - body.ops.data()));
    body.args[k] = argument;
    body.yields[k] = next;
    loop.in[k] = none;
    loop.out[k] = all;
    behind.push_back(op(Opcode::reduce, at, {all}, {sum}, how));
    behind.push_back(op(code, at, {start, sum}, {result}, NoneAttr{}));
  }

  static Op op(Opcode code, SourceLoc at, std::vector<ValueId> in, std::vector<ValueId> out,
               Attr attr) {
    Op o;
    o.code = code;
    o.at = at;
    o.in = std::move(in);
    o.out = std::move(out);
    o.attr = std::move(attr);
    return o;
  }

  Program& p_;
  std::map<ValueId, int> uses_;
};

}  // namespace

void fold_after_loop(Program& p, const PassContext&) {
  Loops(p).region(p.body);
  canonicalize(p);
}

}  // namespace tw
