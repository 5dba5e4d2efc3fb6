#include "tw/graph/contents.h"

#include <algorithm>
#include <cmath>
#include <unordered_map>

#include "tw/math/facts.h"

namespace tw::graph {

namespace {

/// What an element is, where that is known: an integer (0 or 1 of b1) or a float.
struct Known {
  Expr integer;
  double real = 0;
  bool is_real = false;
};
using Maybe = std::optional<Known>;

Maybe known(const Expr& e) { return Known{simplify(e, {}), 0, false}; }
Maybe known(double v) { return Known{0, v, true}; }

std::optional<double> number_of(const Maybe& k) {
  if (!k) return std::nullopt;
  if (k->is_real) return k->real;
  if (!k->integer.is_constant()) return std::nullopt;
  return static_cast<double>(k->integer.constant());
}

bool never_negative(const Expr& e) { return bounds(e, {}).lo >= 0; }

/// Whether a < b, or a <= b, where dims do not decide it.
std::optional<bool> below(const Expr& a, const Expr& b, bool equal) {
  const Interval d = bounds(simplify(b - a, {}), {});
  const int64_t least = equal ? 0 : 1;
  if (d.lo >= least) return true;
  if (d.hi < least) return false;
  return std::nullopt;
}

Maybe truth(std::optional<bool> b) { return b ? known(Expr(*b ? 1 : 0)) : std::nullopt; }

std::optional<bool> equal(const Expr& a, const Expr& b) {
  const Interval d = bounds(simplify(b - a, {}), {});
  if (d == Interval{0, 0}) return true;
  if (d.lo > 0 || d.hi < 0) return false;
  return std::nullopt;
}

std::optional<bool> negated(std::optional<bool> b) { return b ? std::optional(!*b) : b; }

Maybe divided(Opcode code, const Expr& a, const Expr& b) {
  if (a.is_constant() && b.is_constant()) {
    const int64_t x = a.constant(), y = b.constant();
    if (y == 0) return known(Expr(0));
    if (y == -1) return code == Opcode::div ? known(Expr(0) - a) : known(Expr(0));
    return known(Expr(code == Opcode::div ? x / y : x % y));
  }
  if (!never_negative(a) || !never_negative(b)) return std::nullopt;
  return known(code == Opcode::div ? floordiv(a, b) : mod(a, b));
}

Maybe of_integers(Opcode code, const Expr& a, const Expr& b) {
  const bool both = a.is_constant() && b.is_constant();
  if (code == Opcode::add) return known(a + b);
  if (code == Opcode::sub) return known(a - b);
  if (code == Opcode::mul) return known(a * b);
  if (code == Opcode::min) return known(min(a, b));
  if (code == Opcode::max) return known(max(a, b));
  if (code == Opcode::div || code == Opcode::rem) return divided(code, a, b);
  if (code == Opcode::lt) return truth(below(a, b, false));
  if (code == Opcode::le) return truth(below(a, b, true));
  if (code == Opcode::eq) return truth(equal(a, b));
  if (code == Opcode::ne) return truth(negated(equal(a, b)));
  if (code == Opcode::and_ && both) return known(Expr(a.constant() & b.constant()));
  if (code == Opcode::or_ && both) return known(Expr(a.constant() | b.constant()));
  if (code == Opcode::xor_ && both) return known(Expr(a.constant() ^ b.constant()));
  return std::nullopt;
}

Maybe of_reals(Opcode code, double a, double b) {
  if (code == Opcode::add) return known(a + b);
  if (code == Opcode::sub) return known(a - b);
  if (code == Opcode::mul) return known(a * b);
  if (code == Opcode::div) return known(a / b);
  if (code == Opcode::lt) return truth(a < b);
  if (code == Opcode::le) return truth(a <= b);
  return std::nullopt;
}

Maybe of_one(const TermNode& n, const Known& a) {
  if (a.is_real) {
    if (n.code == Opcode::neg) return known(-a.real);
    if (n.code == Opcode::floor) return known(std::floor(a.real));
    if (n.code == Opcode::ceil) return known(std::ceil(a.real));
    if (n.code == Opcode::round) return known(std::nearbyint(a.real));
    return std::nullopt;
  }
  if (n.code == Opcode::neg) return known(Expr(0) - a.integer);
  if (n.code == Opcode::not_ && n.dtype == b1) return known(Expr(1) - a.integer);
  if (n.code == Opcode::abs && never_negative(a.integer)) return a;
  if (n.code == Opcode::abs && a.integer.is_constant())
    return known(Expr(0) - a.integer);  // of a negative number
  return std::nullopt;
}

Maybe casted(const Known& a, DType t) {
  if (is_float(t)) {
    const std::optional<double> v = number_of(a);
    return v ? known(*v) : std::nullopt;
  }
  if (a.is_real) {
    if (t == b1) return known(Expr(a.real != 0 ? 1 : 0));
    if (!(std::abs(a.real) < 0x1p62)) return std::nullopt;
    return known(Expr(static_cast<int64_t>(a.real)));
  }
  if (t == b1) return truth(negated(equal(a.integer, 0)));
  if (a.integer.is_constant()) {
    const auto v = static_cast<double>(a.integer.constant());
    if (v < lowest(t) || v > largest(t)) return std::nullopt;
  }
  return a;
}

class ContentsFinder {
 public:
  ContentsFinder(const Graph& g, const Compute& c) : g_(g), c_(c) {}

