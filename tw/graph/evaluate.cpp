#include "tw/graph/evaluate.h"

#include <algorithm>
#include <cmath>
#include <fmt/format.h>
#include <limits>
#include <map>

#include "tw/base/error.h"

namespace tw::graph {

namespace {

/// An element: a double of floats, else an integer (0 or 1 of b1).
struct Scalar {
  double f = 0;
  int64_t i = 0;
};

struct Array {
  std::vector<int64_t> dims;
  std::vector<Scalar> elements;
};

int64_t wrapped(DType t, int64_t v) {
  const int64_t shift = 64 - bits(t);
  const auto raised = static_cast<uint64_t>(v) << shift;
  if (is_signed_int(t)) return static_cast<int64_t>(raised) >> shift;
  return static_cast<int64_t>(raised >> shift);
}

Scalar integer(DType t, int64_t v) { return {0, t == b1 ? v != 0 : wrapped(t, v)}; }

int64_t clamped(DType t, double v) {
  if (std::isnan(v)) return 0;
  if (t == u64)
    return static_cast<int64_t>(static_cast<uint64_t>(std::clamp(v, 0.0, 0x1.fffffffffffffp63)));
  if (v >= largest(t))
    return t == i64 ? std::numeric_limits<int64_t>::max() : static_cast<int64_t>(largest(t));
  return static_cast<int64_t>(std::max(v, lowest(t)));
}

Scalar converted(DType from, DType to, const Scalar& x) {
  if (is_float(to)) {
    if (is_float(from)) return x;
    return {
        from == u64 ? static_cast<double>(static_cast<uint64_t>(x.i)) : static_cast<double>(x.i),
        0};
  }
  if (to == b1) return {0, is_float(from) ? x.f != 0 : x.i != 0};
  return integer(to, is_float(from) ? clamped(to, x.f) : x.i);
}

double least(double a, double b) {
  if (std::isnan(a) || std::isnan(b)) return std::numeric_limits<double>::quiet_NaN();
  if (a == b) return std::signbit(a) ? a : b;
  return std::min(a, b);
}
double most(double a, double b) { return -least(-a, -b); }

double real_of_one(Opcode c, double a) {
  if (c == Opcode::neg) return -a;
  if (c == Opcode::abs) return std::abs(a);
  if (c == Opcode::sqrt) return std::sqrt(a);
  if (c == Opcode::rsqrt) return 1 / std::sqrt(a);
  if (c == Opcode::exp) return std::exp(a);
  if (c == Opcode::exp2) return std::exp2(a);
  if (c == Opcode::log) return std::log(a);
  if (c == Opcode::sin) return std::sin(a);
  if (c == Opcode::cos) return std::cos(a);
  if (c == Opcode::tanh || c == Opcode::tanh_fast) return std::tanh(a);
  if (c == Opcode::erf || c == Opcode::erf_fast) return std::erf(a);
  if (c == Opcode::floor) return std::floor(a);
  if (c == Opcode::ceil) return std::ceil(a);
  if (c == Opcode::round) return std::nearbyint(a);
  throw InternalError(fmt::format("{} of a float", info(c).name));
}

double real_of_two(Opcode c, double a, double b) {
  if (c == Opcode::add) return a + b;
  if (c == Opcode::sub) return a - b;
  if (c == Opcode::mul) return a * b;
  if (c == Opcode::div) return a / b;
  if (c == Opcode::min) return least(a, b);
  if (c == Opcode::max) return most(a, b);
  if (c == Opcode::min_num) return std::fmin(a, b);
  if (c == Opcode::max_num) return std::fmax(a, b);
  throw InternalError(fmt::format("{} of floats", info(c).name));
}

template <class T>
bool compared(Opcode c, T a, T b) {
  if (c == Opcode::eq) return a == b;
  if (c == Opcode::ne) return a != b;
  return c == Opcode::lt ? a < b : a <= b;
}

int64_t shifted(Opcode c, DType t, int64_t a, int64_t b) {
  const bool inside = b >= 0 && b < bits(t);
  if (c == Opcode::shl) return inside ? static_cast<int64_t>(static_cast<uint64_t>(a) << b) : 0;
  if (!is_signed_int(t)) return inside ? static_cast<int64_t>(static_cast<uint64_t>(a) >> b) : 0;
  return a >> (inside ? b : 63);
}

int64_t divided(Opcode c, DType t, int64_t a, int64_t b) {
  if (b == 0) return 0;
  if (t == u64) {
    const auto x = static_cast<uint64_t>(a), y = static_cast<uint64_t>(b);
    return static_cast<int64_t>(c == Opcode::div ? x / y : x % y);
  }
  if (b == -1) return c == Opcode::div ? static_cast<int64_t>(-static_cast<uint64_t>(a)) : 0;
  return c == Opcode::div ? a / b : a % b;
}

int64_t integer_of_two(Opcode c, DType t, int64_t a, int64_t b) {
  const auto x = static_cast<uint64_t>(a), y = static_cast<uint64_t>(b);
  const bool less = t == u64 ? x < y : a < b;
  if (c == Opcode::add) return static_cast<int64_t>(x + y);
  if (c == Opcode::sub) return static_cast<int64_t>(x - y);
  if (c == Opcode::mul) return static_cast<int64_t>(x * y);
  if (c == Opcode::div || c == Opcode::rem) return divided(c, t, a, b);
  if (c == Opcode::min) return less ? a : b;
  if (c == Opcode::max) return less ? b : a;
  if (c == Opcode::and_) return a & b;
  if (c == Opcode::or_) return a | b;
  if (c == Opcode::xor_) return a ^ b;
  if (c == Opcode::shl || c == Opcode::shr) return shifted(c, t, a, b);
  throw InternalError(fmt::format("{} of integers", info(c).name));
}

Scalar of_one(Opcode c, DType t, const Scalar& a) {
  if (is_float(t)) return {real_of_one(c, a.f), 0};
  if (c == Opcode::not_) return t == b1 ? Scalar{0, a.i == 0} : integer(t, ~a.i);
  if (c == Opcode::neg) return integer(t, static_cast<int64_t>(-static_cast<uint64_t>(a.i)));
  if (c == Opcode::abs)
    return is_signed_int(t) && a.i < 0
               ? integer(t, static_cast<int64_t>(-static_cast<uint64_t>(a.i)))
               : a;
  throw InternalError(fmt::format("{} of an integer", info(c).name));
}

Scalar of_two(Opcode c, DType t, const Scalar& a, const Scalar& b) {
  if (is_float(t))
    return compares(c) ? Scalar{0, compared(c, a.f, b.f)} : Scalar{real_of_two(c, a.f, b.f), 0};
  if (!compares(c)) return integer(t, integer_of_two(c, t, a.i, b.i));
  if (t == u64) return {0, compared(c, static_cast<uint64_t>(a.i), static_cast<uint64_t>(b.i))};
  return {0, compared(c, a.i, b.i)};
}

Array array_of(const TensorView& v) {
  const Tensor packed = copy(v);
  Array a{v.dims, std::vector<Scalar>(static_cast<size_t>(v.count()))};
  for (size_t i = 0; i < a.elements.size(); ++i) {
    const auto at = static_cast<int64_t>(i);
    if (is_float(v.dtype))
      a.elements[i].f = get(packed, at);
    else
      a.elements[i] =
          integer(v.dtype, static_cast<int64_t>(load_bits(v.dtype, packed.view().data, at)));
  }
  return a;
}

Tensor tensor_of(DType t, const Array& a) {
  Tensor out = host_tensor(is_float(t) ? f64 : t, a.dims);
  for (size_t i = 0; i < a.elements.size(); ++i) {
    const auto at = static_cast<int64_t>(i);
    if (is_float(t))
      out.data<double>()[at] = a.elements[i].f;
    else
      store_bits(t, out.view().data, at, static_cast<uint64_t>(a.elements[i].i));
  }
  return out;
}

class Evaluator {
 public:
  Evaluator(const Graph& g, const std::vector<TensorView>& inputs) : g_(g) {
    for (size_t i = 0; i < g.inputs().size(); ++i) {
      const TensorInfo& t = g.tensor(g.inputs()[i]);
      for (size_t k = 0; k < t.dims.size(); ++k)
        if (!t.dims[k].is_constant()) sizes_[t.dims[k].symbol()] = inputs[i].dims[k];
      arrays_[g.inputs()[i]] = array_of(inputs[i]);
    }
  }

