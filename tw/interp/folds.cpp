#include <algorithm>

#include "tw/interp/bounded.h"
#include "tw/interp/fold.h"
#include "tw/interp/impl/machine.h"
#include "tw/interp/rank.h"

namespace tw {

void Machine::reduce(const Op& op) {
  const ReduceAttr& a = op.as<ReduceAttr>();
  if (a.combiner == Combiner::custom) return custom_reduce(op);
  TileData t = make_tile(out_type(op));
  size_t at = 0;
  for_each_index(t.type.shape, [&](const Extents& i) {
    t.data[at++] = fold(options_.mode, a.combiner, t.type.dtype, line(in(op), a.axis, i));
  });
  define(op, std::move(t));
}

void Machine::custom_reduce(const Op& op) {
  std::vector<TileData> out;
  for (ValueId v : op.out) out.push_back(make_tile(p_.type(v)));
  size_t at = 0;
  for_each_index(out_type(op).shape, [&](const Extents& i) {
    std::vector<Elements> tuples = tuples_of(op, i);
    Elements folded = fold_tuples(op.regions[0], tuples);
    if (bounded_) {
      std::reverse(tuples.begin(), tuples.end());
      const Elements backward = fold_tuples(op.regions[0], tuples);
      for (size_t k = 0; k < out.size(); ++k)
        folded[k] = either_order(out[k].type.dtype, folded[k], backward[k]);
    }
    for (size_t k = 0; k < out.size(); ++k) out[k].data[at] = folded[k];
    ++at;
  });
  for (size_t k = 0; k < out.size(); ++k) values_[op.out[k]] = std::move(out[k]);
}

/// The tuples that a reduction over several tiles folds for the place `i` of its results.
std::vector<Elements> Machine::tuples_of(const Op& op, const Extents& i) const {
  std::vector<Elements> tuples;
  for (size_t k = 0; k < op.in.size(); ++k) {
    const Elements l = line(in(op, k), fold_of(op).axis, i);
    tuples.resize(l.size());
    for (size_t n = 0; n < l.size(); ++n) tuples[n].push_back(l[n]);
  }
  return tuples;
}

Elements Machine::fold_tuples(const Region& r, const std::vector<Elements>& tuples) {
  in_combiner_ = true;
  Elements folded = tuples[0];
  for (size_t n = 1; n < tuples.size(); ++n) folded = combine(r, folded, tuples[n]);
  in_combiner_ = false;
  return folded;
}

Elements Machine::combine(const Region& r, const Elements& left, const Elements& right) {
  for (size_t k = 0; k < left.size(); ++k) {
    const ValueId a = r.args[k], b = r.args[left.size() + k];
    values_[a] = {p_.type(a), {left[k]}};
    values_[b] = {p_.type(b), {right[k]}};
  }
  run_region(r);
  Elements result;
  for (ValueId v : r.yields) result.push_back(values_[v].data[0]);
  return result;
}

/// The shape of the places through which a fold's lines run.
Extents Machine::places_of(const Op& op) const {
  Extents shape = in(op).type.shape;
  shape[static_cast<size_t>(fold_of(op).axis)] = 1;
  return shape;
}

void Machine::scan(const Op& op) {
  const ScanAttr& a = op.as<ScanAttr>();
  if (a.fold.combiner == Combiner::custom) return custom_scan(op);
  TileData t = make_tile(out_type(op));
  for_each_index(places_of(op), [&](const Extents& i) {
    Elements terms = line(in(op), a.fold.axis, i);
    if (a.reverse) std::reverse(terms.begin(), terms.end());
    Elements folded = tw::scan(options_.mode, a.fold.combiner, t.type.dtype, terms);
    if (a.reverse) std::reverse(folded.begin(), folded.end());
    set_line(t, a.fold.axis, i, folded);
  });
  define(op, std::move(t));
}

void Machine::custom_scan(const Op& op) {
  const ScanAttr& a = op.as<ScanAttr>();
  std::vector<TileData> out;
  for (ValueId v : op.out) out.push_back(make_tile(p_.type(v)));
  for_each_index(places_of(op), [&](const Extents& i) {
    std::vector<Elements> folded = tuples_of(op, i);
    if (a.reverse) std::reverse(folded.begin(), folded.end());
    folded = scan_tuples(op, folded);
    if (a.reverse) std::reverse(folded.begin(), folded.end());
    for (size_t k = 0; k < out.size(); ++k) {
      Elements l;
      for (const Elements& tuple : folded) l.push_back(tuple[k]);
      set_line(out[k], a.fold.axis, i, l);
    }
  });
  for (size_t k = 0; k < out.size(); ++k) values_[op.out[k]] = std::move(out[k]);
}

/// Tuples in the order of the scan. Neighbours may be combined in any grouping: in bounded mode
/// the grouping from the other end counts too.
std::vector<Elements> Machine::scan_tuples(const Op& op, const std::vector<Elements>& tuples) {
  const auto pair = [&](const Elements& first, const Elements& then) {
    return op.as<ScanAttr>().reverse ? combine(op.regions[0], then, first)
                                     : combine(op.regions[0], first, then);
  };
  in_combiner_ = true;
  std::vector<Elements> folded{tuples[0]};
  for (size_t n = 1; n < tuples.size(); ++n) folded.push_back(pair(folded.back(), tuples[n]));
  for (size_t n = 1; bounded_ && n < tuples.size(); ++n) {
    Elements other = tuples[n];
    for (size_t k = n; k-- > 0;) other = pair(tuples[k], other);
    for (size_t k = 0; k < other.size(); ++k)
      folded[n][k] = either_order(p_.type(op.out[k]).dtype, folded[n][k], other[k]);
  }
  in_combiner_ = false;
  return folded;
}

void Machine::top_k(const Op& op) {
  const size_t k = static_cast<size_t>(op.as<TopKAttr>().k);
  const int axis = static_cast<int>(out_type(op).shape.size()) - 1;
  TileData values = make_tile(out_type(op)), indices = make_tile(p_.type(op.out[1]));
  Extents rows = out_type(op).shape;
  rows.back() = 1;
  for_each_index(rows, [&](const Extents& i) {
    std::vector<Ranked> all;
    for (size_t part = 0; part < op.in.size(); part += 2) {
      const Elements v = line(in(op, part), axis, i), at = line(in(op, part + 1), axis, i);
      for (size_t n = 0; n < v.size(); ++n) all.push_back({v[n], at[n]});
    }
    rank(is_float(values.type.dtype), all);
    Elements v, at;
    for (size_t n = 0; n < k; ++n) v.push_back(all[n].value), at.push_back(all[n].index);
    set_line(values, axis, i, v);
    set_line(indices, axis, i, at);
  });
  values_[op.out[0]] = std::move(values);
  values_[op.out[1]] = std::move(indices);
}

}  // namespace tw