  Maybe element(const std::vector<int64_t>& at) {
    at_ = at;
    at_.resize(c_.axes.size());
    folded_ = c_.fold == Fold::none ? Maybe() : fold(static_cast<size_t>(c_.rank));
    if (c_.fold != Fold::none && !folded_) return std::nullopt;
    return value(c_.finish && c_.fold != Fold::none ? c_.finish : c_.body, c_.fold != Fold::none);
  }

 private:
  Maybe combine(const Maybe& a, const Maybe& b) const {
    if (!a || !b || a->is_real) return std::nullopt;
    if (c_.fold == Fold::sum) return of_integers(Opcode::add, a->integer, b->integer);
    if (c_.fold == Fold::prod) return of_integers(Opcode::mul, a->integer, b->integer);
    if (c_.fold == Fold::min) return of_integers(Opcode::min, a->integer, b->integer);
    if (c_.fold == Fold::max) return of_integers(Opcode::max, a->integer, b->integer);
    return std::nullopt;
  }

  Maybe fold(size_t axis) {
    if (axis == c_.axes.size()) return value(c_.body, false);
    const Expr& extent = c_.axes[axis];
    if (!extent.is_constant() || extent.constant() > kMostContents) return std::nullopt;
    Maybe sum;
    if (c_.fold == Fold::sum) sum = known(Expr(0));
    if (c_.fold == Fold::prod) sum = known(Expr(1));
    for (at_[axis] = 0; at_[axis] < extent.constant(); ++at_[axis]) {
      const Maybe next = fold(axis + 1);
      sum = sum ? combine(sum, next) : next;
      if (!sum) return std::nullopt;
    }
    return sum;
  }

  Maybe value(const Term& t, bool finishing) {
    std::unordered_map<const TermNode*, Maybe> known_terms;
    return value(t, finishing, known_terms);
  }

  Maybe value(const Term& t, bool finishing, std::unordered_map<const TermNode*, Maybe>& done) {
    if (const auto at = done.find(t.get()); at != done.end()) return at->second;
    return done[t.get()] = fresh_value(*t, finishing, done);
  }

  Maybe fresh_value(const TermNode& n, bool finishing,
                    std::unordered_map<const TermNode*, Maybe>& done) {
    if (n.kind == TermKind::constant)
      return n.value.integral ? known(Expr(n.value.i)) : known(n.value.f);
    if (n.kind == TermKind::index) return known(placed(n.index));
    if (n.kind == TermKind::result) return folded_;
    std::vector<Known> in;
    for (const Term& i : n.in) {
      const Maybe v = value(i, finishing, done);
      // Of a choice the other side may be unknown.
      if (!v && !(n.kind == TermKind::op && n.code == Opcode::where)) return std::nullopt;
      in.push_back(v.value_or(Known{}));
    }
    if (n.kind == TermKind::load) return loaded(n, in);
    if (n.kind == TermKind::cast) return casted(in[0], n.dtype);
    if (n.code == Opcode::where) return chosen(n, finishing, done);
    if (in.size() == 1) return of_one(n, in[0]);
    if (in[0].is_real || in[1].is_real) {
      const auto a = number_of(in[0]), b = number_of(in[1]);
      return a && b ? of_reals(n.code, *a, *b) : std::nullopt;
    }
    return of_integers(n.code, in[0].integer, in[1].integer);
  }