  std::vector<Tensor> run() {
    for (const Node& n : g_.nodes()) arrays_[n.out] = node(n.compute);
    std::vector<Tensor> outputs;
    for (const auto& [name, t] : g_.outputs())
      outputs.push_back(tensor_of(g_.tensor(t).dtype, array(t)));
    return outputs;
  }

 private:
  const Array& array(TensorId t) {
    if (const auto at = arrays_.find(t); at != arrays_.end()) return at->second;
    const TensorInfo& info = g_.tensor(t);
    if (info.constant) return arrays_[t] = array_of(*info.constant);
    if (!info.contents) throw InternalError(fmt::format("nothing makes tensor {}", t));
    Array a{extents(info.dims), {}};
    for (const Expr& e : *info.contents) a.elements.push_back(integer(info.dtype, value(e)));
    return arrays_[t] = std::move(a);
  }

  int64_t value(const Expr& e) const {
    return tw::evaluate(e, [&](Symbol s) {
      return s.kind == SymbolKind::loop ? at_[static_cast<size_t>(s.id)] : sizes_.at(s);
    });
  }

  std::vector<int64_t> extents(const std::vector<Expr>& dims) const {
    std::vector<int64_t> all;
    for (const Expr& e : dims) all.push_back(value(e));
    return all;
  }

