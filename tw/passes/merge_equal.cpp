#include "tw/passes/merge_equal.h"

#include <map>

#include "tw/passes/canonicalize.h"

namespace tw {
namespace {

class Merger {
 public:
  explicit Merger(Program& p) : p_(p) {}

  void region(Region& r) {
    std::vector<std::vector<const Op*>*> here;
    for (Op& op : r.ops) {
      for (ValueId& v : op.in) v = same(v);
      for (Region& inner : op.regions) inside(op, inner);
      if (effect(p_, op) != Effect::pure || !op.regions.empty() || op.out.size() != 1) continue;
      std::vector<const Op*>& alike = known_[{op.code, op.in}];
      if (const Op* before = equal_to(op, alike)) {
        same_[op.out[0]] = before->out[0];
        continue;
      }
      alike.push_back(&op);
      here.push_back(&alike);
    }
    for (ValueId& v : r.yields) v = same(v);
    for (auto* alike : here) alike->pop_back();
  }

 private:
  // Ops in scope by what they do and to what; equal attributes and types make them equal.
  using Known = std::map<std::pair<Opcode, std::vector<ValueId>>, std::vector<const Op*>>;

  const Op* equal_to(const Op& op, const std::vector<const Op*>& alike) const {
    for (const Op* o : alike)
      if (o->attr == op.attr && p_.type(o->out[0]) == p_.type(op.out[0])) return o;
    return nullptr;
  }
  void inside(const Op& op, Region& inner) {
    if (!is_fold(op.code)) return region(inner);
    Known outside;
    std::swap(outside, known_);
    region(inner);
    std::swap(outside, known_);
  }
  ValueId same(ValueId v) const {
    const auto it = same_.find(v);
    return it == same_.end() ? v : it->second;
  }

  Program& p_;
  Known known_;
  std::map<ValueId, ValueId> same_;
};

}  // namespace

void merge_equal(Program& p, const PassContext&) {
  Merger(p).region(p.body);
  canonicalize(p);
}

}  // namespace tw