  Maybe chosen(const TermNode& n, bool finishing,
               std::unordered_map<const TermNode*, Maybe>& done) {
    const std::optional<double> mask = number_of(value(n.in[0], finishing, done));
    if (!mask) return std::nullopt;
    return value(n.in[*mask != 0 ? 1 : 2], finishing, done);
  }

  Expr placed(const Expr& e) const {
    return simplify(tw::substitute(e,
                                   [&](Symbol s) -> std::optional<Expr> {
                                     if (s.kind != SymbolKind::loop) return std::nullopt;
                                     return Expr(at_[static_cast<size_t>(s.id)]);
                                   }),
                    {});
  }

  Maybe loaded(const TermNode& n, const std::vector<Known>& at) const {
    const TensorInfo& t = g_.tensor(c_.operands[static_cast<size_t>(n.operand)]);
    if (!t.contents) return std::nullopt;
    int64_t flat = 0;
    for (size_t k = 0; k < at.size(); ++k) {
      if (at[k].is_real || !at[k].integer.is_constant()) return std::nullopt;
      const int64_t i = at[k].integer.constant(), extent = t.dims[k].constant();
      if (i < 0 || i >= extent) {
        if (!n.pad || !n.pad->integral) return std::nullopt;
        return known(Expr(n.pad->i));
      }
      flat = flat * extent + i;
    }
    return known((*t.contents)[static_cast<size_t>(flat)]);
  }

  const Graph& g_;
  const Compute& c_;
  std::vector<int64_t> at_;
  Maybe folded_;
};

/// Extents that are numbers, with few elements in all.
std::optional<std::vector<int64_t>> few(const std::vector<Expr>& dims) {
  std::vector<int64_t> extents;
  int64_t count = 1;
  for (const Expr& e : dims) {
    if (!e.is_constant()) return std::nullopt;
    extents.push_back(e.constant());
    if (e.constant() > kMostContents) return std::nullopt;
    count *= e.constant();
    if (count > kMostContents) return std::nullopt;
  }
  return extents;
}

bool counts(DType t) { return t == b1 || (is_int(t) && !is_packed(t)); }

}  // namespace

std::optional<std::vector<Expr>> contents_of(const Tensor& t) {
  if (!counts(t.dtype()) || t.count() > kMostContents) return std::nullopt;
  const Tensor packed = t.view().is_contiguous() ? t : copy(t);
  std::vector<Expr> elements;
  for (int64_t i = 0; i < packed.count(); ++i) {
    const uint64_t raw = load_bits(t.dtype(), packed.view().data, i);
    const int64_t shift = 64 - bits(t.dtype());
    const auto v = static_cast<int64_t>(raw << shift);
    elements.emplace_back(is_signed_int(t.dtype()) ? v >> shift : static_cast<int64_t>(raw));
  }
  return elements;
}

std::optional<std::vector<Expr>> contents_of(const Graph& g, const Compute& c) {
  if (!counts(c.dtype())) return std::nullopt;
  for (TensorId t : c.operands)
    if (!g.tensor(t).contents) return std::nullopt;
  const auto extents = few({c.axes.begin(), c.axes.begin() + c.rank});
  if (!extents) return std::nullopt;
  std::vector<Expr> elements;
  ContentsFinder finder(g, c);
  int64_t count = 1;
  for (int64_t e : *extents) count *= e;
  for (int64_t flat = 0; flat < count; ++flat) {
    std::vector<int64_t> at(extents->size());
    for (size_t k = at.size(), rest = static_cast<size_t>(flat); k-- > 0;) {
      at[k] = static_cast<int64_t>(rest) % (*extents)[k];
      rest = static_cast<size_t>(static_cast<int64_t>(rest) / (*extents)[k]);
    }
    const Maybe v = finder.element(at);
    if (!v || v->is_real) return std::nullopt;
    elements.push_back(v->integer);
  }
  return elements;
}

}  // namespace tw::graph