  Array node(const Compute& c) {
    operands_.clear();
    for (TensorId t : c.operands) operands_.push_back(&array(t));
    c_ = &c;
    extents_ = extents(c.axes);
    at_.assign(extents_.size(), 0);
    Array a{{extents_.begin(), extents_.begin() + c.rank}, {}};
    each(0, static_cast<size_t>(c.rank), [&] {
      if (c.fold == Fold::none) {
        a.elements.push_back(term(*c.body));
        return;
      }
      fold();
      a.elements.push_back(c.finish ? term(*c.finish) : folded_);
    });
    return a;
  }

  template <class F>
  void each(size_t axis, size_t end, const F& f) {
    if (axis == end) return f();
    for (at_[axis] = 0; at_[axis] < extents_[axis]; ++at_[axis]) each(axis + 1, end, f);
  }

  void fold() {
    const DType t = c_->body->dtype;
    const Fold f = c_->fold;
    bool first = true;
    Scalar best;
    folded_ = f == Fold::prod ? converted(i64, t, {0, 1}) : Scalar{};
    if (f == Fold::max || f == Fold::min) folded_ = limit(t, f == Fold::max);
    each(static_cast<size_t>(c_->rank), extents_.size(), [&] {
      const Scalar v = term(*c_->body);
      if (f == Fold::sum) folded_ = of_two(Opcode::add, t, folded_, v);
      if (f == Fold::prod) folded_ = of_two(Opcode::mul, t, folded_, v);
      if (f == Fold::min) folded_ = of_two(Opcode::min, t, folded_, v);
      if (f == Fold::max) folded_ = of_two(Opcode::max, t, folded_, v);
      if (finds_place(f) && (first || better(t, v, best))) {
        best = v;
        folded_ = {0, at_[static_cast<size_t>(c_->rank)]};
      }
      first = false;
    });
  }

  /// What an empty maximum (or minimum) is.
  static Scalar limit(DType t, bool maximum) {
    const double infinity = std::numeric_limits<double>::infinity();
    if (is_float(t)) return {maximum ? -infinity : infinity, 0};
    return {0, clamped(t, maximum ? -infinity : infinity)};
  }

  bool better(DType t, const Scalar& v, const Scalar& best) const {
    const Fold f = c_->fold;
    const bool last = f == Fold::last_argmax || f == Fold::last_argmin;
    const bool maximum = f == Fold::argmax || f == Fold::last_argmax;
    if (is_float(t) && (std::isnan(v.f) || std::isnan(best.f)))
      return std::isnan(v.f) && (last || !std::isnan(best.f));
    const Scalar& low = maximum ? best : v;
    const Scalar& high = maximum ? v : best;
    if (of_two(Opcode::lt, t, low, high).i != 0) return true;
    return last && of_two(Opcode::eq, t, low, high).i != 0;
  }

  Scalar term(const TermNode& n) {
    switch (n.kind) {
      case TermKind::constant:
        return is_float(n.dtype) ? Scalar{n.value.as_double(), 0} : integer(n.dtype, n.value.i);
      case TermKind::index:
        return {0, value(n.index)};
      case TermKind::load:
        return load(n);
      case TermKind::cast:
        return converted(n.in[0]->dtype, n.dtype, term(*n.in[0]));
      case TermKind::result:
        return folded_;
      case TermKind::op:
        break;
    }
    if (n.code == Opcode::where) return term(*n.in[term(*n.in[0]).i != 0 ? 1 : 2]);
    const DType t = n.in[0]->dtype;
    if (n.in.size() == 1) return of_one(n.code, t, term(*n.in[0]));
    return of_two(n.code, t, term(*n.in[0]), term(*n.in[1]));
  }

  Scalar load(const TermNode& n) {
    const Array& a = *operands_[static_cast<size_t>(n.operand)];
    int64_t flat = 0;
    for (size_t k = 0; k < n.in.size(); ++k) {
      const int64_t i = term(*n.in[k]).i;
      if (i < 0 || i >= a.dims[k]) {
        if (!n.pad) return {};
        return is_float(n.dtype) ? Scalar{n.pad->as_double(), 0} : integer(n.dtype, n.pad->i);
      }
      flat = flat * a.dims[k] + i;
    }
    return a.elements[static_cast<size_t>(flat)];
  }

  const Graph& g_;
  std::map<TensorId, Array> arrays_;
  std::map<Symbol, int64_t> sizes_;
  const Compute* c_ = nullptr;
  std::vector<const Array*> operands_;
  std::vector<int64_t> extents_, at_;
  Scalar folded_;
};

}  // namespace

std::vector<Tensor> evaluate(const Graph& g, const std::vector<TensorView>& inputs) {
  return Evaluator(g, inputs).run();
}

}  // namespace tw::graph
