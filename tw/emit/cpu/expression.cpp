#include "tw/emit/cpu/expression.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <fmt/format.h>

#include "tw/base/error.h"
#include "tw/emit/cpu/op_table.h"

namespace tw::cpu {
namespace {

std::string float_literal(DType t, double v) {
  const bool narrow = t != f64;
  if (std::isnan(v)) return narrow ? "__builtin_nanf(\"\")" : "__builtin_nan(\"\")";
  if (std::isinf(v)) {
    return fmt::format("{}__builtin_inf{}()", v < 0 ? "-" : "", narrow ? "f" : "");
  }
  std::string text = narrow ? fmt::format("{}", static_cast<float>(v)) : fmt::format("{}", v);
  if (text.find_first_of(".e") == std::string::npos) text += ".0";
  return narrow ? text + "f" : text;
}

std::string int_literal(DType t, int64_t v) {
  const std::string type = name(t);
  if (t == u64) return fmt::format("({}){}u", type, static_cast<uint64_t>(v));
  if (v == INT64_MIN) return "(-0x7fffffffffffffff - 1)";
  return fmt::format("({}){}", type, v < 0 ? fmt::format("({})", v) : std::to_string(v));
}

std::string key_of(Context& c, const Coords& at, int lanes) {
  std::string key = std::to_string(lanes);
  for (const Expr& e : at) key += "," + c.text(e);
  return key;
}

}  // namespace

int Expression::add_loop(Symbol counter) {
  loops_.push_back(counter);
  bodies_.emplace_back();
  return static_cast<int>(loops_.size()) - 1;
}

void Expression::set_lanes(int loop, int lanes) {
  lane_loop_ = lanes > 1 ? loop : -1;
  lanes_ = lanes;
  joined_ = 1;
}

uint32_t Expression::loops_of(const Expr& e) const {
  uint32_t bits = 0;
  for_each_symbol(e, [&](Symbol s) {
    for (size_t k = 0; k < loops_.size(); ++k) {
      if (loops_[k] == s) bits |= 1u << k;
    }
    if (const auto it = symbol_loops_.find(s); it != symbol_loops_.end()) bits |= it->second;
  });
  return bits;
}

Expr Expression::symbol_of(const Reg& r, const Expr& dim) {
  const std::string key = r.text + " < " + c_.text(dim);
  const auto known = symbols_.find(key);
  if (known != symbols_.end()) return Expr::symbol(known->second);
  SymbolFact fact{{0, kMaxIndex}, 1};
  fact.below = dim;
  const Symbol s = c_.new_symbol(r.text, fact);
  symbols_[key] = s;
  symbol_loops_[s] = r.loops;
  return Expr::symbol(s);
}

int Expression::depth_of(uint32_t loops) const { return std::bit_width(loops); }

void Expression::assume(Assume a, const Limit& outside) {
  assume_ = a;
  outside_ = outside;
}

std::vector<Writer> Expression::take_from(int depth) {
  std::vector<Writer> texts;
  for (size_t d = static_cast<size_t>(depth); d < bodies_.size(); ++d) {
    texts.push_back(std::move(bodies_[d].text));
    bodies_[d] = Body();
  }
  return texts;
}

std::string Expression::define_text(const std::string& type, uint32_t loops,
                                    const std::string& text, const std::string& wish) {
  const int depth = depth_of(loops);
  for (int d = 0; d <= depth; ++d) {
    const auto it = bodies_[d].named.find(text);
    if (it != bodies_[d].named.end()) return it->second.text;
  }
  const std::string name = c_.fresh(wish);
  bodies_[depth].named[text] = Reg{name, f32, 1, loops, 0};
  bodies_[depth].text.line(fmt::format("{} {} = {};", type, name, text));
  return name;
}

Reg Expression::define(DType t, int lanes, uint32_t loops, const std::string& text, int mask_bytes,
                       const std::string& wish) {
  if (survey) sizes.emplace_back(t == b1 ? 1 : bytes(register_type(t)), loops);
  const DType reg = t == b1 && lanes > 1 ? signed_of_bytes(mask_bytes) : register_type(t);
  const std::string type = "const " + c_.prelude.type(reg, lanes);
  const int mask = t == b1 && lanes > 1 ? mask_bytes : 0;
  return Reg{define_text(type, loops, text, wish), t, lanes, loops, mask};
}

Reg Expression::define_lanes(DType t, uint32_t loops, const std::string& text) {
  if (joined_ > 1) joinable_ = false;
  const DType reg = t == b1 ? i32 : register_type(t);
  const std::string name = c_.fresh("x");
  Writer& out = bodies_[depth_of(loops)].text;
  out.line(fmt::format("{} {};", c_.prelude.type(reg, lanes_), name));
  out.line(fmt::format("for (int l = 0; l < {}; ++l) {}[l] = {}{};", lanes_, name,
                       t == b1 ? "-" : "", text));
  if (survey) sizes.emplace_back(bytes(reg), loops);
  return Reg{name, t, lanes_, loops, t == b1 ? 4 : 0};
}

Reg Expression::value(ValueId v, const Coords& at) {
  const Type& type = c_.program.type(v);
  Coords coords = at;
  uint32_t loops = 0;
  for (size_t axis = 0; axis < coords.size(); ++axis) {
    coords[axis] = type.shape[axis] == 1 ? Expr(0) : simplify(coords[axis], c_.facts);
    loops |= loops_of(coords[axis]);
  }
  if (joined_ > 1) {
    if (const std::optional<Reg> r = value_of_one_loop(v, coords, loops)) return *r;
  }
  if (const auto it = bound_.find(v); it != bound_.end()) return it->second(coords);
  if (const auto it = c_.storage.find(v); it != c_.storage.end()) {
    return load_stored(it->second, coords);
  }
  const std::pair<ValueId, std::string> key{v, key_of(c_, coords, lanes_)};
  const int depth = depth_of(loops);
  if (const auto it = bodies_[depth].values.find(key); it != bodies_[depth].values.end()) {
    return it->second;
  }
  const Op* op = c_.def[v];
  if (!op) throw InternalError(fmt::format("value {} has no storage when it is read", v));
  const Reg r = expression_of(*op)(*this, *op, coords);
  bodies_[depth].values[key] = r;
  return r;
}

void Expression::forget(const Region& r) {
  for (const Op& op : r.ops) {
    for (Body& b : bodies_) {
      std::erase_if(b.values, [&](const auto& known) {
        return std::find(op.out.begin(), op.out.end(), known.first.first) != op.out.end();
      });
    }
  }
}

Reg Expression::widen(const Reg& r) {
  if (lane_loop_ < 0 || r.lanes > 1) return r;
  Reg w = r;
  w.lanes = lanes_;
  if (r.dtype == b1) {
    w.mask_bytes = 4;
    const std::string type = c_.prelude.type(i32, lanes_);
    w.text = fmt::format("(({}){{}} - (i32){})", type, r.text);
    return w;
  }
  const std::string type = c_.prelude.type(register_type(r.dtype), lanes_);
  w.text = fmt::format("({} - ({}){{}})", r.text, type);
  return w;
}

Reg Expression::mask_of(const Reg& r, int bytes) {
  Reg w = widen(r);
  if (w.lanes == 1 || w.mask_bytes == bytes) return w;
  const std::string type = c_.prelude.type(signed_of_bytes(bytes), lanes_);
  return define(b1, lanes_, w.loops, fmt::format("__builtin_convertvector({}, {})", w.text, type),
                bytes);
}

Reg Expression::literal(DType t, const Number& n) {
  Reg r{"", t, 1, 0, 0};
  if (t == b1) {
    r.text = n.as_double() != 0 ? "true" : "false";
  } else if (is_float(t)) {
    r.text = float_literal(t, decode(t, encode(t, n.as_double())));
  } else {
    const uint64_t code = n.integral ? static_cast<uint64_t>(n.i) : encode_int(t, n.f);
    const int unused = 64 - static_cast<int>(bits(t));
    const int64_t high = static_cast<int64_t>(code << unused);
    r.text = int_literal(register_type(t), is_signed_int(t)
                                               ? high >> unused
                                               : static_cast<int64_t>((code << unused) >> unused));
  }
  return r;
}

Reg Expression::rounded(const Reg& r) {
  if (!is_float(r.dtype) || register_type(r.dtype) == r.dtype) return r;
  const std::string f = c_.prelude.use(fmt::format("round_{}", name(r.dtype)), r.dtype, r.lanes);
  return define(r.dtype, r.lanes, r.loops, fmt::format("{}({})", f, r.text));
}

Reg Expression::index(const Expr& e, DType t) {
  const uint32_t loops = loops_of(e);
  const std::string text = c_.text(e);
  if (!in_lanes(loops)) return define(t, 1, loops, fmt::format("({})({})", name(t), text));
  if (joined_ > 1) joinable_ = false;
  const std::optional<int64_t> step = slope(e, loops_[lane_loop_], c_.facts);
  const std::string type = c_.prelude.type(t, lanes_);
  if (step) {
    const std::string iota = c_.prelude.use("iota", t, lanes_);
    return define(t, lanes_, loops,
                  fmt::format("({0})({1}) + {2}() * ({0}){3}", name(t), text, iota, *step));
  }
  const Symbol lane = c_.new_loop("lane", INT32_MAX);
  const std::string counter = c_.symbol_text(loops_[lane_loop_]);
  c_.loop_names[lane.id] = fmt::format("({} + l)", counter);
  const Expr per_lane = substitute(e, [&](Symbol s) -> std::optional<Expr> {
    if (s == loops_[lane_loop_]) return Expr::symbol(lane);
    return std::nullopt;
  });
  return define_lanes(t, loops, fmt::format("({})({})", name(t), c_.text(per_lane)));
}

Reg Expression::call(const std::string& function, DType result, std::vector<Reg> operands) {
  std::string pattern = "$f(";
  for (size_t k = 0; k < operands.size(); ++k) pattern += fmt::format("{}${}", k ? ", " : "", k);
  int lanes = 1;
  for (const Reg& r : operands) lanes = std::max(lanes, r.lanes);
  const DType t = register_type(operands[0].dtype);
  const std::string f = c_.prelude.use(function, t, lanes);
  pattern = f + pattern.substr(2) + ")";
  return combine(pattern, result, std::move(operands));
}

Reg Expression::combine(const std::string& pattern, DType result, std::vector<Reg> operands) {
  int lanes = 1, mask_bytes = 0;
  uint32_t loops = 0;
  for (const Reg& r : operands) {
    lanes = std::max(lanes, r.lanes);
    loops |= r.loops;
  }
  Fill values;
  static constexpr const char* kDigits[] = {"0", "1", "2", "3"};
  for (size_t k = 0; k < operands.size(); ++k) {
    const Reg w = lanes > 1 ? widen(operands[k]) : operands[k];
    values.emplace_back(kDigits[k], w.text);
    mask_bytes = std::max(mask_bytes, w.mask_bytes);
  }
  if (result == b1 && mask_bytes == 0) {
    mask_bytes = static_cast<int>(bytes(register_type(operands[0].dtype)));
  }
  return define(result, lanes, loops, fill(pattern, values), mask_bytes);
}

}  // namespace tw::cpu
